//! Greedy continuations of every family against transformers, and with any draft.

use crate::common::goldens::{CAUSAL, directory};
use candle_core::{DType, Device};
use lm::models::checkpoint::Checkpoint;
use lm::models::continuation::GreedyDecoding;
use lm::models::demo::DEMO;
use lm::models::files::ModelFiles;
use lm::models::ops::Form;
use lm::models::{CausalLm, Continuation, Ending, GreedyPrompt, ModelError};
use serde::Deserialize;
use std::collections::HashSet;
use std::sync::Arc;

/// A case of `tests/interop/continuations.py`.
#[derive(Deserialize)]
struct Case {
    golden: String,
    ids: Vec<u32>,
    ends: Vec<u32>,
    continuation: Vec<u32>,
    ended: bool,
}

fn cases() -> Vec<Case> {
    serde_json::from_str(include_str!("../../../../tests/fixtures/continuations.json")).unwrap()
}

fn opened(golden: &str) -> Checkpoint {
    Checkpoint::open(&ModelFiles::Directory(directory(golden))).unwrap()
}

fn loaded(checkpoint: &Checkpoint, form: Form, dtype: DType) -> Box<dyn CausalLm> {
    checkpoint.load_in(form, dtype, &Device::Cpu).unwrap().causal().unwrap()
}

fn step(model: &dyn CausalLm, prompts: &[&GreedyPrompt]) -> Result<Vec<Continuation>, ModelError> {
    model.begin_continuation(prompts, None)?.wait()
}

/// The continuation, and the number of passes that it took.
fn decoded(model: &dyn CausalLm, ids: &[u32], reference: &[u32], wanted: usize, ends: &[u32]) -> (Continuation, usize) {
    let mut decoding = GreedyDecoding::new(ids, reference.into(), wanted, ends.into());
    let mut passes = 0;
    while let Some(prompt) = decoding.next_prompt() {
        decoding.add(&step(model, &[&prompt]).unwrap()[0]);
        passes += 1;
    }
    (decoding.finish(), passes)
}

/// Compares a model's continuation with the golden one for three drafts: the continuation itself, the same with every seventh token
/// replaced, and none.
fn check(case: &Case, model: &dyn CausalLm) {
    const WANTED: usize = 40;
    let ended = if case.ended { Ending::EndToken } else { Ending::Length };
    let expected = Continuation { ids: case.continuation.clone(), ended };
    let changed: Vec<u32> =
        case.continuation.iter().enumerate().map(|(place, id)| if place % 7 == 3 { id / 2 } else { *id }).collect();
    let passes = [&case.continuation[..], &changed, &[]].map(|draft| {
        let (continuation, passes) = decoded(model, &case.ids, draft, WANTED, &case.ends);
        assert_eq!(continuation, expected, "{}", case.golden);
        passes
    });
    assert_eq!((passes[0], passes[2]), (1, case.continuation.len()), "{}", case.golden);
    assert!(passes[1] <= passes[2], "{}: {passes:?}", case.golden);
}

#[test]
fn continuations_of_every_family_are_those_of_transformers() {
    let cases = cases();
    let goldens: HashSet<&str> = cases.iter().map(|case| case.golden.as_str()).collect();
    assert_eq!(goldens, HashSet::from(CAUSAL));
    assert!(cases.iter().filter(|case| case.ended).count() > 15);
    for golden in CAUSAL {
        let checkpoint = opened(golden);
        let model = loaded(&checkpoint, checkpoint.form(DType::F32, &Device::Cpu).unwrap(), DType::F32);
        cases.iter().filter(|case| case.golden == golden).for_each(|case| check(case, &*model));
    }
}

/// In candle's operations, which a GPU has as well.
#[test]
fn the_plain_form_writes_the_same() {
    let cases = cases();
    for golden in ["gptneox-parallel", "gemma2", "gpt2", "mamba2"] {
        let model = loaded(&opened(golden), Form::Plain, DType::F32);
        cases.iter().filter(|case| case.golden == golden).for_each(|case| check(case, &*model));
    }
}

/// In bf16 the numbers are others, but a draft changes nothing there either.
#[test]
fn in_half_precision_a_draft_changes_nothing() {
    let checkpoint = opened("gptneox-bf16");
    let form = checkpoint.form(DType::BF16, &Device::Cpu).unwrap();
    let model = loaded(&checkpoint, form, DType::BF16);
    for case in cases().iter().filter(|case| case.golden == "gptneox-bf16") {
        let (plain, _) = decoded(&*model, &case.ids, &[], 30, &case.ends);
        for draft in [&plain.ids, &case.continuation] {
            assert_eq!(decoded(&*model, &case.ids, draft, 30, &case.ends).0, plain);
        }
    }
}

#[test]
fn a_continuation_does_not_depend_on_the_batch() {
    let checkpoint = Checkpoint::open(&DEMO).unwrap();
    let model = loaded(&checkpoint, checkpoint.form(DType::F32, &Device::Cpu).unwrap(), DType::F32);
    let prompt = |number: u32| GreedyPrompt {
        ids: (number..).take(1 + number as usize * 5 % 17).collect(),
        draft: (number..).take(number as usize * 7 % 23).collect(),
        most: 30,
        ends: Arc::new([]),
    };
    let prompts: Vec<GreedyPrompt> = (1..20).map(prompt).collect();
    let together = step(&*model, &prompts.iter().collect::<Vec<_>>()).unwrap();
    for (prompt, continuation) in prompts.iter().zip(together) {
        assert_eq!(step(&*model, &[prompt]).unwrap(), [continuation]);
    }
    assert!(step(&*model, &[]).unwrap().is_empty());
}

#[test]
fn what_cannot_be_continued_says_why() {
    let checkpoint = opened("llama-gqa");
    let model = loaded(&checkpoint, checkpoint.form(DType::F32, &Device::Cpu).unwrap(), DType::F32);
    let failed = |ids: Vec<u32>, draft: Vec<u32>| {
        let prompt = GreedyPrompt { ids: ids.into(), draft: draft.into(), most: 9, ends: [].into() };
        step(&*model, &[&prompt]).unwrap_err().to_string()
    };
    assert_eq!(failed(vec![], vec![5]), "forward pass: a sequence without ids cannot be continued");
    assert_eq!(failed(vec![5], vec![99_999]), "forward pass: token id 99999 is outside the model's vocabulary of 520");
    let long = "forward pass: a sequence of 130 tokens exceeds the model's context of 128";
    assert_eq!(failed(vec![5; 129], vec![6]), long);
}

#[test]
fn the_ids_that_end_a_text_are_those_of_the_files() {
    for case in cases().iter().filter(|case| case.ends.len() == 1) {
        assert_eq!(opened(&case.golden).ends().as_deref(), Ok(&case.ends[..]), "{}", case.golden);
    }
    assert_eq!(Checkpoint::open(&DEMO).unwrap().ends().as_ref().map(|ends| ends.len()), Ok(1));
}
