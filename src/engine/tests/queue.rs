//! Batch formation as a pure function, and turns that are fair between principals.

use crate::engine::Class;
use crate::engine::queue::{CREDIT, LOOK_AHEAD, PATIENCE, Queue, Turn, form, halve, leader};
use proptest::prelude::*;
use std::sync::{Arc, LazyLock};
use strum::VariantArray;

/// A waiting sequence: its number, model and tokens.
type Waiting = (usize, usize, usize);

fn queue() -> Queue<Waiting> {
    Queue::new(|entry| entry.2, |entry| entry.2, |_| nobody())
}

/// Returns the name of the principal, always the same.
fn nobody() -> &'static Arc<str> {
    static NOBODY: LazyLock<Arc<str>> = LazyLock::new(Arc::default);
    &NOBODY
}

/// The id of a model.
fn id(model: usize) -> Arc<str> {
    model.to_string().into()
}

/// The next batch of a device that may run the models for which `eligible` holds.
fn next(queue: &mut Queue<Waiting>, turn: &mut Turn, eligible: impl Fn(usize) -> bool, budget: usize) -> Vec<Waiting> {
    let lead = queue.lead(turn, |model| eligible(model.parse().unwrap()));
    lead.map_or(Vec::new(), |lead| queue.take(&lead, turn, budget, |_| true))
}

proptest! {
    #[test]
    fn a_batch_keeps_the_rules(lengths in proptest::collection::vec(2..80_usize, 0..600), budget in 1..300_usize) {
        let picked = form(lengths.iter().copied(), budget);
        prop_assert_eq!(picked.is_empty(), lengths.is_empty());
        let Some(first) = lengths.first() else { return Ok(()) };
        prop_assert_eq!(picked[0], 0, "the oldest leads");
        prop_assert!(picked.is_sorted_by(|a, b| a < b), "order of arrival, no one twice");
        let tokens: usize = picked.iter().map(|&p| lengths[p]).sum();
        prop_assert!(tokens <= budget || picked.len() == 1, "the budget, unless the leader alone exceeds it");
        let reach = picked.last().map_or(0, |last| last + 1);
        prop_assert!(reach - picked.len() <= LOOK_AHEAD, "bounded look-ahead");
        // Greedy: whoever was passed over did not fit into what was left at its turn.
        let mut room = budget.saturating_sub(*first);
        for (position, tokens) in lengths.iter().enumerate().take(reach).skip(1) {
            if picked.contains(&position) {
                room -= tokens;
            } else {
                prop_assert!(*tokens > room);
            }
        }
    }

    /// Two devices take turns at one queue: the first may run models 0 and 1, the second 1 and 2.
    #[test]
    fn a_queue_loses_and_repeats_nothing(
        heads in proptest::collection::vec((0..3_usize, 2..80_usize), 0..600),
        budget in 1..300_usize,
        batch_every in 1..5_usize,
    ) {
        let mut queue = queue();
        for (number, (model, tokens)) in heads.iter().enumerate() {
            let class = if number % batch_every == 0 { Class::Batch } else { Class::Interactive };
            queue.push(class, &id(*model), (number, *model, *tokens));
        }
        let mut turns = [Turn::new(budget), Turn::new(budget)];
        let mut seen = Vec::new();
        let waits = |queue: &Queue<Waiting>, model: usize| {
            queue.lead(&Turn::new(budget), |id| *id == *model.to_string()).is_some()
        };
        while (0..3).any(|model| waits(&queue, model)) {
            let mut progress = false;
            for (device, turn) in turns.iter_mut().enumerate() {
                let may_run = |model: usize| model == device || model == device + 1;
                let served = (0..3).any(|model| may_run(model) && waits(&queue, model));
                let batch = next(&mut queue, turn, may_run, budget);
                prop_assert_eq!(batch.is_empty(), !served, "a device that could work does");
                progress |= served;
                let Some(first) = batch.first() else { continue };
                let is_batch = |number: usize| number.is_multiple_of(batch_every);
                prop_assert!(may_run(first.1), "only what the device may run");
                prop_assert!(batch.iter().all(|(n, ..)| is_batch(*n) == is_batch(first.0)), "one class");
                prop_assert!(batch.iter().all(|(_, model, _)| *model == first.1), "one model");
                seen.extend(batch.into_iter().map(|(number, ..)| number));
            }
            prop_assert!(progress);
        }
        seen.sort_unstable();
        prop_assert!(seen.into_iter().eq(0..heads.len()));
    }

    #[test]
    fn neither_class_starves(lengths in proptest::collection::vec(2..150_usize, 50..200)) {
        const BUDGET: usize = 100;
        let (mut queue, mut turn) = (queue(), Turn::new(BUDGET));
        let (mut overtaken, mut last) = (0, Class::Interactive);
        for tokens in lengths {
            // Before every batch, more of both arrives than one batch can hold.
            for &class in Class::VARIANTS {
                queue.push(class, &id(0), (class as usize, 0, tokens));
                queue.push(class, &id(0), (class as usize, 0, BUDGET));
            }
            let batch = next(&mut queue, &mut turn, |_| true, BUDGET);
            let class = Class::VARIANTS[batch[0].0];
            let run: usize = batch.iter().map(|(.., tokens)| tokens).sum();
            if class == Class::Batch {
                prop_assert!(overtaken >= PATIENCE * BUDGET, "batch work does not lead before its turn");
                prop_assert_eq!(last, Class::Interactive, "never twice in a row while a client waits");
                overtaken = 0;
            } else {
                prop_assert!(overtaken < PATIENCE * BUDGET, "a client does not lead past its share");
                overtaken += run;
            }
            last = class;
        }
    }

    #[test]
    fn halves_are_whole_and_not_empty(lengths in proptest::collection::vec(1..100_usize, 2..50)) {
        let (first, second) = halve(lengths.clone(), |tokens| *tokens);
        prop_assert!(!first.is_empty() && !second.is_empty());
        prop_assert_eq!([first, second].concat(), lengths);
    }
}

#[test]
fn who_leads() {
    assert_eq!(leader(true, true, 0, 400), Class::Interactive);
    assert_eq!(leader(true, true, 399, 400), Class::Interactive);
    assert_eq!(leader(true, true, 400, 400), Class::Batch);
    assert_eq!(leader(false, true, 0, 400), Class::Batch);
    assert_eq!(leader(true, false, 400, 400), Class::Interactive);
}

#[test]
fn forming_a_batch_touches_the_batch_and_a_constant() {
    let looked = std::cell::Cell::new(0);
    let endless = (0..).map(|position| {
        looked.set(looked.get() + 1);
        if position == 0 { 2 } else { 200 }
    });
    assert_eq!(form(endless, 100), [0]);
    assert!(looked.get() <= LOOK_AHEAD + 2);
}

#[test]
fn those_passed_over_keep_their_place() {
    let (mut queue, mut turn) = (queue(), Turn::new(10));
    let entries = [(1, 0, 4), (2, 1, 5), (3, 0, 7), (4, 0, 6), (5, 1, 3)];
    for entry in entries {
        queue.push(Class::Interactive, &id(entry.1), entry);
    }
    let mut numbers = || -> Vec<_> { next(&mut queue, &mut turn, |_| true, 10).iter().map(|entry| entry.0).collect() };
    assert_eq!(numbers(), [1, 4]);
    assert_eq!(numbers(), [2, 5]);
    assert_eq!(numbers(), [3]);
    assert!(numbers().is_empty());
}

#[test]
fn what_a_device_may_not_run_stands_in_nobodys_way() {
    let (mut queue, mut turn) = (queue(), Turn::new(10));
    for number in 0..3 * LOOK_AHEAD {
        queue.push(Class::Interactive, &id(0), (number, 0, 5));
    }
    queue.push(Class::Batch, &id(1), (9999, 1, 5));
    assert_eq!(next(&mut queue, &mut turn, |model| model == 1, 10), [(9999, 1, 5)]);
    assert!(next(&mut queue, &mut turn, |model| model == 1, 10).is_empty());
    assert_eq!(next(&mut queue, &mut turn, |model| model == 0, 10).len(), 2);
}

#[test]
fn extraction_keeps_the_order_of_the_rest() {
    let (mut queue, mut turn) = (queue(), Turn::new(100));
    for number in 1..=6 {
        queue.push(Class::Batch, &id(0), (number, 0, 2));
    }
    queue.push(Class::Interactive, &id(1), (7, 1, 2));
    let numbers = |entries: Vec<Waiting>| entries.iter().map(|entry| entry.0).collect::<Vec<_>>();
    assert_eq!(numbers(queue.extract(Class::Batch, "0", |entry| entry.0 % 2 == 0)), [2, 4, 6]);
    assert!(queue.extract(Class::Interactive, "0", |_| true).is_empty());
    assert_eq!(numbers(queue.extract_model("1")), [7]);
    assert!(queue.extract_model("1").is_empty());
    assert_eq!(numbers(next(&mut queue, &mut turn, |_| true, 100)), [1, 3, 5]);
}

/// A principal, and its number of tokens.
type Entry = (Arc<str>, usize);

fn fair_queue() -> Queue<Entry> {
    Queue::new(|entry| entry.1, |entry| entry.1, |entry| &entry.0)
}

fn asked_by(name: &str, tokens: usize) -> Entry {
    (name.into(), tokens)
}

/// Takes batches of `budget` tokens until nothing waits, and returns the principals in the order in which they ran.
fn order(queue: &mut Queue<Entry>, budget: usize) -> Vec<String> {
    let (mut turn, mut order) = (Turn::new(budget), Vec::new());
    while let Some(lead) = queue.lead(&turn, |_| true) {
        let taken = queue.take(&lead, &mut turn, budget, |_| true);
        order.extend(taken.into_iter().map(|(name, _)| name.to_string()));
    }
    order
}

#[test]
fn who_asks_for_little_does_not_wait_for_who_has_asked_for_much() {
    let (mut queue, model) = (fair_queue(), "m".into());
    (0..100).for_each(|_| queue.push(Class::Interactive, &model, asked_by("bulk", 10)));
    queue.push(Class::Interactive, &model, asked_by("small", 10));
    let order = order(&mut queue, 10);
    assert_eq!(order.len(), 101);
    assert_eq!(order.iter().position(|name| name == "small"), Some(1));
}

#[test]
fn principals_get_the_same_share_of_tokens_whatever_the_length_of_their_texts() {
    let (mut queue, model) = (fair_queue(), "m".into());
    (0..100).for_each(|_| queue.push(Class::Interactive, &model, asked_by("long", 40)));
    (0..400).for_each(|_| queue.push(Class::Interactive, &model, asked_by("short", 10)));
    let order = order(&mut queue, 10);
    let (mut long, mut short) = (0_i64, 0_i64);
    for name in order {
        if name == "long" {
            long += 40
        } else {
            short += 10
        }
        assert!((long - short).abs() <= 40, "{long} and {short}");
    }
    assert_eq!((long, short), (4_000, 4_000));
}

#[test]
fn nobody_saves_up_a_share() {
    let (mut queue, model) = (fair_queue(), "m".into());
    // One principal is served alone for a while; another that comes later does not overtake all that comes after.
    (0..50).for_each(|_| queue.push(Class::Interactive, &model, asked_by("early", 10)));
    assert_eq!(order(&mut queue, 10).len(), 50);
    for _ in 0..10 {
        queue.push(Class::Interactive, &model, asked_by("late", 10));
        queue.push(Class::Interactive, &model, asked_by("early", 10));
    }
    let order = order(&mut queue, 10);
    let early = order.iter().take(10).filter(|name| *name == "early").count();
    assert!((4..=6).contains(&early), "{order:?}");
}

#[test]
fn without_names_the_order_is_that_of_arrival() {
    let (mut queue, model) = (fair_queue(), "m".into());
    (1..=20).for_each(|tokens| queue.push(Class::Interactive, &model, asked_by("", tokens)));
    let (mut turn, mut taken) = (Turn::new(1), Vec::new());
    while let Some(lead) = queue.lead(&turn, |_| true) {
        taken.extend(queue.take(&lead, &mut turn, 1, |_| true).into_iter().map(|entry| entry.1));
    }
    assert!(taken.is_sorted(), "{taken:?}");
}

#[test]
fn work_on_another_model_makes_nobody_wait_longer() {
    let (mut queue, busy, idle) = (fair_queue(), "busy".into(), "idle".into());
    (0..100).for_each(|_| queue.push(Class::Interactive, &busy, asked_by("bulk", 10)));
    // The turn of this one is after all of those, and a device that serves no other model takes it now.
    queue.push(Class::Interactive, &idle, asked_by("bulk", 10));
    let mut turn = Turn::new(10);
    let lead = queue.lead(&turn, |model| model == "idle").unwrap();
    assert_eq!(queue.take(&lead, &mut turn, 10, |_| true).len(), 1);
    queue.push(Class::Interactive, &busy, asked_by("small", 10));
    assert_eq!(order(&mut queue, 10).iter().position(|name| name == "small"), Some(1));
}

#[test]
fn what_is_cancelled_is_not_counted() {
    let (mut queue, model) = (fair_queue(), "m".into());
    queue.push(Class::Interactive, &model, asked_by("other", 10));
    (0..100).for_each(|_| queue.push(Class::Interactive, &model, asked_by("cancels", 10)));
    assert_eq!(queue.extract(Class::Interactive, "m", |entry| &*entry.0 == "cancels").len(), 100);
    (0..20).for_each(|_| queue.push(Class::Interactive, &model, asked_by("other", 10)));
    queue.push(Class::Interactive, &model, asked_by("cancels", 10));
    assert!(order(&mut queue, 10).iter().position(|name| name == "cancels").unwrap() <= 1);
}

#[test]
fn a_model_that_does_not_run_holds_the_clock_of_no_other() {
    let (mut queue, runs, silent) = (fair_queue(), "runs".into(), "silent".into());
    queue.push(Class::Batch, &silent, asked_by("first", 10));
    (0..100).for_each(|_| queue.push(Class::Batch, &runs, asked_by("first", 10)));
    let only_one = |model: &str| model == "runs";
    let mut turn = Turn::new(10);
    let mut next = |queue: &mut Queue<Entry>| {
        let lead = queue.lead(&turn, only_one).unwrap();
        queue.take(&lead, &mut turn, 10, only_one)[0].0.to_string()
    };
    (0..2 * CREDIT).for_each(|_| assert_eq!(next(&mut queue), "first"));
    (0..40).for_each(|_| queue.push(Class::Batch, &runs, asked_by("second", 10)));
    (0..CREDIT).for_each(|_| assert_eq!(next(&mut queue), "second"));
    // From now on both principals get the same share: the second one is not owed all that the first one has had.
    let names: Vec<String> = (0..10).map(|_| next(&mut queue)).collect();
    let second = names.iter().filter(|name| *name == "second").count();
    assert!((4..=6).contains(&second), "{names:?}");
}

/// Batches of batch work and of texts that run of 20, where one principal sends texts and another has an audit.
fn shares(texts_of: &[&str], audit_of: &str) -> (usize, usize) {
    let (mut queue, mut turn, model) = (fair_queue(), Turn::new(10), "m".into());
    for _ in 0..100 {
        texts_of.iter().for_each(|name| queue.push(Class::Interactive, &model, asked_by(name, 10)));
        queue.push(Class::Batch, &model, asked_by(audit_of, 10));
    }
    let mut audits = 0;
    for _ in 0..20 {
        let lead = queue.lead(&turn, |_| true).unwrap();
        audits += usize::from(lead.class == Class::Batch);
        queue.take(&lead, &mut turn, 10, |_| true);
    }
    (audits, 20 - audits)
}

#[test]
fn texts_leave_the_audit_of_another_principal_its_share() {
    assert_eq!(shares(&["a"], "a"), (4, 16));
    assert_eq!(shares(&["a"], "b"), (10, 10));
    // Three clients and the audit have a quarter each.
    assert_eq!(shares(&["a", "c", "d"], "b"), (5, 15));
    assert_eq!(shares(&["a", "c", "d", "e", "f", "g"], "b"), (4, 16));
}

#[test]
fn batch_work_after_a_pause_comes_before_that_of_others() {
    let (mut queue, mut turn, model) = (fair_queue(), Turn::new(10), "m".into());
    let mut run = |queue: &mut Queue<Entry>, batches: usize| -> Vec<String> {
        (0..batches)
            .map(|_| {
                let lead = queue.lead(&turn, |_| true).unwrap();
                queue.take(&lead, &mut turn, 10, |_| true)[0].0.to_string()
            })
            .collect()
    };
    (0..400).for_each(|_| queue.push(Class::Batch, &model, asked_by("long", 10)));
    run(&mut queue, 2 * CREDIT);
    (0..2 * CREDIT).for_each(|_| queue.push(Class::Batch, &model, asked_by("short", 10)));
    let order = run(&mut queue, 2 * CREDIT);
    assert!(order[..CREDIT].iter().all(|name| name == "short"), "{order:?}");
    // From then on each has the same share.
    let short = order[CREDIT..].iter().filter(|name| *name == "short").count();
    assert!(short.abs_diff(CREDIT / 2) <= 1, "{order:?}");
}
