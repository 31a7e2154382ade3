//! Proof of politeness, from the log of fetches.
