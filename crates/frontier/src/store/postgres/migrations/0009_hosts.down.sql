DROP FUNCTION web_address(text);
ALTER FUNCTION written_address(text) RENAME TO web_address;
COMMENT ON FUNCTION web_address(text) IS 'What a URL is requested as, what it is known by, its host with and without its port, and its path with its query; nothing where it is none, or not one that SQL can read';
