//! Work that waits for a forward pass, by model and class, each in the order of its turn. A model under an adapter is one of its
//! own here, since a batch has one adapter.
//!
//! Turns are fair between callers: start-time fair queueing (Goyal, Vin and Cheng 1996). The clock of a class counts tokens: an entry's
//! turn comes when its caller's earlier entries are through, or now where they are, and the clock goes on to the first turn that
//! is left. So of callers that have work waiting each gets the same share of tokens, and one that asks for little does not wait
//! for one that has asked for much. The entries of one caller keep the order of their arrival.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use super::formation::{PATIENCE, Turn, form, leader};
use crate::engine::class::{Class, PerClass};
use crate::pool::base_id;

/// Leader of the next batch of a device.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::engine) struct Lead {
    /// The id of its model.
    pub(in crate::engine) model: Arc<str>,
    pub(in crate::engine) class: Class,
    batch_waits: bool,
}

/// The place of an entry among those of its class: the clock at which its turn comes, and the number of its arrival.
type QueuePlace = (u64, u64);

/// Work that waits for one model in one class.
type Lane<T> = BTreeMap<QueuePlace, T>;

/// The turns of one class, in tokens.
#[derive(Debug, Default)]
struct Clock {
    now: u64,
    /// When the next entry of each caller has its turn.
    next: HashMap<Arc<str>, u64>,
}

impl Clock {
    /// Returns the turn of an entry of `tokens` tokens.
    fn turn(&mut self, caller: &Arc<str>, tokens: usize) -> u64 {
        let next = self.next.entry(Arc::clone(caller)).or_default();
        let turn = self.now.max(*next);
        *next = turn.saturating_add(tokens as u64);
        turn
    }

    /// Takes back what an entry was counted for that was not served.
    fn take_back(&mut self, caller: &Arc<str>, tokens: usize) {
        if let Some(next) = self.next.get_mut(caller) {
            *next = next.saturating_sub(tokens as u64).max(self.now);
        }
    }
}

/// The entries that wait.
#[derive(Debug)]
pub(in crate::engine) struct Queue<T> {
    /// By model; one for which nothing waits is not there.
    models: HashMap<Arc<str>, PerClass<Lane<T>>>,
    clocks: PerClass<Clock>,
    arrivals: u64,
    tokens: fn(&T) -> usize,
    /// Number of tokens that an entry takes of a batch.
    batch_tokens: fn(&T) -> usize,
    caller: fn(&T) -> &Arc<str>,
}

impl<T> Queue<T> {
    /// An empty queue; `tokens` is the length of an entry, `batch_tokens` what it takes of a batch, and `caller` who asks for it.
    pub(in crate::engine) fn new(
        tokens: fn(&T) -> usize,
        batch_tokens: fn(&T) -> usize,
        caller: fn(&T) -> &Arc<str>,
    ) -> Self {
        let clocks = PerClass::new(|_| Clock::default());
        Self { models: HashMap::new(), clocks, arrivals: 0, tokens, batch_tokens, caller }
    }

    pub(in crate::engine) fn push(&mut self, class: Class, model: &Arc<str>, entry: T) {
        let turn = self.clocks.get_mut(class).turn((self.caller)(&entry), (self.tokens)(&entry));
        let lanes = self.models.entry(Arc::clone(model)).or_insert_with(|| PerClass::new(|_| Lane::new()));
        lanes.get_mut(class).insert((turn, self.arrivals), entry);
        self.arrivals += 1;
    }

    /// Puts an entry that was taken and not served before those that were not. What its caller was counted for it stays.
    pub(in crate::engine) fn put_back(&mut self, class: Class, model: &Arc<str>, entry: T) {
        let lanes = self.models.entry(Arc::clone(model)).or_insert_with(|| PerClass::new(|_| Lane::new()));
        lanes.get_mut(class).insert((0, self.arrivals), entry);
        self.arrivals += 1;
    }

    /// Returns the leader of the next batch of a device that may run the models for which `eligible` holds; `None` if nothing
    /// waits for them.
    pub(in crate::engine) fn lead(&self, turn: &Turn, eligible: impl Fn(&str) -> bool) -> Option<Lead> {
        let first = |class: Class| {
            let first = self.fronts(class).filter(|(_, model)| eligible(model)).min();
            first.map(|(_, model)| Arc::clone(model))
        };
        let (interactive, batch) = (first(Class::Interactive), first(Class::Batch));
        let batch_waits = batch.is_some();
        let class = leader(interactive.is_some(), batch_waits, turn.overtaken, turn.patience);
        let model = match class {
            Class::Interactive => interactive,
            Class::Batch => batch,
        };
        model.map(|model| Lead { model, class, batch_waits })
    }

    /// Returns true if enough waits to fill a batch that `lead` leads and that may begin behind another one.
    pub(in crate::engine) fn fills(&self, lead: &Lead, budget: usize) -> bool {
        let Some(lanes) = self.models.get(&lead.model) else { return false };
        let lane = lanes.get(lead.class);
        let runs_alone = |entry: &T| (self.batch_tokens)(entry) == usize::MAX;
        if lane.values().next().is_some_and(runs_alone) {
            return false;
        }
        let mut room = budget;
        lane.values().any(|entry| {
            room = room.saturating_sub((self.batch_tokens)(entry));
            room == 0
        })
    }

    /// Takes the batch that `lead` leads out of the queue, in the order of turns, and records whose turn it was. `runs` tells for
    /// which models a batch may begin now or soon.
    pub(in crate::engine) fn take(
        &mut self,
        lead: &Lead,
        turn: &mut Turn,
        budget: usize,
        runs: impl Fn(&str) -> bool,
    ) -> Vec<T> {
        // Of all models: where one is served while others wait, the turns of the others are still to come. But not of one that
        // does not run: it would hold the clock for all others.
        if let Some((first, _)) = self.fronts(lead.class).filter(|(_, id)| runs(id)).map(|(place, _)| place).min() {
            let clock = self.clocks.get_mut(lead.class);
            clock.now = clock.now.max(first);
        }
        let Some(lanes) = self.models.get_mut(&lead.model) else { return Vec::new() };
        let lane = lanes.get_mut(lead.class);
        let picked = form(lane.values().map(self.batch_tokens), budget);
        let taken = take(lane, &picked);
        turn.patience = budget.saturating_mul(PATIENCE);
        turn.overtaken = if lead.class == Class::Interactive && lead.batch_waits {
            taken.iter().map(self.tokens).fold(turn.overtaken, usize::saturating_add)
        } else {
            0
        };
        self.tidy(&lead.model);
        taken
    }

    /// Takes out every entry of a model and class for which `wanted` holds; the others keep their order.
    pub(in crate::engine) fn extract(
        &mut self,
        class: Class,
        model: &str,
        mut wanted: impl FnMut(&T) -> bool,
    ) -> Vec<T> {
        let Some(lanes) = self.models.get_mut(model) else { return Vec::new() };
        let extracted: Vec<T> =
            lanes.get_mut(class).extract_if(.., |_, entry| wanted(entry)).map(|(_, entry)| entry).collect();
        self.tidy(model);
        self.take_back(class, &extracted);
        extracted
    }

    /// Takes out everything that waits for the model, under whatever adapter.
    pub(in crate::engine) fn extract_model(&mut self, model: &str) -> Vec<T> {
        let removed: Vec<_> = self.models.extract_if(|id, _| base_id(id) == base_id(model)).collect();
        let mut extracted = Vec::new();
        for (_, mut lanes) in removed {
            for class in [Class::Interactive, Class::Batch] {
                let entries: Vec<T> = std::mem::take(lanes.get_mut(class)).into_values().collect();
                self.take_back(class, &entries);
                extracted.extend(entries);
            }
        }
        extracted
    }

    /// Takes out everything.
    pub(in crate::engine) fn clear(&mut self) {
        self.models.clear();
    }

    /// The first place of each model for which something waits.
    fn fronts(&self, class: Class) -> impl Iterator<Item = (QueuePlace, &Arc<str>)> {
        self.models.iter().filter_map(move |(model, lanes)| Some((*lanes.get(class).first_key_value()?.0, model)))
    }

    fn take_back(&mut self, class: Class, entries: &[T]) {
        let clock = self.clocks.get_mut(class);
        entries.iter().for_each(|entry| clock.take_back((self.caller)(entry), (self.tokens)(entry)));
    }

    fn tidy(&mut self, model: &str) {
        if self.models.get(model).is_some_and(|lanes| lanes.iter().all(Lane::is_empty)) {
            self.models.remove(model);
        }
    }
}

/// Takes the entries at the ascending positions `picked`.
fn take<T>(lane: &mut Lane<T>, picked: &[usize]) -> Vec<T> {
    let mut wanted = picked.iter().copied().peekable();
    let reach = picked.last().map_or(0, |last| last + 1);
    let places: Vec<QueuePlace> = lane
        .keys()
        .take(reach)
        .enumerate()
        .filter(|(position, _)| wanted.next_if_eq(position).is_some())
        .map(|(_, place)| *place)
        .collect();
    places.iter().filter_map(|place| lane.remove(place)).collect()
}
