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
    let limit = getrlimit(Resource::Nofile);
    let set = |files| setrlimit(Resource::Nofile, Rlimit { current: Some(files), ..limit }).is_ok();
    let most = limit.current.map(|current| raised(current, limit.maximum, set));
    most.map_or(usize::MAX, |most| usize::try_from(most).unwrap_or(usize::MAX))
}

/// How many files may be open that may be `current` ones, and have been raised as far as `set` takes it.
#[cfg(unix)]
fn raised(current: u64, maximum: Option<u64>, set: impl Fn(u64) -> bool) -> u64 {
    /// More than is ever needed, where the system says that there is no limit.
    const PLENTY: u64 = 1 << 16;
    /// What macOS takes, which says so too, and may have a limit all the same.
    const ENOUGH: u64 = 10_240;
    let highest = maximum.unwrap_or(PLENTY);
    let mut higher = [highest, ENOUGH.min(highest)].into_iter().filter(|files| *files > current);
    higher.find(|files| set(*files)).unwrap_or(current)
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
    fn the_limit_is_raised_as_far_as_the_system_takes_it() {
        let cases = [
            ("as high as it may", (256, Some(4096)), u64::MAX, 4096),
            ("it is as high", (4096, Some(4096)), u64::MAX, 4096),
            ("there is no limit", (256, None), u64::MAX, 1 << 16),
            ("there is one that is not told", (256, None), 24_576, 10_240),
            ("nothing higher is taken", (256, None), 256, 256),
            ("it is higher than what would be tried", (20_000, None), 24_576, 20_000),
        ];
        for (name, (current, maximum), taken, want) in cases {
            assert_eq!(raised(current, maximum, |files| files <= taken), want, "{name}");
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
