//! From bytes to text, as browsers do it.
