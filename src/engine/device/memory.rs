//! Which models make room for another one on a device. Pure: facts in, models to evict or a refusal out.
//!
//! Memory accounting of a device: the weights of all its models, and beside them the activations of one batch, for the model that
//! takes most; all of it must fit in the device's memory.
//!
//! The rules:
//!
//! - Room is made for batches of the device's token budget. Only where that is out of reach, even with every model gone that
//!   may go, half of it will do, and so on down to one token, which means one sequence at a time.
//! - As few models go as reach that, in order: those without work before those with, and then the least recently used.
//!   Pinned models stay.
//! - Where not even one token has room nothing is evicted, and the refusal says what is short.

use crate::pool::working_bytes;
use std::iter::successors;
use std::time::Instant;

/// A model on a device, or one that is to come there.
pub(in crate::engine) struct Resident<'a> {
    pub(in crate::engine) id: &'a str,
    pub(in crate::engine) weights: u64,
    pub(in crate::engine) activation: &'a dyn Fn(usize) -> u64,
    pub(in crate::engine) pinned: bool,
    /// True if work waits for it.
    pub(in crate::engine) in_use: bool,
    pub(in crate::engine) last_used: Option<Instant>,
}

/// The ids of the models to evict, in order, so that `newcomer` fits beside the rest of `residents` in `memory` bytes.
///
/// # Errors
/// Says in words what is needed, what there is, and who holds it.
pub(in crate::engine) fn evictions<'a>(
    newcomer: &Resident<'_>,
    residents: &[Resident<'a>],
    memory: u64,
    max_batch_tokens: usize,
) -> Result<Vec<&'a str>, String> {
    let order = eviction_order(residents);
    let fits = |evicted: usize, tokens: usize| {
        let stays = |resident: &&Resident<'_>| !order[..evicted].contains(&resident.id);
        let staying = residents.iter().filter(stays).chain([newcomer]);
        working_bytes(staying.map(|resident| (resident.weights, resident.activation)), tokens) <= memory
    };
    let mut goals = successors(Some(max_batch_tokens.max(1)), |tokens| (*tokens > 1).then_some(tokens / 2));
    let goal = goals.find(|tokens| fits(order.len(), *tokens));
    let goal = goal.ok_or_else(|| shortage(newcomer, residents, memory))?;
    let fewest = (0..order.len()).find(|evicted| fits(*evicted, goal)).unwrap_or(order.len());
    Ok(order[..fewest].to_vec())
}

/// The ids of the models that may be evicted: who goes first comes first.
pub(in crate::engine) fn eviction_order<'a>(residents: &[Resident<'a>]) -> Vec<&'a str> {
    let mut order: Vec<_> = residents.iter().filter(|resident| !resident.pinned).collect();
    order.sort_by_key(|resident| (resident.in_use, resident.last_used));
    order.into_iter().map(|resident| resident.id).collect()
}

fn shortage(newcomer: &Resident<'_>, residents: &[Resident<'_>], memory: u64) -> String {
    let pinned = || residents.iter().filter(|resident| resident.pinned);
    let activation = pinned().chain([newcomer]).map(|resident| (resident.activation)(1)).max().unwrap_or(0);
    let needed = newcomer.weights.saturating_add(activation);
    let mut reason = format!(
        "needs {} ({} of weights and at least {} to run) and the device has {}",
        size(needed),
        size(newcomer.weights),
        size(activation),
        size(memory),
    );
    let holders: Vec<_> = pinned().map(|resident| format!("`{}` {}", resident.id, size(resident.weights))).collect();
    if !holders.is_empty() {
        let held = pinned().map(|resident| resident.weights).fold(0, u64::saturating_add);
        reason += &format!(", of which pinned models hold {} ({})", size(held), holders.join(", "));
    }
    reason
}

fn size(bytes: u64) -> String {
    const MIB: f64 = (1 << 20) as f64;
    let mib = bytes as f64 / MIB;
    if mib < 1024.0 { format!("{mib:.1} MiB") } else { format!("{:.1} GiB", mib / 1024.0) }
}
