//! Batch formation as a pure function.

use crate::engine::Class;
use crate::engine::queue::{LOOK_AHEAD, Queue, form, halve};
use crate::engine::turn::{Lead, PATIENCE, Precedence, Turn};
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

/// Returns the leader of the next batch of a device that may run the models for which `eligible` holds.
pub(super) fn lead<T>(queue: &Queue<T>, turn: &Turn, eligible: impl Fn(&str) -> bool) -> Option<Lead> {
    queue.lead(turn, &queue.precedence(turn, &eligible), eligible)
}

/// The id of a model.
fn id(model: usize) -> Arc<str> {
    model.to_string().into()
}

/// The next batch of a device that may run the models for which `eligible` holds.
fn next(queue: &mut Queue<Waiting>, turn: &mut Turn, eligible: impl Fn(usize) -> bool, budget: usize) -> Vec<Waiting> {
    let lead = lead(queue, turn, |model| eligible(model.parse().unwrap()));
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
            lead(queue, &Turn::new(budget), |id| *id == *model.to_string()).is_some()
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
            // A small batch counts as a quarter of a budget.
            let run = batch.iter().map(|(.., tokens)| tokens).sum::<usize>().max(BUDGET / 4);
            if class == Class::Batch {
                prop_assert!(overtaken >= PATIENCE * BUDGET - BUDGET / 2, "batch work does not lead before its turn");
                prop_assert_eq!(last, Class::Interactive, "never twice in a row while a client waits");
                overtaken = 0;
            } else {
                prop_assert!(overtaken < PATIENCE * BUDGET - BUDGET / 2, "a client does not lead past its share");
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
    let after = |overtaken, batch_run| Turn { overtaken, batch_run, budget: 100 };
    assert_eq!(after(0, 999).leader(&Precedence::Interactive(400)), Class::Interactive);
    assert_eq!(after(399, 999).leader(&Precedence::Interactive(400)), Class::Interactive);
    assert_eq!(after(400, 0).leader(&Precedence::Interactive(400)), Class::Batch);
    assert_eq!(after(999, 399).leader(&Precedence::Batch(400)), Class::Batch);
    assert_eq!(after(0, 400).leader(&Precedence::Batch(400)), Class::Interactive);
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
