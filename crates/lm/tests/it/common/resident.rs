//! Resident memory of this process, as reported by Linux.

/// Bytes in memory now.
pub fn now() -> u64 {
    status("VmRSS:")
}

/// A number of `/proc/self/status`, in bytes.
pub fn status(field: &str) -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find(|line| line.starts_with(field)).unwrap();
    line.split_whitespace().nth(1).unwrap().parse::<u64>().unwrap() * 1024
}
