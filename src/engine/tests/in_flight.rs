//! A batch that a device works on while the next one begins, as on a GPU.

use super::rig::{Latch, Rig, Script, audit, client, fake_stats, ids, lock, memory, stats, work};
use crate::engine::{Class, EngineError};
use lm::models::ModelError;
use std::sync::{Arc, Mutex};

/// Events of batches, by the first ids of their sequences.
#[derive(Clone, Default)]
struct Events(Arc<Mutex<Vec<String>>>);

impl Events {
    fn note(&self, event: &str, sequences: &[&[u32]]) {
        let firsts: Vec<String> = sequences.iter().map(|ids| ids[0].to_string()).collect();
        lock(&self.0).push(format!("{event} {}", firsts.join("+")));
    }

    fn all(&self) -> Vec<String> {
        lock(&self.0).clone()
    }
}

/// A model that works on a batch while the next one begins, and how it ends.
fn queueing(end: impl Fn(&[&[u32]]) -> Result<(), ModelError> + Send + Sync + 'static) -> (Script, Events) {
    let events = Events::default();
    let (begun, ended) = (events.clone(), events.clone());
    let script = Script::new("m").on_forward(move |sequences| {
        begun.note("begin", sequences);
        Ok(())
    });
    let script = script.on_finish(move |sequences| {
        ended.note("finish", sequences);
        end(sequences)
    });
    (script, events)
}

/// As [`queueing`], where the first batch ends when the latch is opened.
fn queueing_behind_first() -> (Script, Events, Arc<Latch>) {
    let latch = Arc::new(Latch::default());
    let inner = Arc::clone(&latch);
    let (script, events) = queueing(move |sequences| {
        if sequences[0][0] == 1 {
            inner.pass();
        }
        Ok(())
    });
    (script, events, latch)
}

#[tokio::test]
async fn a_full_batch_begins_before_the_last_one_is_finished() {
    let (script, events) = queueing(|_| Ok(()));
    let rig = Rig::with(&script);
    let sequences: Vec<_> = (1..=3).map(|n| ids(n, 100)).collect();
    rig.run_checked(client, &sequences).await;
    assert_eq!(events.all(), ["begin 1", "begin 2", "finish 1", "begin 3", "finish 2", "finish 3"]);
    assert_eq!(rig.metric("forwards_total{model=m,outcome=ok}"), 3.0);
    rig.assert_idle().await;
}

#[tokio::test]
async fn a_batch_that_is_not_full_may_grow_until_the_last_one_is_finished() {
    let (script, events, latch) = queueing_behind_first();
    let rig = Rig::with(&script);
    let first = rig.submit(client(vec![ids(1, 100), ids(2, 60)]));
    latch.reached().await;
    assert!(rig.engine.status().busy_since().is_some());
    let second = rig.submit(client(vec![ids(3, 40)]));
    latch.open();
    first.wait().await.unwrap();
    second.wait().await.unwrap();
    assert_eq!(events.all(), ["begin 1", "finish 1", "begin 2+3", "finish 2+3"]);
    rig.assert_idle().await;
}

#[tokio::test]
async fn a_client_overtakes_an_audit_but_what_is_in_flight() {
    let (script, events, latch) = queueing_behind_first();
    let rig = Rig::with(&script);
    let audit = rig.submit(audit((1..=4).map(|n| ids(n, 100)).collect()));
    latch.reached().await;
    let client = rig.submit(client(vec![ids(9, 5)]));
    latch.open();
    client.wait().await.unwrap();
    audit.wait().await.unwrap();
    let begun: Vec<_> = events.all().into_iter().filter(|event| event.starts_with("begin")).collect();
    assert_eq!(begun, ["begin 1", "begin 2", "begin 9", "begin 3", "begin 4"]);
}

#[tokio::test]
async fn what_fails_at_its_end_runs_again_in_parts_beside_the_next() {
    let (script, events) = queueing(|sequences| {
        if sequences.iter().any(|ids| ids[0] == 3) {
            return Err(ModelError::Forward("an odd text".to_owned()));
        }
        Ok(())
    });
    let rig = Rig::with(&script);
    let bad = rig.submit(client(vec![ids(3, 50)]));
    let good = rig.submit(client(vec![ids(4, 50), ids(5, 100)]));
    assert_eq!(bad.wait().await, Err(EngineError::ModelFailed("forward pass: an odd text".to_owned())));
    let answered = good.wait().await.unwrap();
    assert_eq!(stats(&answered), [fake_stats("m", &ids(4, 50)), fake_stats("m", &ids(5, 100))]);
    assert_eq!(events.all().iter().filter(|event| *event == "finish 5").count(), 1, "{:?}", events.all());
    rig.assert_idle().await;
}

#[tokio::test]
async fn memory_that_is_out_at_the_end_of_a_pass_halves_it() {
    let (script, _) = queueing(|sequences| match sequences.len() {
        1 => Ok(()),
        several => Err(ModelError::OutOfMemory(format!("{several} sequences"))),
    });
    let rig = Rig::with(&script);
    let sequences: Vec<_> = (1..=12).map(|n| ids(n, 25)).collect();
    rig.run_checked(client, &sequences).await;
    assert!(rig.metric("out_of_memory_halvings_total{model=m}") >= 3.0);
    rig.assert_idle().await;
}

#[tokio::test]
async fn a_panic_at_the_end_of_a_pass_fails_that_pass() {
    let (script, _) = queueing(|sequences| {
        assert!(sequences[0][0] != 1, "unlucky");
        Ok(())
    });
    let rig = Rig::with(&script);
    let first = rig.submit(client(vec![ids(1, 100)]));
    let second = rig.submit(client(vec![ids(2, 100)]));
    assert_eq!(first.wait().await, Err(EngineError::ModelFailed("the forward pass panicked: unlucky".to_owned())));
    second.wait().await.unwrap();
    rig.assert_idle().await;
}

#[tokio::test]
async fn a_device_that_is_lost_fails_everything_in_flight() {
    let latch = Arc::new(Latch::default());
    let inner = Arc::clone(&latch);
    let (script, events) = queueing(move |_| {
        // Else the device could be lost before all have been submitted.
        inner.pass();
        Err(ModelError::Device("fell off the bus".to_owned()))
    });
    let rig = Rig::with(&script);
    let tickets: Vec<_> = [1, 2, 3].map(|n| rig.submit(client(vec![ids(n, 100)]))).into();
    latch.reached().await;
    latch.open();
    for ticket in tickets {
        assert_eq!(ticket.wait().await, Err(EngineError::DeviceLost("device: fell off the bus".to_owned())));
    }
    assert!(events.all().iter().filter(|event| event.starts_with("finish")).count() == 1, "{:?}", events.all());
    assert!(!rig.engine.is_ready());
}

#[tokio::test]
async fn a_device_finishes_what_is_in_flight_before_it_loads_another_model() {
    let (script, events) = queueing(|_| Ok(()));
    let loads = events.clone();
    let other = Script::new("n").takes(60, 0).on_load(move || {
        loads.note("load", &[&[0]]);
        Ok(())
    });
    let rig = Rig::new(vec![script.takes(60, 0).model(false), other.model(false)], memory(100));
    let first = rig.submit(client(vec![ids(1, 100), ids(2, 100)]));
    let second = rig.submit(work("n", Class::Interactive, vec![ids(3, 100)]));
    first.wait().await.unwrap();
    second.wait().await.unwrap();
    assert_eq!(rig.states(), "ur");
    assert_eq!(events.all(), ["begin 1", "begin 2", "finish 1", "finish 2", "load 0"]);
}
