DROP TRIGGER page_is_raised ON pages;
DROP FUNCTION page_is_raised(), update_job_page_priorities(text), update_page_priority(integer, text, integer),
    see_page(integer, text, integer, text), look_up(integer), raise_entry(integer, text, integer, text),
    new_record(bigint, integer, integer, integer), hold_host(integer), calls_lock(), refuse();
