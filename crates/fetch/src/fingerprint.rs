//! What a page is known by: its exact bytes, and its content without what always changes.
