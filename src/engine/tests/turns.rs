//! Turns that are fair between principals.

use super::queue::lead;
use crate::engine::Class;
use crate::engine::queue::{CREDIT, Queue};
use crate::engine::turn::Turn;
use proptest::prelude::*;
use std::sync::Arc;

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
    while let Some(lead) = lead(queue, &turn, |_| true) {
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
fn an_idle_principal_accumulates_no_share() {
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
    while let Some(lead) = lead(&queue, &turn, |_| true) {
        taken.extend(queue.take(&lead, &mut turn, 1, |_| true).into_iter().map(|entry| entry.1));
    }
    assert!(taken.is_sorted(), "{taken:?}");
}

#[test]
fn work_on_another_model_does_not_delay_others() {
    let (mut queue, busy, idle) = (fair_queue(), "busy".into(), "idle".into());
    (0..100).for_each(|_| queue.push(Class::Interactive, &busy, asked_by("bulk", 10)));
    // The turn of this one is after all of those, and a device that serves no other model takes it now.
    queue.push(Class::Interactive, &idle, asked_by("bulk", 10));
    let mut turn = Turn::new(10);
    let lead = lead(&queue, &turn, |model| model == "idle").unwrap();
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
        let lead = lead(queue, &turn, only_one).unwrap();
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

/// Runs batches of the model `m`, and returns the number of those that are of audits.
fn audits(queue: &mut Queue<Entry>, turn: &mut Turn, budget: usize, batches: usize) -> usize {
    let mut led = 0;
    for _ in 0..batches {
        let lead = lead(queue, turn, |model| model == "m").unwrap();
        led += usize::from(lead.class == Class::Batch);
        queue.take(&lead, turn, budget, |_| true);
    }
    led
}

/// Returns the numbers of batches of audits and of texts among 20, where these principals send texts and one has an audit.
fn shares(texts_of: &[&str], audit_of: &str) -> (usize, usize) {
    let (mut queue, mut turn, model) = (fair_queue(), Turn::new(10), "m".into());
    for _ in 0..100 {
        texts_of.iter().for_each(|name| queue.push(Class::Interactive, &model, asked_by(name, 10)));
        queue.push(Class::Batch, &model, asked_by(audit_of, 10));
    }
    let led = audits(&mut queue, &mut turn, 10, 20);
    (led, 20 - led)
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
fn bulk_texts_of_one_principal_leave_most_to_an_audit_with_credit() {
    let (mut queue, mut turn, model) = (fair_queue(), Turn::new(10), "m".into());
    // An audit before sets the credit of the next one.
    (0..2 * CREDIT).for_each(|_| queue.push(Class::Batch, &model, asked_by("b", 10)));
    audits(&mut queue, &mut turn, 10, 2 * CREDIT);
    for _ in 0..100 {
        queue.push(Class::Interactive, &model, asked_by("bulk", 10));
        queue.push(Class::Batch, &model, asked_by("b", 10));
    }
    assert_eq!(audits(&mut queue, &mut turn, 10, 10), 8);
    // A few texts of a third principal come at once, and those in bulk do not come with them.
    queue.push(Class::Interactive, &model, asked_by("small", 2));
    let lead_of_small = lead(&queue, &turn, |_| true).unwrap();
    assert_eq!(lead_of_small.class, Class::Interactive);
    let taken = queue.take(&lead_of_small, &mut turn, 10, |_| true);
    assert_eq!(taken, [asked_by("small", 2)]);
    // Once the credit is used up, each has its half.
    audits(&mut queue, &mut turn, 10, 12);
    assert_eq!(audits(&mut queue, &mut turn, 10, 20), 10);
}

proptest! {
    #[test]
    fn no_batch_is_empty(
        arrivals in proptest::collection::vec((0..3_usize, any::<bool>(), 1..60_usize), 1..400),
        budgets in proptest::collection::vec(1..100_usize, 1..5),
    ) {
        let (mut queue, mut turn) = (fair_queue(), Turn::new(50));
        let mut take = |queue: &mut Queue<Entry>, number: usize| {
            let lead = lead(queue, &turn, |_| true)?;
            Some(queue.take(&lead, &mut turn, budgets[number % budgets.len()], |_| true).len())
        };
        let mut taken = 0;
        for (number, (principal, is_batch, tokens)) in arrivals.iter().enumerate() {
            let class = if *is_batch { Class::Batch } else { Class::Interactive };
            let model = ["m", "n"][number % 2].into();
            queue.push(class, &model, asked_by(["a", "b", "c"][*principal], *tokens));
            if number % 5 == 4 {
                let some = take(&mut queue, number).unwrap();
                prop_assert!(some > 0);
                taken += some;
            }
        }
        for number in 0.. {
            let Some(some) = take(&mut queue, number) else { break };
            prop_assert!(some > 0);
            taken += some;
        }
        prop_assert_eq!(taken, arrivals.len());
    }
}

#[test]
fn a_client_whose_texts_are_through_counts_no_more() {
    let (mut queue, mut turn, model) = (fair_queue(), Turn::new(10), "m".into());
    for _ in 0..40 {
        queue.push(Class::Interactive, &model, asked_by("a", 10));
        queue.push(Class::Batch, &model, asked_by("b", 10));
    }
    // Two of another client, and one of the audit's own: both are soon through, whichever comes first.
    (0..2).for_each(|_| queue.push(Class::Interactive, &model, asked_by("c", 10)));
    queue.push(Class::Interactive, &model, asked_by("b", 10));
    audits(&mut queue, &mut turn, 10, 12);
    assert_eq!(audits(&mut queue, &mut turn, 10, 20), 10);
}

#[test]
fn texts_for_another_device_do_not_change_the_shares_here() {
    let (mut queue, mut turn, model) = (fair_queue(), Turn::new(10), "m".into());
    for _ in 0..40 {
        queue.push(Class::Interactive, &model, asked_by("a", 10));
        queue.push(Class::Batch, &model, asked_by("b", 10));
        for name in ["c", "d", "e"] {
            queue.push(Class::Interactive, &"elsewhere".into(), asked_by(name, 10));
        }
    }
    assert_eq!(audits(&mut queue, &mut turn, 10, 20), 10);
}

#[test]
fn texts_that_do_not_fill_a_budget_are_a_batch_all_the_same() {
    let (mut queue, mut turn, model) = (fair_queue(), Turn::new(100), "m".into());
    for _ in 0..40 {
        // Two of them are 80 tokens, and a third one has no room.
        (0..2).for_each(|_| queue.push(Class::Interactive, &model, asked_by("a", 40)));
        queue.push(Class::Batch, &model, asked_by("b", 100));
    }
    assert_eq!(audits(&mut queue, &mut turn, 100, 20), 10);
}

#[test]
fn small_batches_of_texts_leave_an_audit_its_share_of_the_time() {
    let (mut queue, mut turn, model) = (fair_queue(), Turn::new(1_000), "m".into());
    (0..40).for_each(|_| queue.push(Class::Batch, &model, asked_by("b", 1_000)));
    let mut led = 0;
    for _ in 0..25 {
        queue.push(Class::Interactive, &model, asked_by("a", 20));
        led += audits(&mut queue, &mut turn, 1_000, 1);
    }
    // Two of three batches are texts: each counts for a quarter of a budget, and half a budget is enough.
    assert_eq!(led, 8);
}

#[test]
fn a_slow_device_gives_a_newcomer_on_another_no_more_than_its_share() {
    let (mut queue, mut turn) = (fair_queue(), Turn::new(10));
    let (fast, slow) = ("fast".into(), "slow".into());
    (0..400).for_each(|_| queue.push(Class::Batch, &fast, asked_by("steady", 10)));
    (0..400).for_each(|_| queue.push(Class::Batch, &slow, asked_by("slow", 10)));
    let mut run = |queue: &mut Queue<Entry>, batches: usize| -> usize {
        let mut newcomer = 0;
        for _ in 0..batches {
            let lead = lead(queue, &turn, |model| model == "fast").unwrap();
            newcomer += usize::from(&*queue.take(&lead, &mut turn, 10, |_| true)[0].0 == "new");
        }
        newcomer
    };
    run(&mut queue, 200);
    (0..200).for_each(|_| queue.push(Class::Batch, &fast, asked_by("new", 10)));
    // All of the credit, and half of the rest.
    let newcomer = run(&mut queue, 100);
    assert!(newcomer.abs_diff(CREDIT + (100 - CREDIT) / 2) <= 2, "{newcomer}");
}

#[test]
fn batch_work_after_a_pause_comes_before_that_of_others() {
    let (mut queue, mut turn, model) = (fair_queue(), Turn::new(10), "m".into());
    let mut run = |queue: &mut Queue<Entry>, batches: usize| -> Vec<String> {
        (0..batches)
            .map(|_| {
                let lead = lead(queue, &turn, |_| true).unwrap();
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

#[test]
fn who_had_the_device_alone_owes_nothing_later() {
    let (mut queue, model) = (fair_queue(), "m".into());
    (0..2 * CREDIT).for_each(|_| queue.push(Class::Batch, &model, asked_by("early", 10)));
    order(&mut queue, 10);
    // Another one begins, and has half of its credit before the first one comes back.
    (0..100).for_each(|_| queue.push(Class::Batch, &model, asked_by("late", 10)));
    let mut turn = Turn::new(10);
    for _ in 0..CREDIT / 2 {
        let lead = lead(&queue, &turn, |_| true).unwrap();
        queue.take(&lead, &mut turn, 10, |_| true);
    }
    (0..CREDIT / 2).for_each(|_| queue.push(Class::Batch, &model, asked_by("early", 10)));
    assert!(order(&mut queue, 10)[..CREDIT / 2].iter().all(|name| name == "early"));
}
