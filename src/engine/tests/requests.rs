//! Answers: right, in order, each computed once, also by an earlier engine with the same cache on disk.

use super::rig::{Rig, RigSettings, Script, audit, client, fake_stats, fakes, ids, latched, settings, stats, work};
use crate::engine::{Class, DiskCache, Pass};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

fn cached_settings() -> RigSettings {
    RigSettings { cache_bytes: 1 << 20, ..settings() }
}

#[test]
fn equal_sequences_are_one_pass() {
    let mut request = client(vec![]);
    let passes =
        [ids(1, 4), ids(9, 3), ids(1, 4), ids(5, 1), ids(9, 3), ids(2, 2)].map(|ids| request.add(Pass::score(ids)));
    assert!(Arc::ptr_eq(&passes[0], &passes[2]) && Arc::ptr_eq(&passes[1], &passes[4]));
    assert!(!Arc::ptr_eq(&passes[0], &passes[5]));
    assert_eq!(request.open_passes().count(), 3, "nothing is scored of a single id");
    assert!(passes[3].stats().unwrap().is_empty());
    assert!(passes[0].stats().is_none() && passes[0].filled().is_none());
}

#[tokio::test]
async fn answers_come_in_the_order_of_the_request() {
    let script = Script::new("m");
    let rig = Rig::with(&script);
    // Lengths that fill batches out of order: some pass over others.
    let sequences: Vec<_> = (1..=20).map(|n| ids(n, 2 + (n as usize * 37) % 90)).collect();
    assert!(sequences.iter().map(|ids| ids.len()).sum::<usize>() > 900);
    let output = rig.run_checked(client, &sequences).await;
    assert_eq!((output.forward_passes, output.cached_passes), (20, 0));
    for batch in script.forwards() {
        let tokens: usize = batch.iter().map(Vec::len).sum();
        assert!(tokens <= 100 || batch.len() == 1);
    }
    let scored: usize = sequences.iter().map(|ids| ids.len() - 1).sum();
    assert_eq!(rig.metric("scored_tokens_total{model=m}"), scored as f64);
    rig.assert_idle().await;
}

#[tokio::test]
async fn a_sequence_above_the_budget_runs_alone() {
    let script = Script::new("m");
    let rig = Rig::with(&script);
    let sequences = vec![ids(1, 10), ids(2, 500), ids(3, 10)];
    let output = rig.run(client(sequences)).await;
    assert_eq!(stats(&output)[1].len(), 499);
    assert_eq!(script.firsts(), [vec![1, 3], vec![2]]);
}

#[tokio::test]
async fn too_short_for_statistics_is_answered_without_a_forward_pass() {
    let script = Script::new("m");
    let rig = Rig::with(&script);
    let output = rig.submit(client(vec![ids(1, 1), ids(1, 0)])).wait().await;
    let output = output.unwrap();
    assert!(stats(&output).iter().all(|stats| stats.is_empty()));
    assert_eq!((stats(&output).len(), output.forward_passes, output.cached_passes), (2, 0, 0));
    assert!(script.forwards().is_empty());
    let nothing = rig.run(client(vec![])).await;
    assert!(stats(&nothing).is_empty());
}

#[tokio::test]
async fn equal_sequences_run_once_and_take_room_once() {
    let script = Script::new("m");
    let rig = Rig::with(&script);
    // Ten times 300 tokens would be refused.
    let sequences = vec![ids(1, 300); 10];
    let output = rig.run(client(sequences)).await;
    assert_eq!((stats(&output).len(), output.forward_passes, output.cached_passes), (1, 1, 0));
    assert_eq!(stats(&output), [fake_stats("m", &ids(1, 300))]);
    assert_eq!(script.forwards().len(), 1);
}

#[tokio::test]
async fn what_ran_before_is_answered_from_the_cache() {
    let script = Script::new("m");
    let rig = Rig::new(vec![script.model(true)], cached_settings());
    rig.run(client(vec![ids(1, 30)])).await;
    let again = vec![ids(1, 30), ids(2, 30), ids(1, 30)];
    let output = rig.run(client(again)).await;
    assert_eq!((output.forward_passes, output.cached_passes), (1, 1));
    assert_eq!(stats(&output), [fake_stats("m", &ids(1, 30)), fake_stats("m", &ids(2, 30))]);
    assert_eq!(script.firsts(), [[1], [2]]);
    assert_eq!(rig.metric("cache_hits_total{model=m,tier=memory}"), 1.0);
    assert_eq!(rig.metric("cache_misses_total{model=m}"), 2.0);
}

#[tokio::test]
async fn cached_answers_need_no_room_and_no_device() {
    let (script, latch) = latched("m");
    let other = Script::new("n");
    let sources = vec![script.model(true), other.model(true)];
    let rig = Rig::new(sources, cached_settings());
    let interactive = |sequences| work("n", Class::Interactive, sequences);
    rig.run(interactive(vec![ids(1, 30)])).await;
    let full = rig.submit(client(vec![ids(1, 1000)]));
    latch.reached().await;
    assert!(rig.engine.submit(interactive(vec![ids(2, 30)])).is_err());
    let output = rig.run(interactive(vec![ids(1, 30)])).await;
    assert_eq!((output.forward_passes, output.cached_passes), (0, 1));
    assert_eq!(stats(&output)[0], fake_stats("n", &ids(1, 30)), "the other model's, by identity");
    latch.open();
    full.wait().await.unwrap();
}

#[tokio::test]
async fn the_cache_is_bounded_in_bytes() {
    let script = Script::new("m");
    let small = RigSettings { cache_bytes: 20_000, ..settings() };
    let rig = Rig::new(vec![script.model(true)], small);
    for _ in 0..2 {
        for n in 0..100 {
            rig.run(client(vec![ids(n, 50)])).await;
        }
    }
    // 100 sequences of about 2 kB each: most of them had to run twice.
    assert!(script.forwards().len() > 150);
}

#[tokio::test]
async fn audits_are_fed_in_whatever_their_size() {
    let script = Script::new("m");
    let rig = Rig::with(&script);
    // 400 tokens are the window; one sequence alone is above it, and the whole far above.
    let sequences: Vec<_> = (1..=50).map(|n| ids(n, if n == 7 { 900 } else { 90 })).collect();
    assert!(rig.engine.submit(audit(sequences.clone())).is_err());
    let ticket = rig.engine.submit_when_room(audit(sequences.clone())).await.unwrap();
    let output = ticket.wait().await.unwrap();
    let expected = fakes("m", &sequences);
    assert_eq!(stats(&output), expected);
    assert_eq!(output.forward_passes, 50);
    rig.assert_idle().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn two_hundred_clients_at_once() {
    let script = Script::new("m");
    let other = Script::new("n");
    let rig = Arc::new(Rig::new(vec![script.model(true), other.model(false)], cached_settings()));
    let clients = (0..200_u32).map(|client| {
        let rig = Arc::clone(&rig);
        tokio::spawn(async move {
            let model = ["m", "n"][client as usize % 2];
            let len = |n: u32| 2 + ((client * 31 + n * 17) % 180) as usize;
            // Some sequences are shared between clients, and some within one.
            let sequences: Vec<_> = (0..5).map(|n| ids(client % 40 + n % 3, len(n))).collect();
            let mut distinct: Vec<_> = Vec::new();
            for ids in &sequences {
                if !distinct.contains(ids) {
                    distinct.push(Arc::clone(ids));
                }
            }
            let expected = fakes(model, &distinct);
            let output = if client % 5 == 0 {
                let work = work(model, Class::Batch, sequences);
                rig.engine.submit_when_room(work).await.unwrap().wait().await.unwrap()
            } else {
                loop {
                    let work = work(model, Class::Interactive, sequences.clone());
                    match rig.engine.submit(work) {
                        Ok(ticket) => break ticket.wait().await.unwrap(),
                        Err(crate::engine::Refusal::Busy { .. }) => tokio::task::yield_now().await,
                        Err(refusal) => panic!("{refusal}"),
                    }
                }
            };
            assert_eq!(stats(&output), expected);
        })
    });
    for client in clients.collect::<Vec<_>>() {
        client.await.unwrap();
    }
    let ok = |class| rig.metric(&format!("requests_total{{class={class},outcome=ok}}"));
    assert_eq!((ok("interactive"), ok("batch")), (160.0, 40.0));
    rig.assert_idle().await;
}

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
        let work = work(id, Class::Interactive, vec![ids(1, 30)]);
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
