//! Checks, backups, and files of which bytes have changed.

use super::damage::{Filled, answers, filled};
use super::places::test_stores;
use crate::config::StoreUrl;
use crate::store::schema::NEWEST;
use crate::store::{Store, StoreError, back_up, restore};
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;
use tempfile::TempDir;

/// Databases with random bytes; more where this variable says so.
const ROUNDS: &str = "PDR_AUDIT_TEST_ROUNDS";

type Answers = Vec<(String, Result<String, StoreError>)>;

/// A file of a store that is closed.
struct Closed {
    directory: TempDir,
    filled: Filled,
    sound: Answers,
    bytes: Vec<u8>,
}

async fn closed() -> Closed {
    let directory = tempfile::tempdir().unwrap();
    let store = Store::open(Some(&StoreUrl::Sqlite(directory.path().join("store.db")))).await.unwrap();
    let filled = filled(&store).await;
    let sound = answers(&store, &filled).await;
    store.close().await;
    let bytes = fs::read(directory.path().join("store.db")).unwrap();
    Closed { directory, filled, sound, bytes }
}

/// The names and contents of the files of a directory.
fn contents(directory: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let paths = fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().path());
    paths.map(|path| (path.clone(), fs::read(path).unwrap())).collect()
}

async fn faults(path: &Path) -> Vec<String> {
    match Store::open_to_read(&StoreUrl::Sqlite(path.to_owned())).await {
        Ok(store) => match store.verify().await {
            Ok(check) => check.faults,
            Err(error) => vec![error.to_string()],
        },
        Err(error) => vec![error.to_string()],
    }
}

/// Opens a file with these bytes: every answer is the sound one or an error, or what is absent is a fault of the check.
async fn read_altered(closed: &Closed, bytes: &[u8], name: &str) -> usize {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("store.db");
    fs::write(&path, bytes).unwrap();
    let faults = faults(&path).await;
    let Ok(store) = Store::open(Some(&StoreUrl::Sqlite(path))).await else { return faults.len() };
    for ((asked, sound), (_, answer)) in closed.sound.iter().zip(answers(&store, &closed.filled).await) {
        let (Ok(sound), Ok(answer)) = (sound, answer) else { continue };
        let is_absent =
            answer == "None" || answer == "[]" || answer == sound.replace("has_texts: true", "has_texts: false");
        assert!(answer == *sound || (is_absent && !faults.is_empty()), "{name}: {asked}: {answer:.300}\n{faults:?}");
    }
    store.close().await;
    faults.len()
}

#[tokio::test]
async fn random_bytes_are_an_error_by_name_or_change_nothing() {
    let closed = closed().await;
    let rounds = std::env::var(ROUNDS).map_or(12, |rounds| rounds.parse::<u64>().unwrap().max(12));
    let mut damaged = 0;
    for round in 0..rounds {
        // SplitMix64.
        let mut state = round;
        let mut random = || {
            state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
            let mixed = (state ^ (state >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
            let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
            mixed ^ (mixed >> 31)
        };
        let mut bytes = closed.bytes.clone();
        for _ in 0..1 << (round % 8) {
            // Most of the file is the adapter, which comes last.
            let place = (random() % bytes.len() as u64) as usize >> (2 * (round % 3));
            bytes[place] = (random() & 0xff) as u8;
        }
        damaged += usize::from(read_altered(&closed, &bytes, &format!("round {round}")).await > 0);
    }
    assert!(damaged > rounds as usize / 2, "{damaged} of {rounds} are noticed");
}

#[tokio::test]
async fn one_byte_of_a_block_a_report_and_each_index_is_noticed() {
    let closed = closed().await;
    let place = |bytes: &[u8], from: usize| {
        closed.bytes[from..].windows(bytes.len()).position(|window| window == bytes).map(|place| from + place)
    };
    let mut places = vec![place(b"sample 2", 0).unwrap() + 7, place(b"0.8125", 0).unwrap() + 3];
    // Keys in the leaves of indices, which begin with a 10.
    let page_size = usize::from(u16::from_be_bytes([closed.bytes[16], closed.bytes[17]]));
    for key in [closed.filled.dataset, closed.filled.job].map(|key| key.to_string()) {
        let mut from = 0;
        while let Some(next) = place(key.as_bytes(), from) {
            if closed.bytes[next / page_size * page_size] == 10 {
                places.push(next + 35);
            }
            from = next + 1;
        }
    }
    assert!(places.len() > 8, "{places:?}");
    for place in places {
        let mut bytes = closed.bytes.clone();
        bytes[place] ^= 1;
        assert!(read_altered(&closed, &bytes, &format!("byte {place}")).await > 0, "byte {place} is not noticed");
    }
}

#[tokio::test]
async fn a_check_changes_nothing_and_a_backup_is_the_same_store() {
    let closed = closed().await;
    let (directory, path) = (closed.directory.path(), closed.directory.path().join("store.db"));
    let before = contents(directory);
    assert_eq!(faults(&path).await, [""; 0]);
    assert_eq!(contents(directory), before);

    let (url, backup) = (StoreUrl::Sqlite(path.clone()), directory.join("backup"));
    let store = Store::open(Some(&url)).await.unwrap();
    // While it is in use.
    let late = store.begin_dataset("", true).await.unwrap();
    let check = back_up(&url, &backup).await.unwrap();
    assert!(check.sealed && check.datasets == 1 && check.sample_blocks == 4 && check.score_blocks == 4, "{check:?}");
    assert!(store.add_block(late, 0, "one").await.is_ok());
    #[cfg(unix)]
    assert_eq!(std::os::unix::fs::PermissionsExt::mode(&fs::metadata(&backup).unwrap().permissions()) & 0o777, 0o600);
    assert!(matches!(back_up(&url, &backup).await, Err(StoreError::Refused(_))), "a file that is there stays");
    assert!(matches!(restore(&url, &backup).await, Err(StoreError::InUse(_))));
    store.close().await;
    drop(store);
    assert!(matches!(restore(&url, &backup).await, Err(StoreError::Refused(_))), "a store that is there stays");
    fs::rename(&path, directory.join("old.db")).unwrap();
    restore(&url, &backup).await.unwrap();
    let names: Vec<PathBuf> = contents(directory).into_keys().map(|path| path.file_name().unwrap().into()).collect();
    assert!(!names.iter().any(|name| name.to_string_lossy().contains("partial")), "{names:?}");
    let store = Store::open(Some(&url)).await.unwrap();
    assert_eq!(format!("{:?}", answers(&store, &closed.filled).await), format!("{:?}", closed.sound));
    let postgres = StoreUrl::Postgres("postgres://host/database".to_owned());
    let refused = back_up(&postgres, &directory.join("other")).await.unwrap_err().to_string();
    assert!(refused.contains("pg_dump"), "{refused}");
}

#[tokio::test]
async fn a_backup_with_a_fault_or_of_a_newer_version_is_not_restored() {
    let closed = closed().await;
    let directory = closed.directory.path();
    let (backup, url) = (directory.join("backup"), StoreUrl::Sqlite(directory.join("new.db")));
    let mut bytes = closed.bytes.clone();
    let place = bytes.windows(6).position(|window| window == b"0.8125").unwrap();
    bytes[place + 2] = b'9';
    fs::write(&backup, bytes).unwrap();
    let check = restore(&url, &backup).await.unwrap();
    assert_eq!(check.faults, [format!("the report of the job {} differs from its digest", closed.filled.job)]);
    let StoreUrl::Sqlite(target) = &url else { unreachable!() };
    assert!(!target.exists());

    let store = Store::open(Some(&StoreUrl::Sqlite(directory.join("store.db")))).await.unwrap();
    let newer = "INSERT INTO _sqlx_migrations (version, description, success, checksum, execution_time) \
                 VALUES (99, 'of the future', 1, x'00', 0)";
    sqlx::query(newer).execute(&store.pool).await.unwrap();
    store.close().await;
    drop(store);
    let refused = restore(&url, &directory.join("store.db")).await.unwrap_err();
    assert!(matches!(refused, StoreError::OtherVersion(99)) && !target.exists(), "{refused}");

    // The first versions have other tables.
    let first = StoreUrl::Sqlite(directory.join("first.db"));
    let store = Store::open_at(Some(&first), 4).await.unwrap();
    store.close().await;
    drop(store);
    let refused = [
        Store::open_to_read(&first).await.map(|_| ()).unwrap_err(),
        back_up(&first, &directory.join("other")).await.unwrap_err(),
        restore(&url, &directory.join("first.db")).await.unwrap_err(),
    ];
    for refused in refused {
        assert!(matches!(&refused, StoreError::Refused(reason) if reason.contains("version 4")), "{refused}");
    }

    // One of an earlier version is brought up to date when it is opened.
    let old = StoreUrl::Sqlite(directory.join("old.db"));
    let store = Store::open_at(Some(&old), 5).await.unwrap();
    store.close().await;
    drop(store);
    let check = restore(&url, &directory.join("old.db")).await.unwrap();
    assert!(check.version == 5 && !check.sealed && check.faults.is_empty(), "{check:?}");
    assert_eq!(Store::open(Some(&url)).await.unwrap().version().await.unwrap(), NEWEST);
}

#[tokio::test]
async fn a_schema_that_is_not_utf_8_is_damage() {
    let closed = closed().await;
    let (directory, path) = (tempfile::tempdir().unwrap(), closed.directory.path().join("store.db"));
    let mut bytes = closed.bytes.clone();
    let place = bytes.windows(13).position(|window| window == b"numerics TEXT").unwrap();
    bytes[place + 4] = 0xff;
    let backup = directory.path().join("backup");
    for file in [&path, &backup] {
        fs::write(file, &bytes).unwrap();
    }
    let url = StoreUrl::Sqlite(path);
    let refused = [
        Store::check(&url).await.unwrap_err(),
        Store::open(Some(&url)).await.map(|_| ()).unwrap_err(),
        back_up(&url, &directory.path().join("other")).await.unwrap_err(),
        restore(&StoreUrl::Sqlite(directory.path().join("store.db")), &backup).await.unwrap_err(),
    ];
    for refused in refused {
        assert!(matches!(&refused, StoreError::Damaged(fault) if fault.contains("schema")), "{refused}");
    }
}

#[tokio::test]
async fn a_check_of_a_store_in_use_sees_one_state() {
    for place in test_stores().await {
        let Some(url) = &place.url else { continue };
        let store = &place.store;
        let checking = async {
            let reader = Store::open_to_read(url).await.unwrap();
            let mut blocks = 0;
            while blocks < 200 {
                let check = reader.verify().await.unwrap();
                assert_eq!(check.faults, [""; 0], "{}", place.name);
                blocks += check.sample_blocks;
            }
        };
        let using = async {
            loop {
                let key = store.begin_dataset("", true).await.unwrap();
                for block in 0..40 {
                    store.add_block(key, block, "one").await.unwrap();
                }
                let key = store.complete_dataset(key, None, "{}").await.unwrap();
                tokio::time::sleep(Duration::from_millis(5)).await;
                assert!(store.delete_dataset(key).await.unwrap());
            }
        };
        tokio::select! {
            () = checking => {}
            () = using => {}
        }
    }
}

#[tokio::test]
async fn a_backup_takes_what_a_killed_one_left_and_leaves_nothing_when_it_is_cut_off() {
    let closed = closed().await;
    let (directory, target) = (tempfile::tempdir().unwrap(), closed.directory.path().join("backup"));
    let url = StoreUrl::Sqlite(closed.directory.path().join("store.db"));
    let partial = closed.directory.path().join("backup.partial");
    let before = contents(closed.directory.path());
    // Polled once, and dropped.
    assert!(futures::FutureExt::now_or_never(back_up(&url, &target)).is_none());
    assert_eq!(contents(closed.directory.path()), before);

    fs::write(&partial, "a part").unwrap();
    fs::write(closed.directory.path().join("backup.partial-journal"), "another").unwrap();
    let writer = fs::File::open(&partial).unwrap();
    writer.lock().unwrap();
    let refused = back_up(&url, &target).await.unwrap_err().to_string();
    assert!(refused.contains("another process writes"), "{refused}");
    drop(writer);
    assert!(back_up(&url, &target).await.unwrap().faults.is_empty() && target.exists());
    assert_eq!(contents(closed.directory.path()).len(), before.len() + 1);
    let restored = StoreUrl::Sqlite(directory.path().join("store.db"));
    assert!(restore(&restored, &target).await.unwrap().faults.is_empty());
}
