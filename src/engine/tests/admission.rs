//! Admission: what is refused, with which words, and that a refusal leaves nothing behind.

use super::rig::{Rig, Script, answered, audit, client, eventually, held, ids, latched, settings, work};
use crate::access::Principal;
use crate::engine::admission::judge_time;
use crate::engine::record::{Rate, time_for};
use crate::engine::{Class, EngineError, Refusal};
use std::sync::Arc;
use std::time::{Duration, Instant};

const SECOND: Duration = Duration::from_secs(1);

/// Returns the speed after batches of 100 tokens that took these numbers of milliseconds.
fn speed(before: Option<Rate>, milliseconds: &[u64], now: Instant) -> Option<Rate> {
    let observe = |rate, milliseconds: &u64| Rate::observe(rate, 100, 100, Duration::from_millis(*milliseconds), now);
    milliseconds.iter().fold(before, observe)
}

#[test]
fn the_speed_is_averaged_and_forgotten() {
    let now = Instant::now();
    let tokens_per_second = |rate: Option<Rate>, now| rate.unwrap().tokens_per_second(now);
    let first = speed(None, &[1000, 1000, 1000], now);
    assert_eq!(tokens_per_second(first, now), Some(100.0));
    let second = speed(first, &[500], now);
    assert_eq!(tokens_per_second(second, now), Some(125.0));
    // One that is held up does not outweigh those before it.
    assert!(tokens_per_second(speed(first, &[1_000_000], now), now).unwrap() > 75.0);
    let later = now + 3600 * SECOND;
    assert_eq!(tokens_per_second(second, later), None);
    // Forgotten measurements do not count in the next average either.
    assert_eq!(tokens_per_second(speed(second, &[2000], later), later), None);
    assert_eq!(tokens_per_second(speed(second, &[2000, 2000, 2000], later), later), Some(50.0));
    // A small batch measures fixed costs.
    assert_eq!(Rate::observe(None, 49, 100, SECOND, now), None);
    assert_eq!(Rate::observe(first, 100, 100, Duration::ZERO, now), first);
}

#[test]
fn a_first_batch_that_is_held_up_refuses_nothing() {
    let now = Instant::now();
    let tokens_per_second = |milliseconds: &[u64]| speed(None, milliseconds, now).unwrap().tokens_per_second(now);
    assert_eq!(tokens_per_second(&[60_000]), None);
    assert_eq!(tokens_per_second(&[60_000, 1000]), None);
    for held_up in [[60_000, 1000, 1000], [1000, 60_000, 1000], [1000, 1000, 60_000], [60_000, 60_000, 1000]] {
        assert_eq!(tokens_per_second(&held_up), Some(100.0));
    }
}

#[test]
fn time_is_judged_where_it_is_known() {
    assert_eq!(time_for(200, Some(100.0)), Some(2 * SECOND));
    assert_eq!(time_for(200, None), None);
    assert_eq!(time_for(200, Some(0.0)), None);
    let seconds = |n| Some(n * SECOND);
    assert_eq!(judge_time(None, seconds(100), SECOND), Ok(()));
    assert_eq!(judge_time(seconds(1), None, 100 * SECOND), Ok(()));
    assert_eq!(judge_time(seconds(3), seconds(2), SECOND), Ok(()));
    assert_eq!(judge_time(seconds(0), seconds(2), SECOND), Ok(()));
    let cannot = judge_time(seconds(3), seconds(4), Duration::ZERO);
    assert!(matches!(cannot, Err(Refusal::CannotMeetDeadline { estimate, available })
        if estimate == 4 * SECOND && available == 3 * SECOND));
    let busy = judge_time(seconds(3), seconds(2), 10 * SECOND);
    assert!(matches!(busy, Err(Refusal::Busy { retry_after }) if retry_after == 10 * SECOND));
}

#[tokio::test]
async fn too_large_is_not_busy_and_names_the_limit() {
    let script = Script::new("m");
    let rig = Rig::with(&script);
    assert_eq!(
        rig.refusal(client(vec![ids(1, 600), ids(2, 401)])).to_string(),
        "1001 tokens exceed the queue of 1000 tokens"
    );
    assert_eq!(
        rig.refusal(client(vec![ids(1, 5001)])).to_string(),
        "5001 tokens exceed the model's context of 5000 tokens"
    );
    assert_eq!(rig.refusal(work("x", Class::Interactive, vec![])), Refusal::UnknownModel("x".to_owned()));
    assert_eq!(rig.metric("requests_total{class=interactive,outcome=too_large}"), 2.0);
    assert_eq!(rig.metric("requests_total{class=interactive,outcome=unknown_model}"), 1.0);
    rig.assert_idle().await;
}

#[tokio::test]
async fn a_request_is_admitted_whole_or_not_at_all() {
    let (script, latch) = latched("m");
    let rig = Rig::with(&script);
    let first = rig.submit(client(vec![ids(1, 600)]));
    latch.reached().await;
    // Two of the three would fit.
    let request = || client(vec![ids(2, 200), ids(3, 200), ids(4, 200)]);
    let refusal = rig.refusal(request());
    assert!(matches!(refusal, Refusal::Busy { retry_after } if retry_after >= SECOND));
    assert_eq!(rig.engine.status().interactive_tokens, 600);
    assert_eq!(rig.metric("queue_tokens{class=interactive}"), 600.0);
    // A window of its own: batch work is let in all the same.
    let batch = rig.submit(work("m", Class::Batch, vec![ids(5, 400)]));
    latch.open();
    first.wait().await.unwrap();
    assert_eq!(rig.run(request()).await.forward_passes, 3);
    batch.wait().await.unwrap();
    assert_eq!(rig.metric("requests_total{class=interactive,outcome=busy}"), 1.0);
    assert_eq!(rig.metric("requests_total{class=interactive,outcome=ok}"), 2.0);
    rig.assert_idle().await;
}

#[tokio::test]
async fn batch_work_of_one_principal_takes_no_room_of_another() {
    let (script, latch) = latched("m");
    let rig = Rig::with(&script);
    let asked_by = |name: &str, first: u32, passes: u32| {
        let request = audit((0..passes).map(|n| ids(first + n, 100)).collect());
        let key = Arc::clone(&request.identity);
        rig.engine.submit_when_room(request.asked_by(&Principal::new(name, false), key))
    };
    // A window of four budgets, which alice fills; what she asks for beyond it waits.
    let hers = asked_by("alice", 0, 4).await.unwrap();
    latch.reached().await;
    let mut more = Box::pin(asked_by("alice", 100, 1));
    assert!(tokio::time::timeout(SECOND / 10, &mut more).await.is_err());
    let his = tokio::time::timeout(SECOND, asked_by("bob", 200, 4)).await.expect("room for bob").unwrap();
    latch.open();
    answered([hers, his, more.await.unwrap()]).await;
    rig.assert_idle().await;
}

#[tokio::test]
async fn what_cannot_be_done_in_time_is_refused() {
    // At most 2,000 tokens a second, on any machine.
    let script = Script::new("m").on_forward(|sequences| {
        let tokens: usize = sequences.iter().map(|ids| ids.len()).sum();
        std::thread::sleep(Duration::from_micros(500) * tokens as u32);
        Ok(())
    });
    let mut wide = settings();
    wide.max_queue_tokens = 100_000;
    let rig = Rig::new(vec![script.model(true)], wide);
    let in_a_while = |sequences, seconds| {
        let mut work = client(sequences);
        work.deadline = Some(Instant::now() + seconds * SECOND);
        work
    };
    for first in 1..=3 {
        assert_eq!(rig.engine.status().models[0].tokens_per_second, None);
        rig.run(client(vec![ids(first, 100)])).await;
    }
    assert!(rig.engine.status().models[0].tokens_per_second.unwrap() <= 2000.0);
    let many = || (0..40).map(|n| ids(n, 2500)).collect();
    // 100,000 tokens take 50 s at best.
    let refusal = rig.refusal(in_a_while(many(), 20));
    assert!(matches!(refusal, Refusal::CannotMeetDeadline { estimate, .. } if estimate > 49 * SECOND));
    // Alone it would be in time; what is queued before it makes it late.
    let queued = rig.submit(client((0..39).map(|n| ids(n, 2500)).collect()));
    let refusal = rig.refusal(in_a_while(vec![ids(1, 2)], 20));
    assert!(matches!(refusal, Refusal::Busy { .. }));
    drop(queued);
    rig.assert_idle().await;
}

#[tokio::test]
async fn a_passed_deadline_ends_the_wait_and_the_forward_pass_never_comes() {
    let (script, latch, rig, first) = held().await;
    let mut late = client(vec![ids(2, 10), ids(3, 10)]);
    late.deadline = Some(Instant::now() + Duration::from_millis(5));
    let late = rig.submit(late);
    // The device is held: only the deadline can end this wait.
    assert_eq!(late.wait().await, Err(EngineError::DeadlineExceeded));
    latch.open();
    first.wait().await.unwrap();
    rig.run(client(vec![ids(4, 10)])).await;
    assert_eq!(script.firsts(), [[1], [4]]);
    assert_eq!(rig.metric("dropped_sequences_total{reason=deadline}"), 2.0);
    assert_eq!(rig.metric("requests_total{class=interactive,outcome=deadline_exceeded}"), 1.0);
    rig.assert_idle().await;
}

#[tokio::test]
async fn an_unwaited_ticket_hears_of_its_deadline_too() {
    let (script, latch, rig, first) = held().await;
    let mut late = client(vec![ids(2, 10)]);
    late.deadline = Some(Instant::now());
    let late = rig.submit(late);
    latch.open();
    first.wait().await.unwrap();
    eventually(|| rig.engine.status().interactive_tokens == 0).await;
    assert_eq!(late.wait().await, Err(EngineError::DeadlineExceeded));
    assert_eq!(script.firsts(), [[1]]);
}

#[tokio::test]
async fn a_dropped_ticket_is_never_run_and_frees_its_room() {
    let (script, latch, rig, first) = held().await;
    drop(rig.submit(client(vec![ids(2, 10), ids(3, 900)])));
    latch.open();
    first.wait().await.unwrap();
    eventually(|| rig.engine.status().interactive_tokens == 0).await;
    assert_eq!(script.firsts(), [[1]]);
    assert_eq!(rig.metric("dropped_sequences_total{reason=abandoned}"), 2.0);
    assert_eq!(rig.metric("requests_total{class=interactive,outcome=cancelled}"), 1.0);
    rig.assert_idle().await;
}
