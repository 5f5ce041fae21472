//! Sequences to continue, beside sequences to score: the same queue, the same rules.

use super::rig::{
    Rig, RigSettings, Script, client, eventually, fake_next, fake_stats, held, ids, request, settings, stats,
};
use crate::engine::{Answered, Class, EngineError, Pass, Refusal, Request};
use lm::models::lora::LoadedAdapter;
use lm::models::{BatchStats, CausalLm, Continuation, Ending, GreedyPrompt, LoadedModel, ModelError, Pending};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// A prompt of `given` ids that begin with `first`. Its draft is what model `m` writes, but for the last id.
fn prompt(first: u32, given: usize, draft: usize) -> GreedyPrompt {
    let ids = ids(first, given);
    let mut drafted = written(&ids, draft);
    if let Some(last) = drafted.last_mut() {
        *last += 1;
    }
    GreedyPrompt { ids, draft: drafted.into(), most: draft + 5, ends: Arc::new([]) }
}

/// The ids that model `m` writes behind others.
fn written(ids: &[u32], count: usize) -> Vec<u32> {
    let mut sequence = ids.to_vec();
    for _ in 0..count {
        sequence.push(fake_next("m", &sequence));
    }
    sequence.split_off(ids.len())
}

/// Each pass gives as many ids as its draft has: all but the last are right, and the last one is replaced.
fn expected(prompts: &[GreedyPrompt]) -> Vec<Continuation> {
    let count = |prompt: &GreedyPrompt| prompt.draft.len().max(1);
    let continuation =
        |prompt: &GreedyPrompt| Continuation { ids: written(&prompt.ids, count(prompt)), ended: Ending::Length };
    prompts.iter().map(continuation).collect()
}

fn continuing(class: Class, prompts: Vec<GreedyPrompt>) -> Request {
    request("m", class, prompts.into_iter().map(Pass::continue_greedily))
}

fn continuations(answered: &Answered) -> Vec<Continuation> {
    answered.passes.iter().map(|pass| pass.continuation().expect("an answer").clone()).collect()
}

fn failed(reason: &str) -> EngineError {
    EngineError::ModelFailed(reason.to_owned())
}

#[tokio::test]
async fn continuations_and_scores_share_a_batch_and_each_has_its_own_answer() {
    let (script, latch, rig, first) = held().await;
    let prompts = vec![prompt(7, 5, 4), prompt(8, 3, 0), prompt(7, 5, 4)];
    let sequences = [ids(20, 10), ids(30, 12)];
    let mut mixed = continuing(Class::Interactive, vec![prompts[0].clone()]);
    mixed.add(Pass::score(Arc::clone(&sequences[0])));
    mixed.add(Pass::continue_greedily(prompts[1].clone()));
    mixed.add(Pass::score(Arc::clone(&sequences[1])));
    mixed.add(Pass::continue_greedily(prompts[2].clone()));
    let mixed = rig.submit(mixed);
    latch.open();
    first.wait().await.unwrap();
    let answered = mixed.wait().await.unwrap();
    assert_eq!((answered.forward_passes, answered.cached_passes), (5, 0), "equal prompts are two passes");
    let got: Vec<Continuation> = answered.passes.iter().filter_map(|pass| pass.continuation().cloned()).collect();
    assert_eq!(got, expected(&prompts));
    let got: Vec<_> = answered.passes.iter().filter_map(|pass| pass.stats().cloned()).collect();
    assert_eq!(got, sequences.iter().map(|ids| fake_stats("m", ids)).collect::<Vec<_>>());
    // The prompts of the batch ran in one forward pass, and its sequences in another.
    assert_eq!(script.firsts(), [vec![1], vec![7, 8, 7], vec![20, 30]]);
    rig.assert_idle().await;
}

#[tokio::test]
async fn a_continuation_is_neither_cached_nor_counted_as_scored() {
    let script = Script::new("m");
    let rig = Rig::new(vec![script.model(true)], RigSettings { cache_bytes: 1 << 20, ..settings() });
    for _ in 0..2 {
        let output = rig.run(continuing(Class::Interactive, vec![prompt(1, 10, 5)])).await;
        assert_eq!(continuations(&output), expected(&[prompt(1, 10, 5)]));
        assert!(output.passes.iter().all(|pass| pass.stats().is_none() && pass.filled().is_none()));
    }
    assert_eq!(script.forwards().len(), 2);
    assert_eq!(rig.metric("scored_tokens_total{model=m}"), 0.0);
    assert_eq!(rig.metric("cache_misses_total{model=m}"), 0.0);
}

#[tokio::test]
async fn a_prompt_takes_room_for_its_draft() {
    let script = Script::new("m");
    let rig = Rig::with(&script);
    let refusal = rig.refusal(continuing(Class::Interactive, vec![prompt(1, 900, 101)]));
    assert_eq!(refusal.to_string(), "1001 tokens exceed the queue of 1000 tokens");
    let refusal = rig.refusal(continuing(Class::Interactive, vec![prompt(1, 5000, 1)]));
    assert_eq!(refusal.to_string(), "5001 tokens exceed the model's context of 5000 tokens");
    let many: Vec<GreedyPrompt> = (0..50).map(|n| prompt(n, 60, 30)).collect();
    let output = rig.engine.submit_when_room(continuing(Class::Batch, many.clone())).await.unwrap();
    assert_eq!(continuations(&output.wait().await.unwrap()), expected(&many));
    rig.assert_idle().await;
}

#[tokio::test]
async fn a_masked_model_continues_nothing() {
    let masked = Script::new("m").masked();
    let rig = Rig::new(vec![masked.model(true)], settings());
    let refusal = rig.refusal(continuing(Class::Interactive, vec![prompt(1, 5, 0)]));
    assert_eq!(refusal, Refusal::WrongKind { model: "m".to_owned(), masked: true });
}

#[tokio::test]
async fn out_of_memory_halves_a_batch_and_a_failure_costs_its_request_alone() {
    let tight = Script::new("m").on_forward(|sequences| match sequences {
        [.., last] if last[0] == 13 => Err(ModelError::Forward("unlucky".to_owned())),
        sequences if sequences.len() > 2 => Err(ModelError::OutOfMemory(format!("{} sequences", sequences.len()))),
        _ => Ok(()),
    });
    let rig = Rig::with(&tight);
    let prompts: Vec<GreedyPrompt> = (20..26).map(|first| prompt(first, 4, 2)).collect();
    let output = rig.run(continuing(Class::Interactive, prompts.clone())).await;
    assert_eq!(continuations(&output), expected(&prompts));
    let unlucky = rig.submit(continuing(Class::Interactive, vec![prompt(13, 4, 2)])).wait().await;
    assert_eq!(unlucky, Err(failed("forward pass: unlucky")));
    rig.assert_idle().await;
}

#[tokio::test]
async fn what_nobody_waits_for_does_not_run() {
    let (script, latch, rig, first) = held().await;
    drop(rig.submit(continuing(Class::Interactive, vec![prompt(2, 10, 5); 3])));
    latch.open();
    first.wait().await.unwrap();
    eventually(|| rig.engine.status().interactive_tokens == 0).await;
    assert_eq!(script.firsts(), [[1]]);
    rig.assert_idle().await;
}

#[tokio::test]
async fn a_device_that_does_not_answer_is_asked_again() {
    let asked = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&asked);
    let script = Script::new("m").on_forward(move |_| match counted.fetch_add(1, Ordering::SeqCst) {
        0 => Err(ModelError::Unavailable { reason: "gone".to_owned(), had_batch: true, retry_after: None }),
        _ => Ok(()),
    });
    let rig = Rig::with(&script);
    let output = rig.run(continuing(Class::Interactive, vec![prompt(1, 6, 3)])).await;
    assert_eq!(continuations(&output), expected(&[prompt(1, 6, 3)]));
    assert_eq!(asked.load(Ordering::SeqCst), 2);
    rig.assert_idle().await;
}

/// A model that answers every prompt with this, where it continues texts.
struct Answering(Option<Vec<Continuation>>);

impl CausalLm for Answering {
    fn begin(&self, _: &[&[u32]], _: Option<&LoadedAdapter>) -> Result<Pending<BatchStats>, ModelError> {
        Ok(Pending::Ready(Vec::new()))
    }

    fn begin_continuation(
        &self,
        _: &[&GreedyPrompt],
        _: Option<&LoadedAdapter>,
    ) -> Result<Pending<Vec<Continuation>>, ModelError> {
        self.0.clone().map(Pending::Ready).ok_or_else(ModelError::continues_no_texts)
    }
}

/// An answer without an id would be asked for again without end.
#[tokio::test]
async fn an_answer_that_does_not_go_on_is_no_answer() {
    let answer = |ids: &[u32], ended| vec![Continuation { ids: ids.to_vec(), ended }];
    let wrong = || Err(failed("forward pass: answered with the wrong number of ids"));
    for (answers, outcome) in [
        (Some(vec![]), wrong()),
        (Some(answer(&[], Ending::Length)), wrong()),
        (Some(answer(&[1; 6], Ending::Length)), wrong()),
        (Some(answer(&[1; 5], Ending::Length)), Ok(answer(&[1; 5], Ending::Length))),
        (Some(answer(&[], Ending::EndToken)), Ok(answer(&[], Ending::EndToken))),
        (None, Err(failed("forward pass: this kind of model continues no texts"))),
    ] {
        let script = Script::new("m");
        let loader = Arc::new(move |_| Ok(LoadedModel::Causal(Box::new(Answering(answers.clone())) as Box<_>)));
        let rig = Rig::new(vec![script.loading(loader).model(true)], settings());
        let answered = rig.submit(continuing(Class::Interactive, vec![prompt(1, 5, 0)])).wait().await;
        assert_eq!(answered.map(|answered| continuations(&answered)), outcome);
    }
}

#[tokio::test]
async fn scores_are_still_those_of_sequences() {
    let rig = Rig::with(&Script::new("m"));
    let output = rig.run(client(vec![ids(1, 30)])).await;
    assert_eq!(stats(&output), [fake_stats("m", &ids(1, 30))]);
    assert!(output.passes.iter().all(|pass| pass.continuation().is_none()));
}
