//! Statistics used by unfinished work stay on disk.

use super::*;

/// Counts the sequences among 0..count, of 3,000 ids, that are kept.
fn kept(cache: &StatsCache, count: u32) -> usize {
    (0..count).filter(|n| finds(cache, "m", &ids(*n, 3_000))).count()
}

/// Writes some of those sequences; all is written when it returns.
fn write(directory: &Path, cache: StatsCache, numbers: std::ops::Range<u32>) -> StatsCache {
    numbers.for_each(|n| insert(&cache, "m", &ids(n, 3_000)));
    let bytes = |name: &str| disk_bytes(&directory.join(name));
    // The thread that writes waits a moment for more.
    std::thread::sleep(Duration::from_millis(1_500));
    assert!(bytes("statistics.redb") + bytes("statistics.old.redb") <= 8 * MEBIBYTE);
    cache
}

#[test]
#[ignore = "slow: `.ci/full` runs it"]
fn what_unfinished_work_has_used_makes_no_room_for_others() {
    let directory = tempdir().unwrap();
    let limit = 8 * MEBIBYTE;
    // Earlier entries make room, those that the work writes do not: 96 KB each.
    let cache = write(directory.path(), open(directory.path(), limit), 1_000..1_030);
    let work = cache.hold(false);
    let mut cache = cache;
    for first in [0, 20, 40, 60] {
        cache = write(directory.path(), cache, first..first + 20);
    }
    let most = kept(&cache, 80);
    assert!((30..80).contains(&most), "{most} of 80 have room");
    assert!(finds(&cache, "m", &ids(0, 3_000)), "the first are kept, the last are not written");
    // After a restart the same work needs what is there.
    cache.close();
    drop((work, cache));
    let cache = open(directory.path(), limit);
    let work = cache.hold(true);
    let mut cache = write(directory.path(), cache, 2_000..2_030);
    assert_eq!(kept(&cache, 80), most);
    drop(work);
    for first in [2_000, 2_030, 2_060] {
        cache = write(directory.path(), cache, first..first + 30);
    }
    assert_eq!(kept(&cache, 80), 0, "nobody needs them any more");
    assert!(finds(&cache, "m", &ids(2_089, 3_000)));
}
