//! How many files may be open, and who may have how many of them.
//!
//! A connection is an open file, and so is all that the queue reads and writes. A queue that cannot open a file takes
//! nothing more in, so that connections, however many come and however long they stay, must leave it enough of them.

use forager_server::limits::MAX_CONNECTIONS;

/// How many files of the queue stay open, where there may be enough.
const MOST_CACHED: usize = 400;

/// Who may have how many open files. What is left of them is for what the queue writes, and for figures.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Shares {
    /// The connections of clients.
    pub(super) connections: usize,
    /// The files of the queue that stay open once they were read.
    pub(super) cached: usize,
}

impl Shares {
    /// The shares of so many files.
    pub(super) fn of(files: usize) -> Self {
        Self { connections: MAX_CONNECTIONS.min(files / 2), cached: MOST_CACHED.min(files / 4) }
    }
}

/// Raises the number of files that may be open as far as this process may, and tells it.
#[cfg(unix)]
pub(super) fn most() -> usize {
    use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
    /// More than is ever needed, where the system says that there is no limit, and may not mean it.
    const PLENTY: u64 = 1 << 16;
    let limit = getrlimit(Resource::Nofile);
    let highest = limit.maximum.unwrap_or(PLENTY);
    let is_raised = limit.current.is_some_and(|current| current < highest)
        && setrlimit(Resource::Nofile, Rlimit { current: Some(highest), ..limit }).is_ok();
    let most = if is_raised { Some(highest) } else { limit.current };
    most.map_or(usize::MAX, |most| usize::try_from(most).unwrap_or(usize::MAX))
}

/// Other systems have no such limit.
#[cfg(not(unix))]
pub(super) fn most() -> usize {
    usize::MAX
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn connections_leave_enough_for_the_queue() {
        let cases = [
            ("no limit", usize::MAX, (1024, 400)),
            ("as much as all take", 4096, (1024, 400)),
            ("a usual limit", 1024, (512, 256)),
            ("a small one", 256, (128, 64)),
        ];
        for (name, files, (connections, cached)) in cases {
            assert_eq!(Shares::of(files), Shares { connections, cached }, "{name}");
            assert!(connections + cached <= files / 4 * 3, "{name}: the rest is for what is written");
        }
    }

    #[cfg(unix)]
    #[test]
    fn as_many_files_may_be_open_as_this_process_may_have() {
        use rustix::process::{Resource, getrlimit};
        let most = most();
        let limit = getrlimit(Resource::Nofile).current;
        assert_eq!(limit.map_or(usize::MAX, |limit| usize::try_from(limit).unwrap()), most);
    }
}
