//! Order of execution, seen from outside.

use super::rig::{Rig, Script, answered, audit, client, eventually, held, ids, latched, work};
use crate::engine::Class;

#[tokio::test]
async fn a_batch_grows_while_the_device_is_busy() {
    let (script, latch, rig, first) = held().await;
    let waiting: Vec<_> = (2..=9).map(|n| rig.submit(client(vec![ids(n, 20)]))).collect();
    latch.open();
    first.wait().await.unwrap();
    answered(waiting).await;
    assert_eq!(script.firsts(), [vec![1], vec![2, 3, 4, 5, 6], vec![7, 8, 9]]);
}

#[tokio::test]
async fn a_client_overtakes_an_audit() {
    let (script, latch) = latched("m");
    let rig = Rig::with(&script);
    let first = rig.submit(audit(vec![ids(1, 90)]));
    latch.reached().await;
    let rest = rig.submit(audit(vec![ids(2, 90), ids(3, 90)]));
    let client = rig.submit(client(vec![ids(9, 5)]));
    latch.open();
    answered([first, rest, client]).await;
    // And it does not pay for the audit's texts, though they would fit in its batch.
    assert_eq!(script.firsts(), [[1], [9], [2], [3]]);
}

#[tokio::test]
async fn clients_do_not_starve_an_audit() {
    let (script, latch, rig, first) = held().await;
    let audit = rig.submit(audit(vec![ids(1000, 90)]));
    let clients: Vec<_> = (2..=10).map(|n| rig.submit(client(vec![ids(n, 100)]))).collect();
    latch.open();
    answered(clients.into_iter().chain([first, audit])).await;
    // Four budgets of clients' tokens pass, then comes its turn.
    let order: Vec<_> = script.firsts().concat();
    assert_eq!(order, [1, 2, 3, 4, 5, 1000, 6, 7, 8, 9, 10]);
}

#[tokio::test]
async fn models_take_turns_by_age() {
    let (script, latch) = latched("m");
    let other = Script::new("n");
    let sources = vec![script.model(true), other.model(true)];
    let rig = Rig::new(sources, super::rig::settings());
    let first = rig.submit(client(vec![ids(1, 10)]));
    latch.reached().await;
    let tickets: Vec<_> = [("n", 2), ("m", 3), ("n", 4), ("m", 5)]
        .map(|(model, n)| work(model, Class::Interactive, vec![ids(n, 10)]))
        .map(|work| rig.submit(work))
        .into();
    latch.open();
    answered(tickets.into_iter().chain([first])).await;
    assert_eq!(other.firsts(), [[2, 4]]);
    assert_eq!(script.firsts(), [vec![1], vec![3, 5]]);
}

#[tokio::test]
async fn an_audit_holds_no_more_than_its_window() {
    let (script, latch) = latched("m");
    let rig = Rig::with(&script);
    let feeding = rig.feed(20);
    latch.reached().await;
    eventually(|| rig.engine.status().batch_tokens == 400).await;
    assert!(!feeding.is_finished());
    latch.open();
    let output = feeding.await.unwrap().unwrap().wait().await.unwrap();
    assert_eq!(output.forward_passes, 20);
    rig.assert_idle().await;
}

#[tokio::test]
async fn an_audit_given_up_while_it_is_fed_leaves_nothing() {
    let (script, latch) = latched("m");
    let rig = Rig::with(&script);
    let feeding = rig.feed(20);
    latch.reached().await;
    eventually(|| rig.engine.status().batch_tokens == 400).await;
    feeding.abort();
    assert!(feeding.await.is_err());
    assert_eq!(rig.metric("requests_total{class=batch,outcome=cancelled}"), 1.0);
    latch.open();
    eventually(|| rig.engine.status().batch_tokens == 0).await;
    assert_eq!(script.firsts(), [[1]]);
    assert_eq!(rig.metric("dropped_sequences_total{reason=abandoned}"), 3.0);
    rig.assert_idle().await;
}

/// Ten thousand sequences of one request: quadratic behaviour would show as minutes.
#[tokio::test]
async fn a_long_queue_is_served() {
    let script = Script::new("m");
    let mut wide = super::rig::settings();
    wide.max_queue_tokens = 1_000_000;
    let rig = Rig::new(vec![script.model(true)], wide);
    let sequences = (0..10_000).map(|n| ids(n, 2 + n as usize % 60)).collect();
    let output = rig.run(client(sequences)).await;
    assert_eq!(output.forward_passes, 10_000);
}
