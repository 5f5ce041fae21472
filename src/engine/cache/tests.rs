//! The cache on disk across restarts, damage and `kill -9`.

#[cfg(unix)]
mod held;

use super::StatsCache;
use super::files::{DiskFault, Folder};
use super::record::{encode, keys};
use crate::engine::metrics::DiskMetrics;
use crate::engine::{DiskCache, EngineOptions, Pass, Stats};
use mia::TokenStats;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};
use tempfile::{TempDir, tempdir};

const MEBIBYTE: u64 = 1 << 20;

/// A cache of nothing but the disk.
fn open(directory: &Path, limit: u64) -> StatsCache {
    open_with_memory(directory, limit, 0)
}

fn open_with_memory(directory: &Path, limit: u64, cache_bytes: u64) -> StatsCache {
    let disk_cache = Some(DiskCache { directory: directory.to_owned(), limit });
    let settings = EngineOptions { max_queue_tokens: 1, cache_bytes, disk_cache };
    StatsCache::new(&settings, DiskMetrics::new())
}

fn identity(name: &str) -> Arc<str> {
    name.into()
}

/// The `n`th sequence, of `len` ids.
fn ids(n: u32, len: u32) -> Arc<[u32]> {
    (n..n + len).collect()
}

/// Statistics that say whose they are, among them numbers that only stay the same bit for bit.
fn stats(ids: &[u32]) -> Stats {
    let entry = |id: &u32| TokenStats {
        lp: -0.0,
        mu: -1.0 / f64::from(*id + 3),
        var: f64::from_bits(0x7ff8_0000_0000_0000 | u64::from(*id)),
        max_lp: f64::from_bits(0xfff0_0000_0000_0001),
    };
    ids[1..].iter().map(entry).collect()
}

fn bits(stats: &[TokenStats]) -> Vec<[u64; 4]> {
    stats.iter().map(|token| [token.lp, token.mu, token.var, token.max_lp].map(f64::to_bits)).collect()
}

/// Returns true if the sequence is kept. A kept one must be right.
fn finds(cache: &StatsCache, name: &str, ids: &Arc<[u32]>) -> bool {
    let pass = Pass::score(Arc::clone(ids));
    // Nothing is scored of a single id, so there is nothing to find.
    if pass.stats().is_some() {
        return false;
    }
    let recalled = cache.recall(&identity(name), std::slice::from_ref(&pass));
    if let Some(known) = pass.stats() {
        assert_eq!(bits(known), bits(&stats(ids)));
    }
    assert_eq!(recalled, usize::from(pass.stats().is_some()));
    recalled > 0
}

fn insert(cache: &StatsCache, name: &str, ids: &Arc<[u32]>) {
    cache.insert(&identity(name), ids, &stats(ids));
}

/// A directory in which 100 sequences were written.
fn written() -> TempDir {
    let directory = tempdir().unwrap();
    let cache = open(directory.path(), 64 * MEBIBYTE);
    for n in 0..100 {
        insert(&cache, "m", &ids(n, 50));
    }
    cache.close();
    directory
}

fn young(directory: &Path) -> PathBuf {
    directory.join("statistics.redb")
}

fn found_of_100(directory: &Path) -> usize {
    let cache = open(directory, 64 * MEBIBYTE);
    assert!(cache.disk.is_some());
    (0..100).filter(|n| finds(&cache, "m", &ids(*n, 50))).count()
}

#[test]
fn statistics_outlive_the_cache_bit_for_bit() {
    let directory = written();
    assert_eq!(found_of_100(directory.path()), 100);
    let cache = open(directory.path(), 64 * MEBIBYTE);
    assert!(
        !finds(&cache, "another", &ids(0, 50)) && !finds(&cache, "m", &ids(0, 49)) && !finds(&cache, "m", &ids(0, 1))
    );
}

#[test]
fn what_is_in_memory_is_not_looked_up_on_disk() {
    let directory = written();
    let cache = open_with_memory(directory.path(), 64 * MEBIBYTE, MEBIBYTE);
    let passes = [0, 500].map(|n| Pass::score(ids(n, 50)));
    let wanted = || cache.to_recall(&identity("m"), passes.iter()).len();
    assert_eq!(wanted(), 2);
    assert_eq!(cache.recall(&identity("m"), &passes), 1);
    assert_eq!(wanted(), 1, "the disk does not know the other, which may be written meanwhile");
}

#[test]
fn a_closed_cache_finds_and_keeps_nothing_and_frees_its_directory() {
    let directory = written();
    let cache = open(directory.path(), 64 * MEBIBYTE);
    assert!(open(directory.path(), 64 * MEBIBYTE).disk.is_none(), "one process at a time");
    assert!(finds(&cache, "m", &ids(0, 50)));
    cache.close();
    cache.close();
    insert(&cache, "m", &ids(500, 50));
    assert!(!finds(&cache, "m", &ids(0, 50)));
    assert_eq!(found_of_100(directory.path()), 100);
}

#[test]
fn a_damaged_value_is_a_miss_and_is_replaced() {
    let directory = written();
    let file = young(directory.path());
    let mut bytes = std::fs::read(&file).unwrap();
    let value = encode(&keys("m", &ids(7, 50)), &stats(&ids(7, 50)));
    let places: Vec<_> = bytes.windows(8).enumerate().filter(|(_, b)| *b == &value[80..88]).map(|(at, _)| at).collect();
    assert!(!places.is_empty());
    for at in places {
        bytes[at] ^= 1;
    }
    std::fs::write(&file, bytes).unwrap();
    let cache = open(directory.path(), 64 * MEBIBYTE);
    assert!(!finds(&cache, "m", &ids(7, 50)));
    insert(&cache, "m", &ids(7, 50));
    cache.close();
    let cache = open(directory.path(), 64 * MEBIBYTE);
    assert!(finds(&cache, "m", &ids(7, 50)));
}

/// Every third byte of the header, and bytes all over the pages.
#[test]
fn a_flipped_byte_anywhere_never_gives_wrong_statistics() {
    let directory = written();
    let file = young(directory.path());
    let good = std::fs::read(&file).unwrap();
    let used = good.iter().rposition(|byte| *byte != 0).unwrap();
    let (mut missed, mut all) = (0, 0);
    for at in (0..320).step_by(3).chain((320..used).step_by(used / 150)) {
        let mut bad = good.clone();
        bad[at] ^= 0x55;
        std::fs::write(&file, bad).unwrap();
        let cache = open(directory.path(), 64 * MEBIBYTE);
        let kept = (0..100).filter(|n| finds(&cache, "m", &ids(*n, 50))).count();
        missed += usize::from(kept < 100);
        all += usize::from(kept == 100);
        // At the latest the next write drops what cannot be read, and then all is well again.
        insert(&cache, "m", &ids(1000, 50));
        cache.close();
        assert!(finds(&open(directory.path(), 64 * MEBIBYTE), "m", &ids(1000, 50)), "byte {at}, {kept} kept");
    }
    assert!(missed > 20 && all > 20, "{missed} files with damage that matters, {all} without");
}

#[test]
fn a_file_of_another_kind_or_version_is_dropped() {
    let foreign = |change: fn(&Path)| {
        let directory = written();
        change(&young(directory.path()));
        assert_eq!(found_of_100(directory.path()), 0);
        let cache = open(directory.path(), 64 * MEBIBYTE);
        insert(&cache, "m", &ids(3, 50));
        cache.close();
        assert_eq!(found_of_100(directory.path()), 1, "begun anew");
    };
    foreign(|file| std::fs::write(file, "not a database at all").unwrap());
    foreign(|file| std::fs::write(file, "").unwrap());
    foreign(|file| {
        let mut bytes = std::fs::read(file).unwrap();
        bytes[3] ^= 1;
        std::fs::write(file, bytes).unwrap();
    });
    foreign(|file| std::fs::File::options().write(true).open(file).unwrap().set_len(10_000).unwrap());
    foreign(|file| {
        let table: redb::TableDefinition<'_, &str, &str> = redb::TableDefinition::new("meta");
        let database = redb::Database::open(file).unwrap();
        let transaction = database.begin_write().unwrap();
        transaction.open_table(table).unwrap().insert("stamp", "pdr-audit 0.0.9 statistics 1").unwrap();
        transaction.commit().unwrap();
    });
}

#[test]
fn a_place_that_cannot_be_used_means_no_cache_on_disk() {
    let directory = tempdir().unwrap();
    let file = directory.path().join("a file");
    std::fs::write(&file, "").unwrap();
    for place in [file.clone(), file.join("below")] {
        let cache = open(&place, 64 * MEBIBYTE);
        assert!(cache.disk.is_none());
        insert(&cache, "m", &ids(1, 5));
        assert!(!finds(&cache, "m", &ids(1, 5)));
    }
    // A directory where the file should be can be neither opened nor deleted as a file.
    std::fs::create_dir(young(directory.path())).unwrap();
    assert!(open(directory.path(), 64 * MEBIBYTE).disk.is_none());
}

#[test]
fn the_oldest_go_before_the_limit_is_passed_and_what_is_read_stays() {
    let directory = tempdir().unwrap();
    let limit = 16 * MEBIBYTE;
    let mut cache = open(directory.path(), limit);
    // 34 MB in all, of every length up to the longest that is kept, nearly a 64th of the limit.
    for n in 0..100_u32 {
        for len in [2, 30, 300, 3_000, 7_500] {
            insert(&cache, "m", &ids(n, len));
        }
        if n % 4 == 0 {
            assert!(finds(&cache, "m", &ids(0, 30)) || n == 0, "what is read every now and then is gone after {n}");
            // All is written when it is closed.
            cache.close();
            cache = open(directory.path(), limit);
            let files = std::fs::read_dir(directory.path()).unwrap();
            let taken: u64 = files.map(|file| disk_bytes(&file.unwrap().path())).sum();
            assert!(taken <= limit, "{taken} bytes are taken");
        }
    }
    cache.close();
    let cache = open(directory.path(), limit);
    assert!(finds(&cache, "m", &ids(99, 7_500)));
    assert!(!finds(&cache, "m", &ids(0, 3_000)), "the oldest is gone");
    assert!(directory.path().join("statistics.old.redb").exists());
}

#[cfg(unix)]
fn disk_bytes(path: &Path) -> u64 {
    use std::os::unix::fs::MetadataExt;
    std::fs::metadata(path).map_or(0, |file| file.blocks() * 512)
}

#[test]
fn what_is_too_large_is_dropped() {
    let directory = tempdir().unwrap();
    let cache = open(directory.path(), MEBIBYTE);
    // 64 KiB of statistics, where a commit may take 32 KiB of the disk.
    insert(&cache, "m", &ids(0, 2_048));
    insert(&cache, "m", &ids(0, 300));
    cache.close();
    let cache = open(directory.path(), MEBIBYTE);
    assert!(!finds(&cache, "m", &ids(0, 2_048)) && finds(&cache, "m", &ids(0, 300)));
}

#[test]
fn two_folders_of_one_path_exclude_each_other() {
    let directory = tempdir().unwrap();
    let first = Folder::take(directory.path()).unwrap();
    assert!(matches!(Folder::take(directory.path()), Err(DiskFault::Unavailable(_))));
    drop(first);
    assert!(Folder::take(directory.path()).is_ok());
}

const CHILD: &str = "PDR_AUDIT_TEST_DISK_CACHE";

/// Runs in a process of its own, which the next test kills.
#[test]
fn child_that_writes_until_it_is_killed() {
    let Some(directory) = std::env::var_os(CHILD) else { return };
    let cache = open(Path::new(&directory), 16 * MEBIBYTE);
    println!("\nwrites");
    for n in 0.. {
        insert(&cache, "m", &ids(n % 5_000, 50 + n % 200));
        if n % 50 == 0 {
            std::thread::sleep(Duration::from_millis(1));
        }
    }
}

#[test]
fn what_was_committed_outlives_a_kill_in_the_middle_of_writing() {
    let directory = tempdir().unwrap();
    let mut most = 0;
    for round in 0..8 {
        let mut child = Command::new(std::env::current_exe().unwrap())
            .args(["engine::cache::tests::child_that_writes_until_it_is_killed", "--exact", "--nocapture"])
            .env(CHILD, directory.path())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut output = child.stdout.take().unwrap();
        let mut said = Vec::new();
        while !said.ends_with(b"writes\n") {
            let mut byte = [0];
            assert_eq!(output.read(&mut byte).unwrap(), 1, "the child ended early");
            said.push(byte[0]);
        }
        std::thread::sleep(Duration::from_millis(37 * (round + 1)));
        child.kill().unwrap();
        child.wait().unwrap();
        let started = Instant::now();
        let cache = open(directory.path(), 16 * MEBIBYTE);
        assert!(cache.disk.is_some() && started.elapsed() < Duration::from_secs(5));
        let all: Vec<_> = (0..5_000).map(|n| ids(n, 50 + n % 200)).collect();
        let passes: Vec<_> = all.iter().cloned().map(Pass::score).collect();
        let recalled = cache.recall(&identity("m"), &passes);
        let known = all.iter().zip(&passes).filter_map(|(ids, pass)| Some((ids, pass.stats()?)));
        assert_eq!(known.clone().count(), recalled);
        assert!(known.into_iter().all(|(ids, known)| bits(known) == bits(&stats(ids))));
        assert!(recalled >= most.min(100), "what an earlier process wrote is lost: {recalled} of {most}");
        most = most.max(recalled);
    }
    assert!(most > 100, "only {most} were ever there");
}
