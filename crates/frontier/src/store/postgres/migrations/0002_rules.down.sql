DROP FUNCTION link_hash(text), linked_priority(integer, integer), found_priority(boolean, text, integer, boolean),
    domain_of(text), page_key(text), web_address(text), escaped(text, text, boolean);
