//! Devices that do not answer: servers of a model that runs elsewhere.

use super::rig::{Latch, Rig, RigSettings, Script, answered, audit, client, eventually, ids, settings, two_devices};
use crate::engine::{EngineError, Refusal};
use lm::models::ModelError;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

fn silent() -> ModelError {
    ModelError::Unavailable { reason: "nobody there".to_owned(), had_batch: true, retry_after: None }
}

/// A model whose first device answers while the switch is on, and the switch, which is off.
fn switched() -> (Script, Arc<AtomicBool>) {
    let on = Arc::new(AtomicBool::new(false));
    let (forward, probe) = (Arc::clone(&on), Arc::clone(&on));
    let answers =
        |on: &AtomicBool, device| if device > 0 || on.load(Ordering::SeqCst) { Ok(()) } else { Err(silent()) };
    let script = Script::new("m").on_forward_of(move |device, _| answers(&forward, device));
    (script.on_probe(move |device| answers(&probe, device)), on)
}

/// Waits until a device is known not to answer.
async fn pauses(rig: &Rig, device: usize) {
    eventually(|| rig.metric(&format!("device_unavailable{{device=fake:{device}}}")) == 1.0).await;
}

#[tokio::test]
async fn another_device_runs_what_one_does_not_answer() {
    let (script, on) = switched();
    // The second device waits until the first one has been asked.
    let (latch, runs) = (Arc::new(Latch::default()), Arc::clone(&on));
    let script = script.on_forward_of(move |device, _| match device {
        0 if !runs.load(Ordering::SeqCst) => {
            latch.open();
            Err(silent())
        }
        _ => {
            latch.pass();
            Ok(())
        }
    });
    let rig = Rig::new(vec![script.model(true).on(&[0, 1])], two_devices());
    let sequences: Vec<_> = (1..=8).map(|n| ids(n, 100)).collect();
    rig.run_checked(audit, &sequences).await;
    pauses(&rig, 0).await;
    let status = rig.engine.status();
    assert_eq!(status.devices[0].unavailable.as_ref().unwrap().reason, "nobody there");
    assert_eq!(status.devices[1].unavailable, None);
    assert_eq!(rig.metric("device_unavailable{device=fake:1}"), 0.0);
    assert!(rig.metric("forwards_total{model=m,outcome=unavailable}") >= 1.0);
    // The other device answers, so requests are served.
    assert!(rig.engine.is_ready());
    on.store(true, Ordering::SeqCst);
    eventually(|| rig.metric("device_unavailable{device=fake:0}") == 0.0).await;
    eventually(|| rig.engine.status().devices[0].unavailable.is_none()).await;
    rig.assert_idle().await;
}

#[tokio::test]
async fn a_device_that_does_not_answer_is_probed_before_it_runs_anything() {
    let (script, on) = switched();
    let rig = Rig::with(&script);
    let waiting = rig.submit(audit(vec![ids(1, 10), ids(2, 10)]));
    pauses(&rig, 0).await;
    assert!(rig.engine.is_ready(), "it may answer again at once");
    eventually(|| !rig.engine.is_ready()).await;
    assert_eq!(script.firsts(), [[1, 2]], "only probes follow");
    on.store(true, Ordering::SeqCst);
    waiting.wait().await.unwrap();
    assert_eq!(script.firsts(), [[1, 2], [1, 2]]);
    assert!(rig.engine.is_ready());
    rig.assert_idle().await;
}

#[tokio::test]
async fn a_server_that_fails_on_one_connection_is_not_asked_on_another() {
    let on = Arc::new(AtomicBool::new(false));
    let (forward, probe) = (Arc::clone(&on), Arc::clone(&on));
    // Long enough for every connection to come to it.
    let retry_after = Some(Duration::from_secs(2));
    let failure = move || ModelError::Unavailable { reason: "nobody there".to_owned(), had_batch: true, retry_after };
    let answers = move |on: &AtomicBool| if on.load(Ordering::SeqCst) { Ok(()) } else { Err(failure()) };
    let script = Script::new("m").on_forward(move |_| answers(&forward)).on_probe(move |_| answers(&probe));
    let connections = RigSettings { memory: vec![u64::MAX; 6], one_server: true, ..settings() };
    let rig = Rig::new(vec![script.clone().model(true).on(&[0, 1, 2, 3, 4, 5])], connections);
    let waiting = rig.submit(audit(vec![ids(1, 10)]));
    for device in 0..6 {
        pauses(&rig, device).await;
    }
    assert_eq!(script.forwards().len(), 1, "only probes follow, on any connection");
    on.store(true, Ordering::SeqCst);
    waiting.wait().await.unwrap();
    assert_eq!(script.forwards().len(), 2);
    rig.assert_idle().await;
}

/// As a server that dies of a sequence, and is up again after a moment.
#[tokio::test]
async fn a_sequence_that_no_device_answers_fails_alone() {
    let script = Script::new("m").on_forward(|sequences| match sequences.iter().any(|ids| ids[0] == 7) {
        true => Err(silent()),
        false => Ok(()),
    });
    let rig = Rig::with(&script);
    let deadly = rig.submit(audit(vec![ids(7, 10)]));
    let good = rig.submit(audit(vec![ids(1, 10), ids(2, 10)]));
    let failed = deadly.wait().await.unwrap_err();
    assert_eq!(failed, EngineError::ModelFailed("no device answered: nobody there".to_owned()));
    good.wait().await.unwrap();
    let with_it = |batch: &&Vec<u32>| batch.contains(&7);
    let firsts = script.firsts();
    assert_eq!(firsts.iter().filter(with_it).count(), 4, "{firsts:?}");
    assert!(firsts.iter().filter(with_it).filter(|batch| batch.len() == 1).count() >= 2, "{firsts:?}");
    rig.assert_idle().await;
}

/// As a server that has a second batch while it works on the first one.
#[tokio::test]
async fn a_sequence_that_may_be_deadly_has_the_device_for_itself() {
    let dead = Arc::new(AtomicBool::new(false));
    let (dies, revives) = (Arc::clone(&dead), Arc::clone(&dead));
    let script = Script::new("m").on_finish(move |sequences| {
        // A batch that the server has when it dies of another one is not answered either.
        let is_dead = dies.load(Ordering::SeqCst) || sequences.iter().any(|ids| ids[0] == 7);
        dies.store(is_dead, Ordering::SeqCst);
        if is_dead { Err(silent()) } else { Ok(()) }
    });
    let script = script.on_probe(move |_| {
        revives.store(false, Ordering::SeqCst);
        Ok(())
    });
    let rig = Rig::with(&script);
    let deadly = rig.submit(audit(vec![ids(7, 100)]));
    let good = rig.submit(audit((1..=3).map(|n| ids(n, 100)).collect()));
    let failed = deadly.wait().await.unwrap_err();
    assert_eq!(failed, EngineError::ModelFailed("no device answered: nobody there".to_owned()));
    good.wait().await.unwrap();
    rig.assert_idle().await;
}

#[tokio::test]
async fn an_interactive_request_does_not_wait_for_devices_that_have_been_silent_for_long() {
    let (script, on) = switched();
    let rig = Rig::with(&script);
    // Admitted, since nobody knows yet; it waits.
    let first = rig.submit(client(vec![ids(1, 10)]));
    pauses(&rig, 0).await;
    let second = rig.submit(client(vec![ids(2, 10)]));
    tokio::time::sleep(Duration::from_millis(2_100)).await;
    let refused = rig.refusal(client(vec![ids(3, 10)]));
    assert_eq!(refused, Refusal::Unanswered("nobody there".to_owned()));
    let later = rig.submit(audit(vec![ids(4, 10)]));
    on.store(true, Ordering::SeqCst);
    answered([first, second, later]).await;
    rig.run(client(vec![ids(3, 10)])).await;
    rig.assert_idle().await;
}

#[tokio::test]
async fn what_is_not_wanted_any_more_is_not_put_back() {
    let (script, on) = switched();
    let rig = Rig::with(&script);
    let gone = rig.submit(client(vec![ids(1, 10)]));
    pauses(&rig, 0).await;
    drop(gone);
    on.store(true, Ordering::SeqCst);
    rig.ask("m").await.unwrap();
    assert_eq!(script.forwards().len(), 2, "the one that was not answered, and the last");
    rig.assert_idle().await;
}

#[tokio::test]
async fn a_batch_in_flight_is_answered_though_its_device_pauses() {
    let fails = Arc::new(AtomicUsize::new(1));
    let left = Arc::clone(&fails);
    let script = Script::new("m").on_finish(move |_| {
        match left.fetch_update(Ordering::SeqCst, Ordering::SeqCst, |n| n.checked_sub(1)) {
            Ok(_) => Err(silent()),
            Err(_) => Ok(()),
        }
    });
    let rig = Rig::with(&script);
    let sequences: Vec<_> = (1..=4).map(|n| ids(n, 100)).collect();
    rig.run_checked(audit, &sequences).await;
    assert_eq!(rig.metric("forwards_total{model=m,outcome=unavailable}"), 1.0);
    assert_eq!(rig.metric("forwards_total{model=m,outcome=ok}"), 4.0);
    rig.assert_idle().await;
}

#[tokio::test]
async fn devices_that_could_not_be_reached_cost_no_sequence() {
    let attempts = Arc::new(AtomicUsize::new(0));
    let left = Arc::clone(&attempts);
    let unreached = || ModelError::Unavailable { reason: "gone".to_owned(), had_batch: false, retry_after: None };
    let script = Script::new("m").on_forward(move |_| match left.fetch_add(1, Ordering::SeqCst) {
        0..12 => Err(unreached()),
        _ => Ok(()),
    });
    let six = RigSettings { memory: vec![u64::MAX; 6], ..settings() };
    let rig = Rig::new(vec![script.model(true).on(&[0, 1, 2, 3, 4, 5])], six);
    rig.ask("m").await.unwrap();
    assert_eq!(attempts.load(Ordering::SeqCst), 13);
    rig.assert_idle().await;
}

#[tokio::test]
async fn a_lazy_model_elsewhere_is_loaded_to_all_its_devices_at_once() {
    let script = switched().0.elsewhere();
    let rig = Rig::new(vec![script.model(false).on(&[0, 1])], two_devices());
    rig.ask("m").await.unwrap();
    eventually(|| rig.resident(0) == [0, 1]).await;
    rig.assert_idle().await;
}

#[tokio::test]
async fn a_model_that_no_device_answers_for_is_unloaded_though_passes_wait() {
    let rig = Rig::with(&switched().0);
    let waiting = rig.submit(audit(vec![ids(1, 10)]));
    pauses(&rig, 0).await;
    let unloaded = rig.unload_behind("m");
    assert_eq!(waiting.wait().await.unwrap_err(), EngineError::Unloaded);
    tokio::time::timeout(Duration::from_secs(5), unloaded).await.unwrap().unwrap().unwrap();
    assert_eq!(rig.states(), "u");
}

#[tokio::test]
async fn a_paused_device_drops_its_model_and_ends_in_order() {
    let rig = Rig::with(&switched().0);
    let waiting = rig.submit(audit(vec![ids(1, 10)]));
    pauses(&rig, 0).await;
    drop(waiting);
    tokio::time::timeout(Duration::from_secs(5), rig.engine.pool().unload("m")).await.unwrap().unwrap();
    assert_eq!(rig.states(), "u");
    let waiting = rig.submit(audit(vec![ids(1, 10)]));
    pauses(&rig, 0).await;
    rig.shutdown_behind(Duration::from_millis(100)).await.unwrap();
    assert_eq!(waiting.wait().await.unwrap_err(), EngineError::ShuttingDown);
}
