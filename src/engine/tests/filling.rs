//! Blanks to fill, beside sequences to score: the same queue, the same rules.

use super::rig::{
    Rig, Script, blanks, client, eventually, fake_filled, fake_stats, fill_work, filled, ids, latched, settings, stats,
    work,
};
use crate::engine::{Class, EngineError, Refusal, Request};
use lm::models::masked::{Filled, MaskedPosition};
use lm::models::{LoadedModel, MaskedLm, ModelError};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Interactive work for the masked model `f`.
fn fills(blanks: Vec<MaskedPosition>) -> Request {
    fill_work("f", Class::Interactive, blanks)
}

fn expected(blanks: &[MaskedPosition]) -> Vec<Filled> {
    blanks.iter().map(|blank| fake_filled("f", blank)).collect()
}

/// A causal model `m` and a masked one `f` on one device.
fn both(causal: &Script, masked: &Script) -> Rig {
    Rig::new(vec![causal.model(true), masked.model(true)], settings())
}

#[test]
fn every_blank_of_a_request_is_a_pass() {
    let twice = [blanks(&ids(1, 4), 2), blanks(&ids(1, 4), 2)].concat();
    let request = fills(twice);
    assert_eq!(request.open_passes().count(), 4);
}

#[tokio::test]
async fn blanks_are_filled_beside_scoring() {
    let (causal, masked) = (Script::new("m"), Script::new("f").masked());
    let rig = both(&causal, &masked);
    let sequence = ids(1, 30);
    // 17 copies of 30 tokens and of 5: more than five batches, filled out of order.
    let wanted = [blanks(&sequence, 15), blanks(&ids(7, 5), 2)].concat();
    let filling = rig.submit(fills(wanted.clone()));
    let scoring = rig.submit(client(vec![sequence.clone()]));
    let output = filling.wait().await.unwrap();
    assert_eq!(filled(&output), expected(&wanted));
    assert_eq!((output.forward_passes, output.cached_passes), (17, 0));
    assert!(output.passes.iter().all(|pass| pass.stats().is_none()));
    let scored = scoring.wait().await.unwrap();
    assert_eq!(stats(&scored), [fake_stats("m", &sequence)]);
    assert!(scored.passes.iter().all(|pass| pass.filled().is_none()));
    for batch in masked.forwards() {
        assert!(batch.iter().map(Vec::len).sum::<usize>() <= 100);
    }
    assert_eq!(rig.metric("scored_tokens_total{model=f}"), 0.0);
    assert_eq!(rig.metric("cache_misses_total{model=f}"), 0.0);
    rig.assert_idle().await;
}

#[tokio::test]
async fn every_copy_takes_room() {
    let masked = Script::new("f").masked();
    let rig = Rig::new(vec![masked.model(true)], settings());
    let sequence = ids(1, 100);
    assert_eq!(rig.refusal(fills(blanks(&sequence, 11))).to_string(), "1100 tokens exceed the queue of 1000 tokens");
    rig.run(fills(blanks(&sequence, 10))).await;
    assert_eq!(
        rig.refusal(fills(blanks(&ids(1, 5001), 1))).to_string(),
        "5001 tokens exceed the model's context of 5000 tokens"
    );
    // Batch work is fed in as there is room.
    let many = blanks(&sequence, 50);
    let ticket = rig.engine.submit_when_room(fill_work("f", Class::Batch, many.clone())).await.unwrap();
    assert_eq!(filled(&ticket.wait().await.unwrap()), expected(&many));
    rig.assert_idle().await;
}

#[tokio::test]
async fn the_wrong_kind_of_model_is_refused() {
    let (causal, masked) = (Script::new("m"), Script::new("f").masked());
    let rig = both(&causal, &masked);
    let refusal = rig.refusal(work("f", Class::Interactive, vec![ids(1, 10)]));
    assert_eq!(refusal, Refusal::WrongKind { model: "f".to_owned(), masked: true });
    assert_eq!(refusal.to_string(), "model `f` is a masked model, which gives no probabilities of texts");
    let wrong = fill_work("m", Class::Batch, blanks(&ids(1, 10), 1));
    let refusal = rig.engine.submit_when_room(wrong).await.unwrap_err();
    assert_eq!(refusal.to_string(), "model `m` is a causal model, which fills no masked positions");
    assert_eq!(rig.metric("requests_total{class=interactive,outcome=wrong_kind}"), 1.0);
    assert_eq!(rig.metric("requests_total{class=batch,outcome=wrong_kind}"), 1.0);
    assert!(causal.forwards().is_empty() && masked.forwards().is_empty());
    rig.assert_idle().await;
}

/// A model loads as another kind than was declared.
#[tokio::test]
async fn a_model_that_turns_out_to_be_of_the_wrong_kind_fails() {
    let (causal, masked) = (Script::new("m"), Script::new("f").masked());
    let load = |script: &Script| script.opened(&[0]).load.clone();
    let (m, f) = (causal.loading(load(&masked)), masked.loading(load(&causal)));
    let rig = Rig::new(vec![m.model(true), f.model(true)], settings());
    let scoring = rig.submit(client(vec![ids(1, 10)])).wait().await;
    let failed = |reason: &str| Err(EngineError::ModelFailed(reason.to_owned()));
    assert_eq!(scoring, failed("forward pass: a masked model scores no sequences"));
    let filling = rig.submit(fills(blanks(&ids(1, 10), 1))).wait().await;
    assert_eq!(filling, failed("forward pass: a causal model fills no masked positions"));
    assert!(rig.engine.is_ready());
}

#[tokio::test]
async fn out_of_memory_halves_a_batch_of_blanks() {
    let tight = Script::new("f").masked().on_forward(|sequences| match sequences.len() {
        0..=3 => Ok(()),
        copies => Err(ModelError::OutOfMemory(format!("{copies} copies"))),
    });
    let rig = Rig::new(vec![tight.model(true)], settings());
    let wanted = blanks(&ids(1, 10), 10);
    let output = rig.run(fills(wanted.clone())).await;
    assert_eq!(filled(&output), expected(&wanted));
    assert_eq!(output.forward_passes, 10, "counted once each, however often they were tried");
    let sizes: Vec<_> = tight.forwards().iter().map(Vec::len).collect();
    assert_eq!(sizes, [10, 5, 3, 2, 5, 3, 2]);
    assert_eq!(rig.metric("out_of_memory_halvings_total{model=f}"), 3.0);
    rig.assert_idle().await;
}

#[tokio::test]
async fn blanks_that_nobody_waits_for_do_not_run() {
    let (masked, latch) = latched("f");
    let masked = masked.masked();
    let rig = Rig::new(vec![masked.model(true)], settings());
    let first = rig.submit(fills(blanks(&ids(1, 100), 1)));
    latch.reached().await;
    let cancelled = rig.submit(fills(blanks(&ids(2, 100), 5)));
    let mut late = fills(blanks(&ids(3, 100), 2));
    late.deadline = Some(Instant::now() + Duration::from_millis(20));
    let late = rig.submit(late);
    drop(cancelled);
    assert_eq!(late.wait().await, Err(EngineError::DeadlineExceeded));
    latch.open();
    first.wait().await.unwrap();
    eventually(|| rig.engine.status().interactive_tokens == 0).await;
    assert_eq!(masked.firsts(), [[1]]);
    assert_eq!(rig.metric("dropped_sequences_total{reason=abandoned}"), 5.0);
    assert_eq!(rig.metric("dropped_sequences_total{reason=deadline}"), 2.0);
    rig.assert_idle().await;
}

#[tokio::test]
async fn a_failure_costs_the_request_and_no_other() {
    let masked = Script::new("f").masked().on_forward(|sequences| match sequences[0][0] {
        13 => panic!("unlucky"),
        _ => Ok(()),
    });
    let rig = Rig::new(vec![masked.model(true)], settings());
    let unlucky = rig.submit(fills(blanks(&ids(13, 60), 3))).wait().await;
    assert_eq!(unlucky, Err(EngineError::ModelFailed("the forward pass panicked: unlucky".to_owned())));
    let wanted = blanks(&ids(1, 60), 3);
    let output = rig.run(fills(wanted.clone())).await;
    assert_eq!(filled(&output), expected(&wanted));
    rig.assert_idle().await;
}

#[tokio::test]
async fn an_answer_for_too_few_blanks_is_no_answer() {
    struct Short;
    impl MaskedLm for Short {
        fn fill(&self, _: &[&MaskedPosition]) -> Result<Vec<Filled>, ModelError> {
            Ok(Vec::new())
        }
    }
    let script = Script::new("f").masked();
    let script = script.loading(Arc::new(|_| Ok(LoadedModel::Masked(Box::new(Short)))));
    let rig = Rig::new(vec![script.model(true)], settings());
    let output = rig.submit(fills(blanks(&ids(1, 10), 2))).wait().await;
    assert!(
        matches!(output, Err(EngineError::ModelFailed(reason)) if reason.contains("wrong number of masked positions"))
    );
}
