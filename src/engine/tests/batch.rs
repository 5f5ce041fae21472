//! Batch formation as a pure function.

use proptest::prelude::*;

use crate::engine::Class;
use crate::engine::batch::{Head, LOOK_AHEAD, PATIENCE, Queue, form, halve, leader};

fn heads() -> impl Strategy<Value = Vec<Head>> {
    let head = (0..3_usize, 2..80_usize).prop_map(|(model, tokens)| Head { model, tokens });
    proptest::collection::vec(head, 0..600)
}

proptest! {
    #[test]
    fn a_batch_keeps_the_rules(heads in heads(), budget in 1..300_usize) {
        let picked = form(heads.iter().copied(), |_| budget);
        prop_assert_eq!(picked.is_empty(), heads.is_empty());
        let Some(first) = heads.first() else { return Ok(()) };
        prop_assert_eq!(picked[0], 0, "the oldest leads");
        prop_assert!(picked.is_sorted_by(|a, b| a < b), "order of arrival, no one twice");
        prop_assert!(picked.iter().all(|&p| heads[p].model == first.model), "one model");
        let tokens: usize = picked.iter().map(|&p| heads[p].tokens).sum();
        prop_assert!(tokens <= budget || picked.len() == 1, "the budget, unless the leader alone exceeds it");
        let reach = picked.last().map_or(0, |last| last + 1);
        prop_assert!(reach - picked.len() <= LOOK_AHEAD, "bounded look-ahead");
        // Greedy: whoever was passed over did not fit into what was left at its turn.
        let mut room = budget.saturating_sub(first.tokens);
        for (position, head) in heads.iter().enumerate().take(reach).skip(1) {
            if picked.contains(&position) {
                room -= head.tokens;
            } else {
                prop_assert!(head.model != first.model || head.tokens > room);
            }
        }
    }

    #[test]
    fn a_queue_loses_and_repeats_nothing(heads in heads(), budget in 1..300_usize, batch_every in 1..5_usize) {
        let mut queue = Queue::new(budget, |entry: &(usize, Head)| entry.1);
        for (number, head) in heads.iter().enumerate() {
            let class = if number % batch_every == 0 { Class::Batch } else { Class::Interactive };
            queue.push(class, (number, *head));
        }
        let mut seen = Vec::new();
        while !queue.is_empty() {
            let batch = queue.next_batch(|_| budget);
            prop_assert!(!batch.is_empty(), "every batch makes progress");
            let is_batch = |number: usize| number.is_multiple_of(batch_every);
            prop_assert!(batch.iter().all(|(n, _)| is_batch(*n) == is_batch(batch[0].0)), "one class");
            seen.extend(batch.into_iter().map(|(number, _)| number));
        }
        seen.sort_unstable();
        prop_assert!(seen.into_iter().eq(0..heads.len()));
    }

    #[test]
    fn neither_class_starves(lengths in proptest::collection::vec(2..150_usize, 50..200)) {
        const BUDGET: usize = 100;
        let mut queue = Queue::new(BUDGET, |entry: &(Class, Head)| entry.1);
        let head = |tokens| Head { model: 0, tokens };
        let (mut overtaken, mut last) = (0, Class::Interactive);
        for tokens in lengths {
            // Before every batch, more of both arrives than one batch can hold.
            for class in Class::ALL {
                queue.push(class, (class, head(tokens)));
                queue.push(class, (class, head(BUDGET)));
            }
            let batch = queue.next_batch(|_| BUDGET);
            let class = batch[0].0;
            let run: usize = batch.iter().map(|(_, head)| head.tokens).sum();
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
        Head { model: usize::from(position > 0), tokens: 2 }
    });
    assert_eq!(form(endless, |_| 100), [0]);
    assert!(looked.get() <= LOOK_AHEAD + 2);
}

#[test]
fn those_passed_over_keep_their_place() {
    let mut queue = Queue::new(10, |entry: &(usize, usize)| Head { model: entry.0, tokens: entry.1 });
    for entry in [(0, 4), (1, 5), (0, 7), (0, 6), (1, 3)] {
        queue.push(Class::Interactive, entry);
    }
    assert_eq!(queue.next_batch(|_| 10), [(0, 4), (0, 6)]);
    assert_eq!(queue.next_batch(|_| 10), [(1, 5), (1, 3)]);
    assert_eq!(queue.next_batch(|_| 10), [(0, 7)]);
    assert_eq!(queue.next_batch(|_| 10), []);
}

#[test]
fn extraction_keeps_the_order_of_the_rest() {
    let mut queue = Queue::new(100, |tokens: &usize| Head { model: 0, tokens: *tokens });
    for tokens in 1..=6 {
        queue.push(Class::Batch, tokens);
    }
    assert_eq!(queue.extract(|tokens| tokens % 2 == 0), [2, 4, 6]);
    assert!(queue.extract(|_| false).is_empty());
    assert_eq!(queue.next_batch(|_| 100), [1, 3, 5]);
}
