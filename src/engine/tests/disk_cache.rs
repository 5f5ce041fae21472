//! The cache on disk as requests meet it: what ran in an earlier engine does not run again.

use super::rig::{Rig, RigSettings, Script, audit, client, fake_stats, ids, settings, stats};
use crate::engine::DiskCache;
use std::path::Path;
use std::time::Duration;

fn kept_in(directory: &Path, cache_bytes: u64) -> RigSettings {
    let disk_cache = Some(DiskCache { directory: directory.to_owned(), limit: 64 << 20 });
    RigSettings { cache_bytes, disk_cache, ..settings() }
}

#[tokio::test]
async fn what_an_earlier_engine_ran_is_answered_without_a_forward_pass() {
    let directory = tempfile::tempdir().unwrap();
    for cache_bytes in [0, 1 << 20] {
        let sequences = |first| vec![ids(first, 30), ids(first + 1, 40), ids(first, 30)];
        let (first, script) = (cache_bytes as u32, Script::new("m"));
        let rig = Rig::new(vec![script.model(true)], kept_in(directory.path(), cache_bytes));
        let work = rig.engine.recall(client(sequences(first))).await;
        let output = rig.run(work).await;
        assert_eq!((output.forward_passes, output.cached_passes), (2, 0));
        assert_eq!(rig.metric("cache_misses_total{model=m}"), 2.0);
        rig.engine.shutdown(Duration::ZERO);
        assert!(rig.metric("disk_cache_bytes{}") > 0.0);

        let script = Script::new("m");
        let rig = Rig::new(vec![script.model(true)], kept_in(directory.path(), cache_bytes));
        for (round, work) in [client(sequences(first)), audit(sequences(first))].into_iter().enumerate() {
            let work = rig.engine.recall(work).await;
            let output = rig.engine.submit_when_room(work).await.unwrap().wait().await.unwrap();
            assert_eq!((output.forward_passes, output.cached_passes), (0, 2));
            assert_eq!(stats(&output)[0], fake_stats("m", &ids(first, 30)));
            let from_memory = if cache_bytes > 0 { 2.0 * round as f64 } else { 0.0 };
            assert_eq!(rig.metric("cache_hits_total{model=m,tier=memory}"), from_memory);
            assert_eq!(rig.metric("cache_hits_total{model=m,tier=disk}"), 2.0 * (round + 1) as f64 - from_memory);
        }
        assert!(script.forwards().is_empty());
        assert_eq!(rig.metric("cache_misses_total{model=m}"), 0.0);
        // Frees the directory; a dropped engine does so only when its threads have ended.
        rig.engine.shutdown(Duration::ZERO);
    }
}

#[tokio::test]
async fn another_model_finds_nothing_there() {
    let directory = tempfile::tempdir().unwrap();
    for id in ["m", "n"] {
        let script = Script::new(id);
        let rig = Rig::new(vec![script.model(true)], kept_in(directory.path(), 0));
        let work = super::rig::work(id, crate::engine::Class::Interactive, vec![ids(1, 30)]);
        let work = rig.engine.recall(work).await;
        let output = rig.run(work).await;
        assert_eq!((output.forward_passes, output.cached_passes), (1, 0), "{id}");
        rig.engine.shutdown(Duration::ZERO);
    }
}

#[tokio::test]
async fn an_engine_whose_directory_is_taken_or_not_writable_answers_without_it() {
    let directory = tempfile::tempdir().unwrap();
    let script = Script::new("m");
    let first = Rig::new(vec![script.model(true)], kept_in(directory.path(), 0));
    let file = directory.path().join("lock");
    for place in [directory.path(), &file] {
        let rig = Rig::new(vec![script.model(true)], kept_in(place, 0));
        assert_eq!(rig.metric("disk_cache_errors_total{operation=open}"), 1.0);
        let work = rig.engine.recall(client(vec![ids(1, 30)])).await;
        assert_eq!(rig.run(work).await.forward_passes, 1);
    }
    assert_eq!(first.metric("disk_cache_errors_total{operation=open}"), 0.0);
}
