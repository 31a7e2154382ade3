//! How the process of a crawl has its memory from the system.

/// Has the whole process get memory in pages of the usual size from now on, where the system would give huge ones.
///
/// A crawl holds pages for a moment, here and there, and gives them back. A huge page of 2 MiB is cleared as a whole for the
/// first byte of it, stays as long as one byte of it is in use, and is cleared again when it comes back: that takes a third
/// more memory, and time. A queue that is read at random, as a server reads it, is better off with huge ones.
///
/// It is an offer: where the system knows nothing of it, all stays as it is.
pub fn use_small_pages() {
    #[cfg(target_os = "linux")]
    let _ = rustix::thread::disable_transparent_huge_pages(true);
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    #[test]
    fn no_huge_pages_are_given_any_more() {
        super::use_small_pages();
        assert!(rustix::thread::transparent_huge_pages_are_disabled().unwrap());
    }
}
