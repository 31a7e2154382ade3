//! One request and its answer, with a limit on everything.
