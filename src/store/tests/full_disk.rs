//! A disk that is full.

use super::damage::{answers, filled};
use crate::config::StoreUrl;
use crate::store::reserve::RESERVE;
use crate::store::schema::NEWEST;
use crate::store::{Principal, Store, StoreError};
use std::fs::{self, File};
use std::io::Write;
use std::path::Path;
use std::process::Command;

/// A disk in memory, which is unmounted at the end.
struct SmallDisk(tempfile::TempDir);

impl SmallDisk {
    /// Mounts one of this size in MiB; `None` where the process may not.
    fn mount(size: u64) -> Option<Self> {
        let directory = tempfile::tempdir().unwrap();
        let options = format!("size={size}m");
        let mount = Command::new("mount").args(["-t", "tmpfs", "-o", &options, "tmpfs"]).arg(directory.path()).output();
        if mount.is_ok_and(|mount| mount.status.success()) {
            return Some(Self(directory));
        }
        let _ = writeln!(std::io::stderr(), "SKIPPED on a full disk: this process may not mount one");
        None
    }

    fn path(&self) -> &Path {
        self.0.path()
    }

    /// Writes until nothing more fits.
    fn fill(&self) {
        let mut file = File::options().append(true).create(true).open(self.path().join("filler")).unwrap();
        let size = [1 << 16, 1 << 12, 1].map(|size| vec![1; size]);
        size.iter().for_each(|chunk| while file.write_all(chunk).is_ok() {});
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg("--lazy").arg(self.path()).status();
    }
}

#[tokio::test]
async fn what_is_longer_than_the_reserve_is_deleted_on_a_full_disk() {
    let Some(disk) = SmallDisk::mount(96) else { return };
    let url = StoreUrl::Sqlite(disk.path().join("store.db"));
    let store = Store::open(Some(&url)).await.unwrap();
    let filled = filled(&store).await;
    let sound = answers(&store, &filled).await;
    let mut keys = Vec::new();
    for id in ["sha256:a", "sha256:b"] {
        let key = store.begin_dataset("", true).await.unwrap();
        for block in 0..20 {
            store.add_block(key, block, &"a canary text ".repeat(75_000)).await.unwrap();
        }
        keys.push(store.complete_dataset(key, Some(id), "{}").await.unwrap());
    }
    store.forget_deleted().await;
    let reserve = disk.path().join("store.db.reserve");
    assert_eq!(fs::metadata(&reserve).unwrap().len(), RESERVE);
    disk.fill();
    let full = store.begin_dataset("", true).await.unwrap_err();
    assert!(matches!(full, StoreError::Full), "{full}");

    // Both, so that the reserve is used again.
    for key in keys {
        assert!(store.delete_dataset(key).await.unwrap());
        assert!(reserve.exists(), "the reserve is there again");
    }
    assert!(store.delete_job(filled.job).await.unwrap());
    assert_eq!(store.datasets(&Principal::default(), None, 9).await.unwrap().rows.len(), 1);
    let [_, (_, datasets), ..] = &answers(&store, &filled).await[..] else { unreachable!() };
    assert_eq!(datasets.as_ref().unwrap(), sound[1].1.as_ref().unwrap());
    for file in ["store.db", "store.db-wal"] {
        let content = fs::read(disk.path().join(file)).unwrap();
        assert!(!content.windows(13).any(|window| window == b"a canary text"), "{file} holds a text that was deleted");
    }
    // The room that was freed in the file serves more writes, once there is some for the log of writes.
    fs::remove_file(disk.path().join("filler")).unwrap();
    assert!(store.begin_dataset("", true).await.is_ok());
}

#[tokio::test]
async fn a_service_starts_on_a_full_disk() {
    let Some(disk) = SmallDisk::mount(64) else { return };
    let url = StoreUrl::Sqlite(disk.path().join("store.db"));
    let store = Store::open_at(Some(&url), 5).await.unwrap();
    let key = store.begin_dataset("", true).await.unwrap();
    store.close().await;
    drop(store);
    disk.fill();
    let store = Store::open(Some(&url)).await.unwrap();
    assert_eq!(store.version().await.unwrap(), NEWEST);
    // Next to all of it is there again.
    let reserve = fs::metadata(disk.path().join("store.db.reserve")).unwrap().len();
    assert!((RESERVE - (2 << 20)..=RESERVE).contains(&reserve), "{reserve}");
    assert!(store.sample_block(key, 0).await.unwrap().is_none());
    store.begin_dataset("", true).await.unwrap();
    store.close().await;
}
