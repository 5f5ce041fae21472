//! A large text is read in little memory.

use documents::{Cut, ReadLimits, open, passages};
use std::io::Write;

/// The most memory that this process has held, in bytes.
#[cfg(target_os = "linux")]
fn peak() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap();
    line.trim().trim_end_matches(" kB").parse::<u64>().unwrap() << 10
}

#[cfg(target_os = "linux")]
#[test]
#[ignore = "slow: reads a gigabyte; run it alone, since it measures the whole process"]
fn a_gigabyte_takes_a_fixed_amount_of_memory() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("large.txt");
    let mut file = std::io::BufWriter::new(std::fs::File::create(&path).unwrap());
    let paragraph =
        "The clock in the hall struck nine, and nobody in the house had thought of it until then. ".repeat(12);
    let mut written = 0;
    while written < 1 << 30 {
        file.write_all(paragraph.as_bytes()).unwrap();
        file.write_all(b"\n\n").unwrap();
        written += paragraph.len() + 2;
    }
    file.flush().unwrap();
    let before = peak();
    let mut stream = passages(open(&[path], ReadLimits::default()).unwrap(), Cut::default()).unwrap();
    assert!(stream.by_ref().all(|passage| passage.is_ok()));
    assert!(stream.tally().dropped.repeated.pieces > 1_000_000);
    assert!(peak() - before < 64 << 20, "{} bytes", peak() - before);
}
