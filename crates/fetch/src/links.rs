//! The links of a page, as a stream.
