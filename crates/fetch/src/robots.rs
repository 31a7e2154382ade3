//! robots.txt, as RFC 9309 has it.
