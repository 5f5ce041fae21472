//! Choice of models to evict, as a pure function.

use crate::engine::device::{Resident, eviction_order, evictions};
use crate::pool::largest_batch;
use proptest::prelude::*;
use std::fmt;
use std::sync::OnceLock;
use std::time::{Duration, Instant};

/// A model with the given bytes of weights and of activations per token.
struct HeldModel {
    weights: u64,
    activation: Box<dyn Fn(usize) -> u64>,
    pinned: bool,
    in_use: bool,
    /// Seconds after the start of the test.
    last_used: u64,
}

impl fmt::Debug for HeldModel {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let of_100 = (self.activation)(100);
        write!(formatter, "{} + {of_100}, {} {} {}", self.weights, self.pinned, self.in_use, self.last_used)
    }
}

fn model(weights: u64, per_token: u64) -> HeldModel {
    let activation = Box::new(move |tokens: usize| per_token * tokens as u64);
    HeldModel { weights, activation, pinned: false, in_use: false, last_used: 0 }
}

const IDS: [&str; 8] = ["a", "b", "c", "d", "e", "f", "g", "h"];

/// The places of models among [`IDS`].
fn places(ids: Vec<&str>) -> Vec<usize> {
    ids.iter().map(|id| IDS.iter().position(|known| known == id).unwrap()).collect()
}

fn on_device(models: &[HeldModel]) -> Vec<Resident<'_>> {
    static START: OnceLock<Instant> = OnceLock::new();
    let start = *START.get_or_init(Instant::now);
    let residents = models.iter().enumerate().map(|(index, model)| Resident {
        id: IDS[index],
        weights: model.weights,
        activation: &*model.activation,
        pinned: model.pinned,
        in_use: model.in_use,
        last_used: Some(start + Duration::from_secs(model.last_used)),
    });
    residents.collect()
}

/// Returns which of `models` `newcomer` evicts; batches have up to 100 tokens.
fn evicted(newcomer: HeldModel, models: &[HeldModel], memory: u64) -> Result<Vec<usize>, String> {
    let newcomer = [newcomer];
    let newcomer = Resident { id: "new", ..on_device(&newcomer).remove(0) };
    evictions(&newcomer, &on_device(models), memory, 100).map(places)
}

#[test]
fn who_goes_first() {
    let used = |last_used, in_use| HeldModel { last_used, in_use, ..model(1, 0) };
    let mut models = [used(3, false), used(1, true), used(2, false), used(2, false), used(0, true), used(0, false)];
    models[5].pinned = true;
    assert_eq!(
        places(eviction_order(&on_device(&models))),
        [2, 3, 0, 4, 1],
        "idle before busy, old before new, pinned never"
    );
}

#[test]
fn no_more_go_than_must() {
    let used = |last_used| HeldModel { last_used, ..model(30, 0) };
    let models = [used(2), used(1), used(3)];
    assert_eq!(evicted(model(10, 0), &models, 100), Ok(vec![]));
    assert_eq!(evicted(model(11, 0), &models, 100), Ok(vec![1]));
    assert_eq!(evicted(model(40, 0), &models, 100), Ok(vec![1]));
    assert_eq!(evicted(model(41, 0), &models, 100), Ok(vec![1, 0]));
    assert_eq!(evicted(model(100, 0), &models, 100), Ok(vec![1, 0, 2]));
    assert!(evicted(model(101, 0), &models, 100).is_err());
}

#[test]
fn one_batch_at_a_time_needs_room_beside_the_weights() {
    // The weights of all, 70, and the largest activations, 4,000 for 100 tokens, whoever's they are.
    let residents = [HeldModel { pinned: true, ..model(10, 40) }, model(30, 2)];
    assert_eq!(evicted(model(30, 1), &residents, 4070), Ok(vec![]));
    assert_eq!(evicted(model(30, 1), &residents, 4069), Ok(vec![1]));
    let residents = [HeldModel { pinned: true, ..model(10, 1) }, model(30, 2)];
    assert_eq!(evicted(model(30, 40), &residents, 4070), Ok(vec![]));
    assert_eq!(evicted(model(30, 40), &residents, 4069), Ok(vec![1]));
}

#[test]
fn smaller_batches_will_do_before_a_model_is_refused() {
    assert_eq!(evicted(model(50, 1), &[model(5, 0)], 150), Ok(vec![0]), "whole batches where they can be had");
    // 100 tokens have no room even alone, 50 have.
    assert_eq!(evicted(model(50, 1), &[], 120), Ok(vec![]));
    assert_eq!(evicted(model(50, 1), &[model(20, 0)], 120), Ok(vec![]), "half a batch, and nobody has to go for it");
    assert_eq!(evicted(model(50, 1), &[model(21, 0)], 120), Ok(vec![0]));
    assert_eq!(evicted(model(50, 1), &[], 51), Ok(vec![]), "one token at least");
    assert!(evicted(model(50, 1), &[], 50).is_err());
}

#[test]
fn a_refusal_gives_the_numbers() {
    const GIB: u64 = 1 << 30;
    let pinned = |weights| HeldModel { pinned: true, ..model(weights, 1 << 20) };
    let models = [pinned(3 * GIB), model(GIB, 0), pinned(GIB / 2)];
    assert_eq!(
        evicted(model(5 * GIB, 3 << 20), &models, 8 * GIB).unwrap_err(),
        "needs 5.0 GiB (5.0 GiB of weights and at least 3.0 MiB to run) and the device has 8.0 GiB, \
         of which pinned models hold 3.5 GiB (`a` 3.0 GiB, `c` 512.0 MiB)"
    );
    assert_eq!(
        evicted(model(9 * GIB, 0), &[], 8 * GIB).unwrap_err(),
        "needs 9.0 GiB (9.0 GiB of weights and at least 0.0 MiB to run) and the device has 8.0 GiB"
    );
}

#[test]
fn absurd_numbers_are_refused_and_not_added_up() {
    let models = [HeldModel { pinned: true, ..model(u64::MAX, 0) }];
    assert!(evicted(model(u64::MAX, 0), &models, u64::MAX - 1).is_err());
}

fn models() -> impl Strategy<Value = Vec<HeldModel>> {
    let model = (0..60_u64, 0..3_u64, any::<bool>(), any::<bool>(), 0..4_u64).prop_map(
        |(weights, per_token, pinned, in_use, last_used)| HeldModel {
            pinned,
            in_use,
            last_used,
            ..model(weights, per_token)
        },
    );
    proptest::collection::vec(model, 0..8)
}

proptest! {
    #[test]
    fn the_rules_hold_for_any_device(residents in models(), weights in 0..100_u64, per_token in 0..3_u64, memory in 0..400_u64) {
        let order = places(eviction_order(&on_device(&residents)));
        // Memory used on the device with the first `gone` models evicted, in batches of `tokens` tokens.
        let used = |gone: usize, tokens: usize| {
            let stay = residents.iter().enumerate().filter(|(index, _)| !order[..gone].contains(index));
            let stay: Vec<_> = stay.map(|(_, model)| model).collect();
            let activation = stay.iter().map(|model| (model.activation)(tokens)).max().unwrap_or(0);
            stay.iter().map(|model| model.weights).sum::<u64>() + weights + activation.max(per_token * tokens as u64)
        };
        match evicted(model(weights, per_token), &residents, memory) {
            Err(_) => prop_assert!(used(order.len(), 1) > memory, "refused only where nothing would help"),
            Ok(evicted) => {
                prop_assert_eq!(&evicted[..], &order[..evicted.len()], "in order, and never a pinned one");
                // The largest goal that can be reached with all gone is reached, and not with one less gone.
                let goal = [100, 50, 25, 12, 6, 3, 1].into_iter().find(|tokens| used(order.len(), *tokens) <= memory);
                let goal = goal.expect("it was accepted");
                prop_assert!(used(evicted.len(), goal) <= memory);
                prop_assert!(evicted.is_empty() || used(evicted.len() - 1, goal) > memory);
            }
        }
    }

    #[test]
    fn a_batch_is_as_large_as_fits(per_token in 0..50_u64, room in 0..5_000_u64, most in 1..200_usize) {
        let activation = |tokens: usize| per_token * tokens as u64;
        let largest = largest_batch(&activation, room, most);
        prop_assert!((1..=most).contains(&largest));
        prop_assert!(activation(largest) <= room || largest == 1);
        prop_assert!(largest == most || activation(largest + 1) > room);
    }
}
