//! The most that the process may map.

use rustix::process::{Resource, Rlimit, setrlimit};

/// Far more than any input needs: threads and allocators reserve room that they do not use.
const MOST: u64 = 4 << 30;

/// Bounds the address space, so that a size that is only announced ends the run where memory for it is requested. The
/// allocator of the service does not report to libFuzzer, so `-malloc_limit_mb` has no effect, and `-rss_limit_mb` sees
/// only memory that is written.
///
/// A sanitizer maps terabytes before this is called; then nothing is bounded.
pub fn bound_memory() {
    if mapped().is_some_and(|bytes| bytes < MOST) {
        let limit = Rlimit { current: Some(MOST), maximum: Some(MOST) };
        setrlimit(Resource::As, limit).expect("a process may lower its own limit");
    }
}

/// The bytes that are mapped now, where the system says so.
fn mapped() -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let size = status.lines().find_map(|line| line.strip_prefix("VmSize:"))?;
    let kibibytes: u64 = size.trim().strip_suffix("kB")?.trim().parse().ok()?;
    Some(kibibytes << 10)
}
