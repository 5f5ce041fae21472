//! Limits on connections.

use std::time::Duration;

/// The part of the files that the process may open that connections may take, in percent.
const FILES_PERCENT: u64 = 80;
/// Where the settings say `auto`: more would take more memory than a service has to spare: one takes some 50 KB.
const MOST_CONNECTIONS: usize = 10_000;
/// Files that are assumed where the operating system does not say how many there may be.
const UNKNOWN_FILES: u64 = 1_024;

/// Limits on connections.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ConnectionLimits {
    /// Maximum time for the head of a request, and for an idle connection.
    pub header_timeout: Duration,
    /// Maximum time in which a client takes nothing of an answer.
    pub write_timeout: Duration,
    /// Connections at once.
    pub connections: usize,
}

/// Raises the number of files that the process may open to the most that it is allowed, and gives how many connections there are to
/// be: as many as `wanted`, or as suit a service, but never more than these files are enough for.
#[must_use]
pub fn connection_limit(wanted: Option<usize>) -> usize {
    let files = raised_limit().unwrap_or(UNKNOWN_FILES);
    let possible = usize::try_from(files.saturating_mul(FILES_PERCENT) / 100).unwrap_or(usize::MAX);
    wanted.unwrap_or(MOST_CONNECTIONS).min(possible).max(1)
}

#[cfg(unix)]
fn raised_limit() -> Option<u64> {
    use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
    let Rlimit { current, maximum } = getrlimit(Resource::Nofile);
    // A limit that cannot be raised stays as it is.
    let raised = setrlimit(Resource::Nofile, Rlimit { current: maximum, maximum });
    if raised.is_ok() { maximum.or(current) } else { current }
}

#[cfg(not(unix))]
fn raised_limit() -> Option<u64> {
    None
}
