//! What this process holds in memory, as Linux tells it.

/// Bytes in memory now.
pub fn now() -> u64 {
    status("VmRSS:")
}

/// The most bytes that were in memory since [`forget_peak`], or since the process began.
pub fn peak() -> u64 {
    status("VmHWM:")
}

/// Makes the peak what is in memory now.
pub fn forget_peak() {
    std::fs::write("/proc/self/clear_refs", "5").unwrap();
}

fn status(field: &str) -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find(|line| line.starts_with(field)).unwrap();
    line.split_whitespace().nth(1).unwrap().parse::<u64>().unwrap() * 1024
}
