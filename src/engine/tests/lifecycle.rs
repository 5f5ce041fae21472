//! Start, readiness and the end.

use super::rig::{Rig, RigSettings, Script, answered, audit, client, eventually, ids, latched, settings, slow_to_load};
use crate::engine::{EngineError, Refusal};
use crate::pool::ModelState;
use lm::models::ModelError;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

const LONG: Duration = Duration::from_secs(60);

#[tokio::test]
async fn start_does_not_wait_for_the_models() {
    let (script, latch) = slow_to_load("m");
    let rig = Rig::with(&script);
    latch.reached().await;
    let status = rig.engine.status();
    assert_eq!(rig.state(0), ModelState::Loading);
    assert!(status.device_alive() && !status.draining && !rig.engine.is_ready());
    // Requests may come before it is ready, and are served when it is.
    let early = rig.submit(client(vec![ids(1, 10)]));
    latch.open();
    rig.engine.wait_until_loaded().await.unwrap();
    assert!(rig.engine.is_ready());
    early.wait().await.unwrap();
}

#[tokio::test]
async fn models_compute_on_threads_of_their_own() {
    let threads = Arc::new(AtomicUsize::new(0));
    let seen = Arc::clone(&threads);
    let script = Script::new("m").on_forward(move |_| {
        seen.store(rayon::current_num_threads(), Ordering::Relaxed);
        Ok(())
    });
    let rig = Rig::new(vec![script.model(true)], RigSettings { threads: 3, ..settings() });
    rig.run(client(vec![ids(1, 10)])).await;
    assert_eq!(threads.load(Ordering::Relaxed), 3);
}

#[tokio::test]
async fn health_is_read_and_not_asked() {
    let (script, latch) = latched("m");
    let rig = Rig::with(&script);
    rig.engine.wait_until_loaded().await.unwrap();
    assert!(rig.engine.status().busy_since().is_none());
    let stuck = rig.submit(client(vec![ids(1, 1000)]));
    latch.reached().await;
    // The device hangs and the queue is full, and both can be seen.
    let status = rig.engine.status();
    assert!(status.busy_since().is_some() && status.last_ok.is_none() && status.device_alive());
    assert_eq!(status.interactive_tokens, 1000);
    latch.open();
    stuck.wait().await.unwrap();
    let status = rig.engine.status();
    assert!(status.busy_since().is_none() && status.last_ok.is_some());
}

#[tokio::test]
async fn an_eager_model_that_cannot_be_loaded_is_reported() {
    let broken = Script::new("n")
        .on_load(|| Err(ModelError::Config { key: "rope_scaling".to_owned(), reason: "not understood".to_owned() }));
    let sources = vec![Script::new("m").model(true), broken.model(true)];
    let rig = Rig::new(sources, settings());
    let reason = "n: config.json: key `rope_scaling`: not understood".to_owned();
    assert_eq!(rig.engine.wait_until_loaded().await, Err(EngineError::LoadFailed(reason)));
    assert!(!rig.engine.is_ready());
    // The others serve all the same.
    rig.run(client(vec![ids(1, 10)])).await;
}

#[tokio::test]
async fn every_series_is_there_before_the_first_request() {
    let rig = Rig::with(&Script::new("m"));
    for series in [
        "requests_total{class=interactive,outcome=ok}",
        "requests_total{class=batch,outcome=cancelled}",
        "queue_tokens{class=interactive}",
        "dropped_sequences_total{reason=deadline}",
        "forwards_total{model=m,outcome=ok}",
        "scored_tokens_total{model=m}",
        "out_of_memory_halvings_total{model=m}",
        "cache_hits_total{model=m,tier=memory}",
        "cache_hits_total{model=m,tier=disk}",
        "model_loads_total{model=m,outcome=failed}",
        "model_unloads_total{model=m}",
        "model_evictions_total{model=m}",
        "device_memory_bytes{device=fake:0,kind=used}",
    ] {
        assert_eq!(rig.metric(series), 0.0, "{series}");
    }
    assert_eq!(rig.metric("device_memory_bytes{device=fake:0,kind=budget}"), u64::MAX as f64);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn shutdown_finishes_what_is_queued() {
    let (script, latch) = latched("m");
    let rig = Rig::with(&script);
    let tickets: Vec<_> = (1..=5).map(|n| rig.submit(client(vec![ids(n, 100)]))).collect();
    latch.reached().await;
    let ending = rig.shutdown_behind(LONG);
    eventually(|| rig.engine.status().draining).await;
    assert!(!rig.engine.is_ready());
    assert_eq!(rig.refusal(client(vec![ids(9, 10)])), Refusal::Draining);
    let refusal = rig.engine.submit_when_room(audit(vec![ids(9, 10)])).await.unwrap_err();
    assert_eq!(refusal, Refusal::Draining);
    latch.open();
    answered(tickets).await;
    ending.await.unwrap();
    assert!(!rig.engine.status().device_alive());
    rig.engine.shutdown(LONG);
    assert_eq!(rig.metric("requests_total{class=interactive,outcome=shutting_down}"), 1.0);
    assert_eq!(rig.metric("queue_tokens{class=interactive}"), 0.0);
}

#[tokio::test]
async fn without_handles_the_queue_is_served_to_its_end() {
    let (script, latch) = latched("m");
    let rig = Rig::with(&script);
    let tickets: Vec<_> = (1..=3).map(|n| rig.submit(client(vec![ids(n, 100)]))).collect();
    latch.reached().await;
    drop(rig);
    latch.open();
    answered(tickets).await;
}
