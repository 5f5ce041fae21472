//! The record across restarts, rotation and failing disks.

use super::super::record_chain::{ChainCheck, GENESIS};
use super::super::record_file::MOST_BYTES;
use super::*;
use serde_json::Value;

fn entry(request_id: &str) -> AccessEntry {
    AccessEntry { request_id: request_id.to_owned(), method: "GET", status: 200, ..AccessEntry::default() }
}

fn values(path: &Path) -> Vec<Value> {
    std::fs::read_to_string(path).unwrap().lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

fn ids(path: &Path) -> Vec<String> {
    values(path).iter().map(|value| value["request_id"].as_str().unwrap().to_owned()).collect()
}

/// Checks the chain of these files, in this order.
fn check(paths: &[&Path]) -> ChainCheck {
    let mut check = ChainCheck::default();
    let contents = paths.iter().map(|path| std::fs::read(path).unwrap());
    for content in contents {
        content.strip_suffix(b"\n").unwrap_or(&content).split(|byte| *byte == b'\n').for_each(|line| {
            check.add(line).unwrap();
        });
    }
    check
}

#[test]
fn all_that_is_noted_is_written_when_it_ends() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("access.ndjson");
    for begin in [0, 500] {
        let record = AccessRecord::open(&path).unwrap();
        (begin..begin + 500).for_each(|number| record.note(&entry(&number.to_string())));
    }
    assert_eq!(ids(&path), (0..1_000).map(|number| number.to_string()).collect::<Vec<_>>());
    let check = check(&[&path]);
    assert_eq!((check.lines, check.first.as_deref()), (1_000, Some(GENESIS)), "a restart goes on with the chain");
}

#[test]
fn a_file_that_was_put_aside_is_begun_anew() {
    let directory = tempfile::tempdir().unwrap();
    let (path, aside) = (directory.path().join("access.ndjson"), directory.path().join("aside"));
    let record = AccessRecord::open(&path).unwrap();
    record.note(&entry("before"));
    std::thread::sleep(2 * FLUSH);
    std::fs::rename(&path, &aside).unwrap();
    record.reopen();
    record.note(&entry("after"));
    drop(record);
    assert_eq!((ids(&aside), ids(&path)), (vec!["before".to_owned()], vec!["after".to_owned()]));
    assert_eq!(check(&[&aside, &path]).lines, 2, "the chain goes on in the new file");
}

#[test]
fn a_file_that_cannot_be_begun_anew_takes_the_lines_until_one_can() {
    let directory = tempfile::tempdir().unwrap();
    let (path, aside) = (directory.path().join("access.ndjson"), directory.path().join("aside"));
    let mut file = RecordFile::open(&path).unwrap();
    let reopen = AtomicBool::new(true);
    std::fs::rename(&path, &aside).unwrap();
    // A directory cannot be written to.
    std::fs::create_dir(&path).unwrap();
    assert!(file.renew_if(&reopen).is_err() && reopen.load(Ordering::Relaxed));
    file.write("{\"request_id\":\"one\"}").unwrap();
    std::fs::remove_dir(&path).unwrap();
    file.renew_if(&reopen).unwrap();
    assert!(!reopen.load(Ordering::Relaxed));
    file.write("{\"request_id\":\"two\"}").unwrap();
    drop(file);
    assert_eq!([&aside, &path].map(|path| ids(path)), [["one"], ["two"]]);
    assert_eq!(check(&[&aside, &path]).lines, 2);
}

#[test]
fn a_long_file_is_put_aside_under_the_time() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("access.ndjson");
    let long = format!("{{\"request_id\":\"{}\"}}\n", "x".repeat(1_000));
    std::fs::write(&path, long.repeat(MOST_BYTES as usize / 1_000)).unwrap();
    let record = AccessRecord::open(&path).unwrap();
    record.note(&entry("first"));
    drop(record);
    let files = || std::fs::read_dir(directory.path()).unwrap().map(|entry| entry.unwrap().path());
    assert_eq!((ids(&path), files().count()), (vec!["first".to_owned()], 2));
    // A crash between the two files loses nothing of the chain.
    std::fs::remove_file(&path).unwrap();
    AccessRecord::open(&path).unwrap().note(&entry("second"));
    let aside = files().find(|file| *file != path).unwrap();
    assert!(aside.file_name().unwrap().to_str().unwrap().starts_with("access-2"), "{aside:?}");
    assert_eq!((ids(&path), check(&[&aside, &path]).ends_cut), (vec!["second".to_owned()], false));
}

#[test]
fn a_line_that_a_crash_cut_is_told_from_one_that_was_changed() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("access.ndjson");
    let record = AccessRecord::open(&path).unwrap();
    ["one", "two"].iter().for_each(|id| record.note(&entry(id)));
    drop(record);
    let mut content = std::fs::read(&path).unwrap();
    content.truncate(content.len() - 20);
    std::fs::write(&path, &content).unwrap();
    assert!(check(&[&path]).ends_cut);
    AccessRecord::open(&path).unwrap().note(&entry("three"));
    let check = check(&[&path]);
    assert_eq!((check.lines, check.cut, check.ends_cut), (3, 1, false));
}

#[test]
fn a_line_that_lacks_its_line_break_alone_is_whole() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("access.ndjson");
    AccessRecord::open(&path).unwrap().note(&entry("one"));
    let content = std::fs::read(&path).unwrap();
    std::fs::write(&path, &content[..content.len() - 1]).unwrap();
    AccessRecord::open(&path).unwrap().note(&entry("two"));
    assert_eq!(ids(&path), ["one", "two"]);
    assert_eq!((check(&[&path]).lines, check(&[&path]).cut), (2, 0));
}

#[test]
fn a_cut_line_at_the_end_of_a_file_put_aside_is_known_in_the_next() {
    let directory = tempfile::tempdir().unwrap();
    let [path, aside] = ["access.ndjson", "aside"].map(|name| directory.path().join(name));
    AccessRecord::open(&path).unwrap().note(&entry("one"));
    let content = std::fs::read(&path).unwrap();
    std::fs::write(&path, &content[..content.len() - 20]).unwrap();
    let mut file = RecordFile::open(&path).unwrap();
    std::fs::rename(&path, &aside).unwrap();
    file.renew_if(&AtomicBool::new(true)).unwrap();
    file.write("{\"request_id\":\"two\"}").unwrap();
    drop(file);
    assert_eq!(ids(&path), ["two"], "no empty line before it");
    assert_eq!((check(&[&aside, &path]).lines, check(&[&aside, &path]).cut), (2, 1));
}

#[test]
fn two_processes_do_not_write_one_record() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("access.ndjson");
    let record = AccessRecord::open(&path).unwrap();
    assert!(AccessRecord::open(&path).unwrap_err().to_string().contains("another process"));
    drop(record);
    AccessRecord::open(&path).unwrap();
}

#[cfg(target_os = "linux")]
#[test]
fn a_full_disk_shows_and_lost_entries_are_counted_in_the_record() {
    let record = AccessRecord::open(Path::new("/dev/full")).unwrap();
    record.note(&entry("one"));
    let until = Instant::now() + Duration::from_secs(10);
    while !record.is_failing() {
        assert!(Instant::now() < until, "the full disk does not show");
        std::thread::sleep(FLUSH / 10);
    }
    // A line that waits in memory does not make the disk larger.
    record.note(&entry("two"));
    std::thread::sleep(FLUSH / 10);
    assert!(record.is_failing());
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("access.ndjson");
    let (mut file, state) = (RecordFile::open(&path).unwrap(), WriterState::default());
    state.lost.store(3, Ordering::Relaxed);
    write(&mut file, "{\"request_id\":\"four\"}", &state).unwrap();
    drop(file);
    let values = values(&path);
    assert_eq!((&values[0]["event"], &values[0]["entries"]), (&"entries_lost".into(), &3.into()));
    assert_eq!((check(&[&path]).lines, state.lost.load(Ordering::Relaxed)), (2, 0));
}
