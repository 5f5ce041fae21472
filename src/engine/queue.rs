//! Work that waits for a forward pass, by model and class, each in the order of its turn. A model under an adapter is one of its
//! own here, since a batch has one adapter.
//!
//! Turns are fair between principals: start-time fair queueing (Goyal, Vin and Cheng 1996). The clock of a class counts tokens: an entry's
//! turn comes when its principal's earlier entries are through, or now where they are, and the clock goes on to the first turn that
//! is left. So of principals that have work waiting each gets the same share of tokens, and one that asks for little does not wait
//! for one that has asked for much. The entries of one principal keep the order of their arrival, unless one before them is cancelled. A
//! principal whose batch work comes after a pause has its first [`CREDIT`] budgets before others: a short audit does not take twice its
//! time beside a long one. When the queue of a class is empty, earlier use no longer counts: a principal that had the
//! device to itself does not wait for that later.
//!
//! A batch is formed by these rules:
//!
//! - A batch is led by the oldest waiting sequence of its class that the device may run, and holds one model and one
//!   class: a client's text never pays for the forward pass of an audit.
//! - Later sequences of the same model fill what the leader leaves of the token budget. At most [`LOOK_AHEAD`]
//!   sequences are passed over in search of them, so that forming a batch costs the batch and a constant, however
//!   long the queue is. A leader above the budget runs alone.
//! - Interactive leads while any waits, but once it has run [`PATIENCE`] budgets of tokens (or half a budget less) past waiting batch
//!   work of the same principal, batch work leads there once. Past another principal's it runs one budget for each principal
//!   that has interactive work waiting, at most `PATIENCE`: the texts of one client take about half of the device from
//!   the audit of another. A batch counts as a quarter of a budget at least, since a small one takes more time a token. So neither
//!   class starves, and an interactive sequence waits for at most one batch of the other class at a time, or two where one is prepared
//!   while another runs.
//! - The exception is bulk: where more than `PATIENCE` budgets of a principal's interactive work wait, they wait for seconds anyway. The
//!   batch work of another principal that has credit left runs `PATIENCE` budgets for each of theirs, and they fill no batch that
//!   another's text leads.
//!
//! Lengths matter for the budget alone: a batch is not made of sequences of like length. The kernels here pad nothing, and
//! candle's operations pad within groups of like length, so that sorting would save a few percent at most and make texts wait.

use super::request::{Class, PerClass};
use super::turn::{Lead, PATIENCE, Precedence, Turn};
use crate::pool::base_id;
use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

/// Maximum number of sequences passed over while a batch is filled.
pub(super) const LOOK_AHEAD: usize = 256;

/// Number of batches' worth of tokens that a principal has before others when its batch work comes after a pause.
pub(super) const CREDIT: usize = 16;

/// Positions, ascending, of the sequences that run next, out of those of one model and class, given by their lengths;
/// the first is always 0. Empty only where nothing waits.
pub(super) fn form(lengths: impl IntoIterator<Item = usize>, budget: usize) -> Vec<usize> {
    let mut lengths = lengths.into_iter().enumerate();
    let Some((_, leader)) = lengths.next() else {
        return Vec::new();
    };
    let mut picked = vec![0];
    let mut room = budget.saturating_sub(leader);
    let mut passed_over = 0;
    for (position, tokens) in lengths {
        if room == 0 || passed_over == LOOK_AHEAD {
            break;
        }
        if tokens <= room {
            room -= tokens;
            picked.push(position);
        } else {
            passed_over += 1;
        }
    }
    picked
}

/// Cuts a batch of at least two into two parts of about equal tokens, neither empty, order kept.
pub(super) fn halve<T>(mut batch: Vec<T>, tokens: impl Fn(&T) -> usize) -> (Vec<T>, Vec<T>) {
    let total: usize = batch.iter().map(&tokens).sum();
    let mut before = 0;
    let middle = batch
        .iter()
        .position(|entry| {
            before += tokens(entry);
            before * 2 >= total
        })
        .map_or(1, |position| position + 1)
        .min(batch.len().saturating_sub(1));
    let rest = batch.split_off(middle);
    (batch, rest)
}

/// Where an entry is, its model, and the entry.
type Front<'a, T> = (QueuePlace, &'a Arc<str>, &'a T);

/// Candidates for the next batch.
struct Fronts<'a, T> {
    text: Option<Front<'a, T>>,
    /// True if `text` is held back behind `audit`.
    texts_held_back: bool,
    audit: Option<Front<'a, T>>,
    /// Principal of `audit`, if it has credit left.
    with_credit: Option<&'a Arc<str>>,
}

/// The place of an entry among those of its class: the clock at which its turn comes, and the number of its arrival.
type QueuePlace = (u64, u64);

/// Work that waits for one model in one class.
type Lane<T> = BTreeMap<QueuePlace, T>;

#[derive(Debug, Default)]
struct Clock {
    now: u64,
    /// Maximum distance before `now` of the turn of a principal that had no work waiting.
    credit: u64,
    /// Turn of the next entry of each principal; one that has no entries and owes nothing is not there.
    next: HashMap<Arc<str>, u64>,
}

impl Clock {
    fn earliest(&self) -> u64 {
        self.now.saturating_sub(self.credit)
    }

    /// Goes on to a turn, and forgets principals that owe nothing.
    fn advance(&mut self, turn: u64) {
        if turn > self.now {
            self.now = turn;
            let earliest = self.earliest();
            self.next.retain(|_, next| *next > earliest);
        }
    }

    /// Returns the turn of an entry of `tokens` tokens that enters a lane whose first turn is `front`. The clock stands at the first turn of
    /// all lanes: one that another device serves slowly would hold it, and give who comes later all that this lane has had since.
    fn enter(&mut self, principal: &Arc<str>, tokens: usize, front: u64) -> u64 {
        let earliest = self.now.max(front).saturating_sub(self.credit);
        let next = self.next.entry(Arc::clone(principal)).or_default();
        let turn = earliest.max(*next);
        *next = turn.saturating_add(tokens as u64);
        turn
    }

    /// Takes back what an entry was counted for that was not served.
    fn take_back(&mut self, principal: &str, tokens: usize) {
        let earliest = self.earliest();
        if let Some(next) = self.next.get_mut(principal) {
            *next = next.saturating_sub(tokens as u64).max(earliest);
        }
    }
}

#[derive(Debug)]
pub(super) struct Queue<T> {
    models: HashMap<Arc<str>, PerClass<Lane<T>>>,
    clocks: PerClass<Clock>,
    arrivals: u64,
    tokens: fn(&T) -> usize,
    /// Number of tokens that an entry takes of a batch.
    batch_tokens: fn(&T) -> usize,
    principal: fn(&T) -> &Arc<str>,
}

impl<T> Queue<T> {
    /// An empty queue; `tokens` is the length of an entry, `batch_tokens` what it takes of a batch, and `principal` who asks for it.
    pub(super) fn new(tokens: fn(&T) -> usize, batch_tokens: fn(&T) -> usize, principal: fn(&T) -> &Arc<str>) -> Self {
        let clocks = PerClass::new(|_| Clock::default());
        Self { models: HashMap::new(), clocks, arrivals: 0, tokens, batch_tokens, principal }
    }

    pub(super) fn push(&mut self, class: Class, model: &Arc<str>, entry: T) {
        let lanes = self.models.entry(Arc::clone(model)).or_insert_with(|| PerClass::new(|_| Lane::new()));
        let lane = lanes.get_mut(class);
        let front = lane.first_key_value().map_or(0, |((turn, _), _)| *turn);
        let turn = self.clocks.get_mut(class).enter((self.principal)(&entry), (self.tokens)(&entry), front);
        lane.insert((turn, self.arrivals), entry);
        self.arrivals += 1;
    }

    /// Puts an entry that was taken and not served before those that were not. What its principal was counted for it stays.
    pub(super) fn put_back(&mut self, class: Class, model: &Arc<str>, entry: T) {
        let lanes = self.models.entry(Arc::clone(model)).or_insert_with(|| PerClass::new(|_| Lane::new()));
        lanes.get_mut(class).insert((0, self.arrivals), entry);
        self.arrivals += 1;
    }

    /// Returns how much of one class may run past waiting work of the other on a device that may run the models for which `eligible` holds.
    pub(super) fn precedence(&self, turn: &Turn, eligible: impl Fn(&str) -> bool) -> Precedence {
        let Fronts { text: Some((.., text)), texts_held_back, audit: Some((.., audit)), .. } =
            self.fronts_of_classes(turn.budget, &eligible)
        else {
            return Precedence::Interactive(turn.budgets(PATIENCE));
        };
        let audit_of = (self.principal)(audit);
        if texts_held_back {
            Precedence::Batch(turn.budgets(PATIENCE))
        } else if (self.principal)(text) == audit_of {
            Precedence::Interactive(turn.budgets(PATIENCE))
        } else {
            Precedence::Interactive(turn.budgets(self.others_waiting(audit_of, &eligible)))
        }
    }

    /// Returns the leader of the next batch of a device that may run the models for which `eligible` holds; `None` if nothing
    /// waits for them.
    pub(super) fn lead(&self, turn: &Turn, precedence: &Precedence, eligible: impl Fn(&str) -> bool) -> Option<Lead> {
        let Fronts { text, texts_held_back, audit, with_credit } = self.fronts_of_classes(turn.budget, eligible);
        let class = match (text.is_some(), audit.is_some()) {
            (true, true) => turn.leader(precedence),
            (false, true) => Class::Batch,
            _ => Class::Interactive,
        };
        let led = match class {
            Class::Interactive => text,
            Class::Batch => audit,
        };
        let leads_with_texts = class == Class::Interactive && !texts_held_back;
        let held_back_behind = with_credit.filter(|_| leads_with_texts).map(Arc::clone);
        led.map(|(_, model, _)| Lead {
            model: Arc::clone(model),
            class,
            batch_waits: audit.is_some(),
            texts_held_back,
            held_back_behind,
        })
    }

    /// Returns the entry of each class that may lead among the models for which `eligible` holds: of interactive work one that is not held
    /// back, if there is one.
    fn fronts_of_classes(&self, budget: usize, eligible: impl Fn(&str) -> bool) -> Fronts<'_, T> {
        let audit = self.first(Class::Batch, &eligible);
        let with_credit = audit.filter(|((turn, _), ..)| *turn < self.clocks.get(Class::Batch).now);
        let with_credit = with_credit.map(|(.., audit)| (self.principal)(audit));
        let first = self.first(Class::Interactive, &eligible);
        let Some(audit_of) = with_credit else {
            return Fronts { text: first, texts_held_back: false, audit, with_credit };
        };
        let lanes = self.models.iter().filter(|(model, _)| eligible(model));
        let texts = lanes.filter_map(|(model, lanes)| {
            let (place, entry) = self.not_held_back(lanes.get(Class::Interactive), audit_of, budget).next()?;
            Some((place, model, entry))
        });
        let text = texts.min_by_key(|(place, ..)| *place);
        Fronts { text: text.or(first), texts_held_back: text.is_none() && first.is_some(), audit, with_credit }
    }

    /// Returns the first [`LOOK_AHEAD`] entries of interactive work without those that are held back behind batch work of `audit_of`, which
    /// has credit left: those of other principals of whose interactive work more than [`PATIENCE`] budgets wait.
    fn not_held_back<'a>(
        &'a self,
        lane: &'a Lane<T>,
        audit_of: &'a Arc<str>,
        budget: usize,
    ) -> impl Iterator<Item = (QueuePlace, &'a T)> {
        let next = &self.clocks.get(Class::Interactive).next;
        let mut known: Vec<(&Arc<str>, bool)> = Vec::new();
        let near = lane.iter().take(LOOK_AHEAD).map(|(place, entry)| (*place, entry));
        near.filter(move |((turn, _), entry)| {
            let principal = (self.principal)(entry);
            if let Some((_, is_held_back)) = known.iter().find(|(name, _)| *name == principal) {
                return !is_held_back;
            }
            let waiting = next.get(principal).map_or(0, |next| next.saturating_sub(*turn));
            let is_held_back = principal != audit_of && waiting > budget.saturating_mul(PATIENCE) as u64;
            known.push((principal, is_held_back));
            !is_held_back
        })
    }

    /// The entry of a class whose turn is first among the models for which `eligible` holds, and its model.
    fn first(&self, class: Class, eligible: impl Fn(&str) -> bool) -> Option<Front<'_, T>> {
        let fronts = self.fronts(class).filter(|(_, model, _)| eligible(model));
        fronts.min_by_key(|(place, ..)| *place)
    }

    /// Returns the number of principals but this one that have interactive work among the first of each model, from 1 to [`PATIENCE`].
    fn others_waiting(&self, principal: &str, eligible: impl Fn(&str) -> bool) -> usize {
        let lanes =
            self.models.iter().filter(|(model, _)| eligible(model)).map(|(_, lanes)| lanes.get(Class::Interactive));
        let mut others: Vec<&str> = Vec::new();
        for name in lanes.flat_map(|lane| lane.values().take(LOOK_AHEAD)).map(|entry| &**(self.principal)(entry)) {
            if others.len() < PATIENCE && name != principal && !others.contains(&name) {
                others.push(name);
            }
        }
        others.len().max(1)
    }

    /// Returns true if enough waits to fill a batch that `lead` leads and that may begin behind another one.
    pub(super) fn fills(&self, lead: &Lead, budget: usize) -> bool {
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
    pub(super) fn take(&mut self, lead: &Lead, turn: &mut Turn, budget: usize, runs: impl Fn(&str) -> bool) -> Vec<T> {
        // Of all models: where one is served while others wait, the turns of the others are still to come. But not of one that
        // does not run: it would hold the clock for all others.
        if let Some((first, _)) = self.fronts(lead.class).filter(|(_, id, _)| runs(id)).map(|(place, ..)| place).min() {
            self.clocks.get_mut(lead.class).advance(first);
        }
        let Some(lane) = self.models.get(&lead.model).map(|lanes| lanes.get(lead.class)) else { return Vec::new() };
        let mut places = Vec::new();
        let mut note = |(place, entry): (QueuePlace, &T)| {
            places.push(place);
            (self.batch_tokens)(entry)
        };
        // By the budget that chose the leader, which would be held back by a smaller one.
        let picked = match &lead.held_back_behind {
            Some(audit_of) => form(self.not_held_back(lane, audit_of, turn.budget).map(note), budget),
            None => form(lane.iter().map(|(place, entry)| note((*place, entry))), budget),
        };
        let Some(lanes) = self.models.get_mut(&lead.model) else { return Vec::new() };
        let lane = lanes.get_mut(lead.class);
        let taken: Vec<T> = picked.into_iter().filter_map(|position| lane.remove(places.get(position)?)).collect();
        if lead.class == Class::Batch {
            // That of the smallest budget: devices and models of several share the clock.
            let (clock, credit) = (self.clocks.get_mut(Class::Batch), budget.saturating_mul(CREDIT) as u64);
            clock.credit = if clock.credit == 0 { credit } else { clock.credit.min(credit) };
        }
        turn.note(lead, taken.iter().map(self.tokens).fold(0, usize::saturating_add), budget);
        self.tidy(&lead.model);
        taken
    }

    /// Takes out every entry of a model and class for which `wanted` holds; the others keep their order.
    pub(super) fn extract(&mut self, class: Class, model: &str, mut wanted: impl FnMut(&T) -> bool) -> Vec<T> {
        let Some(lanes) = self.models.get_mut(model) else { return Vec::new() };
        let extracted: Vec<T> =
            lanes.get_mut(class).extract_if(.., |_, entry| wanted(entry)).map(|(_, entry)| entry).collect();
        self.tidy(model);
        self.take_back(class, &extracted);
        extracted
    }

    /// Takes out everything that waits for the model, under whatever adapter.
    pub(super) fn extract_model(&mut self, model: &str) -> Vec<T> {
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

    pub(super) fn clear(&mut self) {
        self.models.clear();
        self.clocks = PerClass::new(|_| Clock::default());
    }

    /// The first entry of each model for which something waits, and its place.
    fn fronts(&self, class: Class) -> impl Iterator<Item = Front<'_, T>> {
        self.models.iter().filter_map(move |(model, lanes)| {
            let (place, entry) = lanes.get(class).first_key_value()?;
            Some((*place, model, entry))
        })
    }

    fn take_back(&mut self, class: Class, entries: &[T]) {
        let clock = self.clocks.get_mut(class);
        entries.iter().for_each(|entry| clock.take_back((self.principal)(entry), (self.tokens)(entry)));
    }

    fn tidy(&mut self, model: &str) {
        if self.models.get(model).is_some_and(|lanes| lanes.iter().all(Lane::is_empty)) {
            self.models.remove(model);
        }
        for class in [Class::Interactive, Class::Batch] {
            if self.models.values().all(|lanes| lanes.get(class).is_empty()) {
                self.clocks.get_mut(class).next.clear();
            }
        }
    }
}
