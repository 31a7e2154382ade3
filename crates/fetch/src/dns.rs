//! From names to addresses, cached and bounded.
