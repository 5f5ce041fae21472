//! Budgets by trial: the choice as a pure function of what passes take, and trials through the engine.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use proptest::prelude::*;

use super::rig::{Calibrated, Known, Rig, Script, Settings, client, ids, settings, two_devices};
use crate::engine::device::{BudgetChoice, TimedPass, Trial};
use crate::engine::{EngineError, KnownBudgets};
use lm::models::ModelError;

const LADDER: &[usize] = &[512, 1_024, 2_048, 4_096, 8_192];
const TRIAL: Trial<'static> = Trial { ladder: LADDER, reach: usize::MAX, default: 2_048, time: Duration::from_secs(1) };

/// Runs a trial of a model whose passes take so many seconds, none where one fails. Tells the choice, and what ran.
fn run(trial: Trial<'_>, seconds: impl Fn(usize) -> Option<f64>) -> (BudgetChoice, Vec<usize>) {
    let mut ran = Vec::new();
    let choice = trial.run(|tokens| {
        ran.push(tokens);
        Some(TimedPass { tokens: tokens.max(100), took: Duration::from_secs_f64(seconds(tokens.max(100))?) })
    });
    (choice, ran)
}

/// So much for a pass, and so much for a token.
fn affine(pass: f64, token: f64) -> impl Fn(usize) -> Option<f64> {
    move |tokens| Some(pass + token * tokens as f64)
}

fn lasting(tokens: usize) -> BudgetChoice {
    BudgetChoice { tokens, holds_to: usize::MAX }
}

/// Where memory ended the trial.
fn limited(tokens: usize, holds_to: usize) -> BudgetChoice {
    BudgetChoice { tokens, holds_to }
}

fn passing(tokens: usize) -> BudgetChoice {
    BudgetChoice { tokens, holds_to: 0 }
}

#[test]
fn the_smallest_budget_wins_that_is_about_as_fast_as_the_best() {
    // A pass costs as much as so many tokens more, so budgets lack 512/(512+f) and so on to the full speed.
    let fixed = |tokens: f64| run(TRIAL, affine(tokens * 1e-6, 1e-6)).0;
    assert_eq!(fixed(0.0), lasting(512));
    assert_eq!(fixed(15.0), lasting(512), "2.7 % below the largest");
    assert_eq!(fixed(20.0), lasting(1_024), "3.5 % and 1.7 %");
    assert_eq!(fixed(100.0), lasting(4_096), "4.5 % and 2.4 % below infinity, 3.5 % and 1.2 % below the largest");
    assert_eq!(fixed(10_000.0), lasting(8_192));
    // Larger is slower, as where a batch no longer fits in a cache.
    let (choice, ran) = run(TRIAL, |tokens| Some(1e-6 * tokens as f64 * if tokens > 1_024 { 1.5 } else { 1.0 }));
    assert_eq!(choice, lasting(512));
    assert_eq!(ran, [&[1, 1], LADDER, LADDER].concat(), "two of one text, and all of it twice");
}

#[test]
fn the_faster_of_two_passes_counts() {
    let calls = AtomicUsize::new(0);
    // What else the machine does slows down the first passes of all but the largest.
    let seconds = |tokens: usize| {
        let disturbed = calls.fetch_add(1, Ordering::Relaxed) < LADDER.len() && tokens < 8_192;
        Some(tokens as f64 * if disturbed { 1e-4 } else { 1e-6 })
    };
    assert_eq!(run(TRIAL, seconds).0, lasting(512));
}

#[test]
fn time_ends_the_trial() {
    // 1,500 tokens a second: a text of 0.07 s, 0.34 s, 0.68 s.
    let (choice, ran) = run(TRIAL, affine(0.0, 1.0 / 1_500.0));
    assert_eq!((choice, &ran[..]), (lasting(512), &[1, 1, 512, 1_024][..]), "what was compared is known");
    // The same with a speed that still rises: nobody knows beyond, and the default takes 1.7 s.
    let (choice, ran) = run(TRIAL, affine(0.1, 1.0 / 1_500.0));
    assert_eq!((choice, &ran[..]), (lasting(2_048), &[1, 1, 512, 1_024][..]));
    // 800 tokens a second: nothing to compare with, and 1,600 tokens are within two seconds.
    let (choice, ran) = run(TRIAL, |tokens| Some(tokens as f64 / if tokens > 100 { 500.0 } else { 50_000.0 }));
    assert_eq!((choice, &ran[..]), (lasting(512), &[1, 1, 512][..]), "1,000 tokens in two seconds");
    let (choice, _) = run(TRIAL, |tokens| Some(tokens as f64 / if tokens > 100 { 511.0 } else { 50_000.0 }));
    assert_eq!(choice, lasting(512), "1,022 tokens in two seconds");
    let (choice, _) = run(TRIAL, |tokens| Some(tokens as f64 / if tokens > 100 { 512.0 } else { 50_000.0 }));
    assert_eq!(choice, lasting(1_024), "1,024 tokens in two seconds");
    // Billions of parameters: one text takes longer than all the time there is.
    let (choice, ran) = run(TRIAL, affine(0.0, 0.1));
    assert_eq!((choice, &ran[..]), (passing(512), &[1, 1][..]));
    // No time at all, and a fast model.
    let (choice, ran) = run(Trial { time: Duration::ZERO, ..TRIAL }, affine(0.0, 1e-6));
    assert_eq!((choice, &ran[..]), (passing(2_048), &[1, 1][..]));
}

/// The first pass on a GPU compiles kernels: here for ten times as long as a trial may take.
#[test]
fn a_long_warm_up_is_not_counted() {
    let calls = AtomicUsize::new(0);
    let seconds = |tokens: usize| {
        let compiles = calls.fetch_add(1, Ordering::Relaxed) == 0;
        Some(1e-6 * tokens as f64 + if compiles { 10.0 } else { 0.0 })
    };
    let (choice, ran) = run(TRIAL, seconds);
    assert_eq!(choice, lasting(512));
    assert_eq!(ran, [&[1, 1], LADDER, LADDER].concat());
}

#[test]
fn memory_ends_the_trial() {
    let rising = || affine(0.1, 1e-6);
    let (choice, ran) = run(Trial { reach: 1_500, ..TRIAL }, rising());
    assert_eq!(choice, limited(2_048, 1_500), "what fits later may be larger, and then there is more to try");
    assert!(ran.iter().all(|tokens| *tokens <= 1_500), "{ran:?}");
    assert_eq!(run(Trial { reach: 5_000, time: Duration::from_secs(9), ..TRIAL }, rising()).0, limited(4_096, 5_000));
    assert_eq!(run(Trial { reach: 1_500, ..TRIAL }, affine(0.0, 1e-6)).0, lasting(512), "more would bring nothing");
    // 100 tokens in 0.1 s are 2,000 in two.
    assert_eq!(run(Trial { reach: 100, ..TRIAL }, rising()), (limited(1_024, 100), vec![1, 1]));
}

#[test]
fn a_pass_that_fails_ends_the_trial() {
    let failing = |from: usize| move |tokens: usize| (tokens < from).then_some(0.01 + 1e-6 * tokens as f64);
    assert_eq!(run(TRIAL, |_| None), (passing(2_048), vec![1]), "the default stays");
    assert_eq!(run(TRIAL, failing(512)), (passing(100), vec![1, 1, 512]), "nor where that is but one text");
    assert_eq!(run(TRIAL, failing(1_024)), (passing(512), vec![1, 1, 512, 1_024]), "no more than has run");
    assert_eq!(run(TRIAL, failing(8_192)).0, passing(4_096));
    // The second time.
    let calls = AtomicUsize::new(0);
    let (choice, ran) =
        run(TRIAL, |tokens| (calls.fetch_add(1, Ordering::Relaxed) < 7).then_some(0.01 + 1e-6 * tokens as f64));
    assert_eq!((choice, ran.len()), (passing(8_192), 8));
}

proptest! {
    #[test]
    fn whatever_passes_take_the_rules_hold(
        seconds in proptest::collection::vec(proptest::option::weighted(0.95, 0.0..2.0_f64), 12),
        reach in 1..10_000_usize,
        time in 0.0..4.0_f64,
    ) {
        let calls = AtomicUsize::new(0);
        let trial = Trial { reach, time: Duration::from_secs_f64(time), ..TRIAL };
        let next = |_| seconds[calls.fetch_add(1, Ordering::Relaxed)];
        let (choice, ran) = run(trial, next);
        // Of the ladder, but where its first budget failed: then the one text before it.
        let first_failed = ran.len() == 3 && seconds[2].is_none();
        let is_allowed = if first_failed { choice.tokens == 100 } else { LADDER.contains(&choice.tokens) };
        prop_assert!(is_allowed, "{choice:?}");
        prop_assert!(ran.iter().all(|tokens| *tokens <= reach.max(1)));
        // No pass begins after the time is over, nor after one has failed.
        let before: Vec<f64> = seconds[..ran.len() - 1].iter().skip(1).map(|took| took.unwrap_or(f64::NAN)).collect();
        prop_assert!(before.is_empty() || before.iter().sum::<f64>() <= time + 1e-6, "{before:?} of {time}");
        prop_assert!(seconds[ran.len() - 1].is_some() || choice.holds_to == 0);
    }
}

/// Devices that measure, with time for everything.
fn measuring(known: &Known) -> Settings {
    let calibrated = Calibrated { ladder: &[64, 128, 256], time: Duration::from_secs(60), known: known.clone() };
    Settings { calibrated: Some(calibrated), ..settings() }
}

fn budget(rig: &Rig, device: usize) -> f64 {
    rig.metric(&format!("batch_budget_tokens{{model=m,device=fake:{device}}}"))
}

#[tokio::test]
async fn a_model_is_measured_when_it_is_loaded_and_not_again() {
    let (script, known) = (Script::new("m"), Known::default());
    let rig = Rig::new(vec![script.model(true)], measuring(&known));
    rig.engine.wait_until_loaded().await.unwrap();
    let kept = known.kept();
    let [(identity, tokens)] = &kept[..] else { panic!("{kept:?}") };
    assert_eq!(identity, "sha256:m");
    assert!([64, 128, 256].contains(tokens));
    assert_eq!(budget(&rig, 0), *tokens as f64);
    assert_eq!(rig.trims(0), 1, "what the passes took is given back");
    // One text to warm up and one more, and the ladder twice; texts are of at most 128 tokens.
    let lengths: Vec<usize> = script.forwards().iter().map(|batch| batch.iter().map(Vec::len).sum()).collect();
    assert_eq!(lengths, [128, 128, 128, 128, 256, 128, 128, 256]);
    let valid = |batch: &Vec<Vec<u32>>| batch.iter().flatten().all(|id| *id < 100_000);
    assert!(script.forwards().iter().all(valid));
    assert_ne!(script.forwards()[4][0], script.forwards()[4][1], "no text twice");

    rig.engine.pool().unload("m").await.unwrap();
    assert_eq!(budget(&rig, 0), 0.0);
    rig.engine.pool().load("m").await.unwrap();
    assert_eq!((script.forwards().len(), budget(&rig, 0)), (8, *tokens as f64));
    assert_eq!(known.kept().len(), 1);
    rig.ask("m").await.unwrap();
    assert_eq!(rig.metric("forwards_total{model=m,outcome=ok}"), 1.0, "trials are no work that was done");
}

#[tokio::test]
async fn a_budget_that_is_known_is_not_measured() {
    let (script, known) = (Script::new("m"), Known::default());
    known.keep("sha256:m", 128);
    known.keep("sha256:x", 256);
    let rig = Rig::new(vec![script.model(true)], measuring(&known));
    rig.engine.wait_until_loaded().await.unwrap();
    assert_eq!((script.forwards().len(), budget(&rig, 0)), (0, 128.0));
    // Batches have it: of three texts of 60 tokens two fit.
    let (script, latch) = super::rig::latched("m");
    let rig = Rig::new(vec![script.model(true)], measuring(&known));
    let first = rig.engine.submit(client(vec![ids(1, 10)])).unwrap();
    latch.reached().await;
    let rest = rig.engine.submit(client((2..5).map(|first| ids(first, 60)).collect())).unwrap();
    latch.open();
    first.wait().await.unwrap();
    rest.wait().await.unwrap();
    assert_eq!(script.firsts(), [vec![1], vec![2, 3], vec![4]]);
}

#[tokio::test]
async fn a_known_budget_that_no_trial_finds_is_not_believed() {
    let (script, known) = (Script::new("m"), Known::default());
    known.keep("sha256:m", 1_000_000);
    let rig = Rig::new(vec![script.model(true)], measuring(&known));
    rig.engine.wait_until_loaded().await.unwrap();
    assert!(!script.forwards().is_empty() && budget(&rig, 0) <= 256.0);
}

#[tokio::test]
async fn a_trial_that_fails_costs_nothing_but_what_it_would_have_found() {
    let faults: [fn() -> Result<(), ModelError>; 3] = [
        || Err(ModelError::OutOfMemory("full".into())),
        || Err(ModelError::Forward("no".into())),
        || panic!("in a trial"),
    ];
    for fault in faults {
        let (known, calls) = (Known::default(), Arc::new(AtomicUsize::new(0)));
        let script = Script::new("m")
            .on_forward(move |_| if calls.fetch_add(1, Ordering::SeqCst) == 0 { fault() } else { Ok(()) });
        let rig = Rig::new(vec![script.model(true)], measuring(&known));
        rig.engine.wait_until_loaded().await.unwrap();
        assert_eq!((script.forwards().len(), budget(&rig, 0)), (1, 100.0), "the default, at the first failure");
        assert!(known.kept().is_empty() && rig.engine.status().last_error.is_none());
        rig.ask("m").await.unwrap();
    }
}

#[tokio::test]
async fn a_device_that_is_lost_in_a_trial_is_lost() {
    let script = Script::new("m").on_forward(|_| Err(ModelError::Device("fell off the bus".into())));
    let rig = Rig::new(vec![script.model(true)], measuring(&Known::default()));
    let Err(EngineError::DeviceLost(reason)) = rig.engine.wait_until_loaded().await else { panic!("not lost") };
    assert!(reason.contains("fell off the bus"), "{reason}");
    assert!(!rig.engine.is_ready());
    assert_eq!((rig.engine.device_lost().await, script.forwards().len()), (reason, 1));
}

#[tokio::test]
async fn a_trial_that_memory_ended_is_repeated_only_where_there_is_more() {
    let (script, known) = (Script::new("m").takes(1_000, 10), Known::default());
    // Memory for one text of 128 tokens beside the weights, which compares nothing.
    let calibrated = Some(Calibrated { ladder: &[128, 256], ..measuring(&known).calibrated.unwrap() });
    let rig = Rig::new(vec![script.model(true)], Settings { memory: vec![2_400], calibrated, ..settings() });
    rig.engine.wait_until_loaded().await.unwrap();
    assert_eq!((script.forwards().len(), known.kept().len()), (4, 0));
    rig.engine.pool().unload("m").await.unwrap();
    rig.engine.pool().load("m").await.unwrap();
    assert_eq!(script.forwards().len(), 4);
}

#[tokio::test]
async fn a_shutdown_ends_a_trial() {
    let (script, latch) = super::rig::latched("m");
    let known = Known::default();
    let rig = Rig::new(vec![script.model(true)], measuring(&known));
    latch.reached().await;
    let engine = rig.engine.clone();
    let ended = tokio::task::spawn_blocking(move || engine.shutdown(Duration::from_secs(60)));
    super::rig::eventually(|| !rig.engine.is_ready() && rig.engine.submit(client(vec![ids(1, 10)])).is_err()).await;
    latch.open();
    ended.await.unwrap();
    assert_eq!((script.forwards().len(), known.kept().len()), (1, 0), "the pass in flight was the last");
}

#[tokio::test]
async fn a_trial_takes_no_more_memory_than_there_is() {
    let (script, known) = (Script::new("m").takes(1_000, 10), Known::default());
    // Room for 200 tokens beside the weights.
    let rig = Rig::new(vec![script.model(true)], Settings { memory: vec![3_000], ..measuring(&known) });
    rig.engine.wait_until_loaded().await.unwrap();
    let lengths: Vec<usize> = script.forwards().iter().map(|batch| batch.iter().map(Vec::len).sum()).collect();
    assert!(!lengths.is_empty() && lengths.iter().all(|tokens| *tokens <= 200), "{lengths:?}");
    assert!(budget(&rig, 0) <= 200.0);
    // Not for one text.
    let (script, known) = (Script::new("m").takes(1_000, 10), Known::default());
    let rig = Rig::new(vec![script.model(true)], Settings { memory: vec![1_500], ..measuring(&known) });
    rig.engine.wait_until_loaded().await.unwrap();
    assert_eq!((script.forwards().len(), budget(&rig, 0)), (0, 50.0));
    assert!(known.kept().is_empty());
}

#[tokio::test]
async fn a_masked_model_has_the_devices_budget() {
    let (script, known) = (Script::new("m").masked(), Known::default());
    let rig = Rig::new(vec![script.model(true)], measuring(&known));
    rig.engine.wait_until_loaded().await.unwrap();
    assert_eq!((script.forwards().len(), budget(&rig, 0)), (0, 100.0));
}

#[tokio::test]
async fn every_device_measures_for_itself() {
    let (script, known) = (Script::new("m"), Known::default());
    let calibrated = Some(Calibrated { time: Duration::ZERO, ..measuring(&known).calibrated.unwrap() });
    let rig = Rig::new(vec![script.model(true).on(&[0, 1])], Settings { calibrated, ..two_devices() });
    super::rig::eventually(|| rig.resident(0).len() == 2).await;
    // Only one text has time, which tells nothing: the largest that is no more than the default of 100.
    assert_eq!((budget(&rig, 0), budget(&rig, 1)), (64.0, 64.0));
}
