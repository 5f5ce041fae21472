//! Failures stay narrow, and losses are reported.

use super::rig::{Rig, Script, answered, audit, client, eventually, fake_stats, ids, latched, settings, stats, work};
use crate::engine::{Class, EngineError, Refusal};
use crate::pool::ModelState;
use lm::models::lora::LoadedAdapter;
use lm::models::{BatchStats, CausalLm, LoadedModel, ModelError, Pending};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// A model without memory for more than `limit` tokens.
fn tight(limit: usize) -> Script {
    Script::new("m").on_forward(move |sequences| {
        let tokens: usize = sequences.iter().map(|ids| ids.len()).sum();
        if tokens > limit {
            return Err(ModelError::OutOfMemory(format!("{tokens} tokens")));
        }
        Ok(())
    })
}

#[tokio::test]
async fn out_of_memory_halves_the_batch_and_lowers_the_budget() {
    let script = tight(30);
    let rig = Rig::with(&script);
    let sequences: Vec<_> = (1..=12).map(|n| ids(n, 10)).collect();
    rig.run_checked(client, &sequences).await;
    // 100 and 50 tokens did not fit, 20 and 30 did; from then on batches are formed small.
    let sizes: Vec<_> = script.forwards().iter().map(Vec::len).collect();
    assert_eq!(sizes, [10, 5, 3, 2, 5, 3, 2, 2]);
    assert_eq!(rig.metric("out_of_memory_halvings_total{model=m}"), 3.0);
    assert_eq!(rig.metric("forwards_total{model=m,outcome=out_of_memory}"), 3.0);
    rig.assert_idle().await;
}

#[tokio::test]
async fn a_sequence_that_does_not_fit_fails_its_request_alone() {
    let (script, latch) = latched("m");
    let inner = tight(30);
    let script = script.on_forward({
        let latch = latch.clone();
        move |sequences| {
            latch.pass();
            inner.run(0, sequences).map(drop)
        }
    });
    let rig = Rig::with(&script);
    let first = rig.submit(client(vec![ids(1, 10)]));
    latch.reached().await;
    let fits = rig.submit(client(vec![ids(2, 10)]));
    let not = rig.submit(client(vec![ids(3, 40)]));
    let fits_too = rig.submit(client(vec![ids(4, 10)]));
    latch.open();
    let error = not.wait().await.unwrap_err();
    assert_eq!(error, EngineError::ModelFailed("out of memory: 40 tokens".to_owned()));
    answered([first, fits, fits_too]).await;
    rig.assert_idle().await;
}

/// One batch of many clients, in which one sequence makes the forward pass fail.
#[tokio::test]
async fn a_failing_sequence_fails_alone_among_other_clients_in_its_batch() {
    for panics in [true, false] {
        let latch = Arc::new(super::rig::Latch::default());
        let inner = Arc::clone(&latch);
        let script = Script::new("m").on_forward(move |sequences| {
            if sequences.iter().any(|ids| ids[0] == 99) {
                inner.pass();
            }
            match sequences.iter().any(|ids| ids[0] == 13) {
                true if panics => panic!("unlucky"),
                true => Err(ModelError::Tensor { name: "h".to_owned(), reason: "shape".to_owned() }),
                false => Ok(()),
            }
        });
        let rig = Rig::with(&script);
        let first = rig.submit(client(vec![ids(99, 10)]));
        latch.reached().await;
        let requests: Vec<_> = (10..18).map(|first| (first, rig.submit(client(vec![ids(first, 10)])))).collect();
        latch.open();
        first.wait().await.unwrap();
        for (first, request) in requests {
            match request.wait().await {
                Ok(output) => assert_eq!(stats(&output), [fake_stats("m", &ids(first, 10))]),
                Err(error) => assert!(first == 13 && matches!(error, EngineError::ModelFailed(_)), "{first}: {error}"),
            }
        }
        // Eight together, then the half with the thirteenth, and so on.
        let sizes: Vec<usize> = script.forwards().iter().map(Vec::len).collect();
        assert_eq!(sizes, [1, 8, 4, 2, 2, 1, 1, 4]);
        assert_eq!(rig.metric("out_of_memory_halvings_total{model=m}"), 0.0);
        rig.assert_idle().await;
    }
}

#[tokio::test]
async fn a_panic_or_an_error_costs_that_batch_and_no_more() {
    let script = Script::new("m").on_forward(|sequences| match sequences[0][0] {
        13 => panic!("unlucky"),
        14 => Err(ModelError::Tensor { name: "h".to_owned(), reason: "shape".to_owned() }),
        _ => Ok(()),
    });
    let rig = Rig::with(&script);
    let run = async |first| {
        let ticket = rig.submit(client(vec![ids(first, 10)]));
        ticket.wait().await
    };
    let failed = |reason: &str| Err(EngineError::ModelFailed(reason.to_owned()));
    assert_eq!(run(13).await, failed("the forward pass panicked: unlucky"));
    assert!(rig.engine.status().last_error.is_some());
    assert_eq!(run(14).await, failed("tensor `h`: shape"));
    assert!(run(15).await.is_ok());
    assert!(rig.engine.is_ready());
    assert!(rig.engine.status().last_ok.is_some());
    assert_eq!(rig.metric("forwards_total{model=m,outcome=panicked}"), 1.0);
    assert_eq!(rig.metric("forwards_total{model=m,outcome=failed}"), 1.0);
    assert_eq!(rig.metric("forwards_total{model=m,outcome=ok}"), 1.0);
    assert_eq!(rig.metric("requests_total{class=interactive,outcome=model_failed}"), 2.0);
    rig.assert_idle().await;
}

#[tokio::test]
async fn an_answer_of_the_wrong_shape_is_no_answer() {
    struct Short;
    impl CausalLm for Short {
        fn begin(&self, sequences: &[&[u32]], _: Option<&LoadedAdapter>) -> Result<Pending<BatchStats>, ModelError> {
            Ok(Pending::Ready(sequences.iter().map(|_| Vec::new()).collect()))
        }
    }
    let script = Script::new("m").loading(Arc::new(|_| Ok(LoadedModel::Causal(Box::new(Short)))));
    let rig = Rig::with(&script);
    let ticket = rig.submit(client(vec![ids(1, 10)]));
    assert!(matches!(ticket.wait().await, Err(EngineError::ModelFailed(_))));
}

#[tokio::test]
async fn a_lost_device_is_lost_for_all_and_for_ever() {
    let (script, latch) = latched("m");
    let inner = latch.clone();
    let script = script.on_forward(move |_| {
        inner.pass();
        Err(ModelError::Device("fell off the bus".to_owned()))
    });
    let rig = Rig::with(&script);
    rig.engine.wait_until_loaded().await.unwrap();
    let first = rig.submit(client(vec![ids(1, 10)]));
    latch.reached().await;
    assert!(rig.engine.is_ready());
    let queued = rig.submit(client(vec![ids(2, 100)]));
    let feeding = rig.feed(20);
    eventually(|| rig.engine.status().batch_tokens == 400).await;
    latch.open();
    let reason = "device: fell off the bus".to_owned();
    assert_eq!(rig.engine.device_lost().await, reason);
    let lost = Err(EngineError::DeviceLost(reason.clone()));
    assert_eq!(first.wait().await, lost);
    assert_eq!(queued.wait().await, lost);
    assert_eq!(feeding.await.unwrap().unwrap().wait().await, lost);
    assert_eq!(script.forwards().len(), 1);

    assert!(!rig.engine.is_ready());
    assert_eq!(rig.refusal(client(vec![ids(1, 10)])), Refusal::DeviceLost(reason.clone()));
    eventually(|| !rig.engine.status().device_alive()).await;
    let status = rig.engine.status();
    assert_eq!(status.device_lost, Some(reason));
    assert_eq!((status.interactive_tokens, status.batch_tokens), (0, 0));
    assert_eq!(rig.metric("queue_tokens{class=interactive}"), 0.0);
    assert_eq!(rig.metric("queue_tokens{class=batch}"), 0.0);
    rig.engine.shutdown(std::time::Duration::ZERO);
}

#[tokio::test]
async fn a_failed_load_fails_those_that_wait_and_is_tried_again() {
    let (eager, latch) = latched("m");
    let attempts = AtomicUsize::new(0);
    let lazy = Script::new("n").on_load(move || match attempts.fetch_add(1, Ordering::Relaxed) {
        0 => Err(ModelError::File { path: "model.safetensors".to_owned(), reason: "not there".to_owned() }),
        1 => panic!("corrupt"),
        _ => Ok(()),
    });
    let rig = Rig::new(vec![eager.model(true), lazy.model(false)], settings());
    let first = rig.submit(client(vec![ids(1, 10)]));
    latch.reached().await;
    let lazy_work = |n| work("n", Class::Interactive, vec![ids(n, 90)]);
    // Two batches' worth: both fail with the one attempt.
    let waiting = [2, 3].map(|n| rig.submit(lazy_work(n)));
    latch.open();
    first.wait().await.unwrap();
    let reason = "model.safetensors: not there".to_owned();
    for ticket in waiting {
        assert_eq!(ticket.wait().await, Err(EngineError::LoadFailed(reason.clone())));
    }
    assert_eq!(rig.metric("model_loads_total{model=n,outcome=failed}"), 1.0);
    assert_eq!(rig.state(1), ModelState::Failed(reason));
    assert!(rig.engine.is_ready(), "readiness waits for eager models only");

    // It may be too early to try again; that is said at once, and costs the device nothing.
    let mut last = String::new();
    let output = loop {
        match rig.engine.submit(lazy_work(4)) {
            Ok(ticket) => match ticket.wait().await {
                Ok(output) => break output,
                Err(EngineError::LoadFailed(reason)) => last = reason,
                Err(error) => panic!("{error}"),
            },
            Err(Refusal::ModelFailed(_)) => tokio::task::yield_now().await,
            Err(refusal) => panic!("{refusal}"),
        }
    };
    assert_eq!(last, "loading panicked: corrupt");
    assert_eq!(output.forward_passes, 1);
    assert_eq!(rig.metric("model_loads_total{model=n,outcome=ok}"), 1.0);
}

#[tokio::test]
async fn an_audit_of_a_broken_model_stops_feeding() {
    let script =
        Script::new("m").on_forward(|_| Err(ModelError::Config { key: "k".to_owned(), reason: "bad".to_owned() }));
    let rig = Rig::with(&script);
    let sequences = (1..=1000).map(|n| ids(n, 100)).collect();
    let ticket = rig.engine.submit_when_room(audit(sequences)).await.unwrap();
    assert!(matches!(ticket.wait().await, Err(EngineError::ModelFailed(_))));
    // At most what had entered the window by then.
    assert!(script.forwards().len() < 1000);
    rig.assert_idle().await;
}
