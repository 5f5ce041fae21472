//! Slots of something that several parties share, with a share for each, so that none can take all of it.

use std::collections::HashMap;
use std::hash::Hash;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// A number of slots; cheap to clone, and clones share them.
#[derive(Debug)]
pub struct Slots<K: Eq + Hash> {
    shared: Arc<SharedSlots<K>>,
}

#[derive(Debug)]
struct SharedSlots<K> {
    size: usize,
    share: usize,
    taken: Mutex<TakenSlots<K>>,
    freed: Condvar,
}

#[derive(Debug)]
struct TakenSlots<K> {
    all: usize,
    /// Slots by party; one that has none is not there.
    by_party: HashMap<K, usize>,
}

/// A slot, given back when dropped.
#[derive(Debug)]
pub struct Slot<K: Eq + Hash> {
    shared: Arc<SharedSlots<K>>,
    party: Option<K>,
}

/// The bound that leaves no slot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NoSlot {
    /// All of this many are taken.
    Full(usize),
    /// The party has its share, which is this many.
    ShareTaken(usize),
}

impl<K: Eq + Hash> Clone for Slots<K> {
    fn clone(&self) -> Self {
        Self { shared: Arc::clone(&self.shared) }
    }
}

impl<K: Eq + Hash + Clone> Slots<K> {
    /// Creates `size` slots, of which one party gets at most `share`.
    #[must_use]
    pub fn new(size: usize, share: usize) -> Self {
        let taken = Mutex::new(TakenSlots { all: 0, by_party: HashMap::new() });
        Self { shared: Arc::new(SharedSlots { size, share, taken, freed: Condvar::new() }) }
    }

    /// Creates `size` slots, of which one party gets at most half, rounded up.
    #[must_use]
    pub fn halved(size: usize) -> Self {
        Self::new(size, size.div_ceil(2))
    }

    /// Takes a slot for a party; `None` stands for the only one there is, which may have all.
    pub fn try_take(&self, party: Option<K>) -> Result<Slot<K>, NoSlot> {
        self.take_of(&mut self.shared.lock(), party)
    }

    /// Takes a slot, and blocks for at most `patience` until there is one.
    pub fn take_within(&self, party: Option<&K>, patience: Duration) -> Result<Slot<K>, NoSlot> {
        let (begun, mut taken) = (Instant::now(), self.shared.lock());
        loop {
            let refusal = match self.take_of(&mut taken, party.cloned()) {
                Ok(slot) => return Ok(slot),
                Err(refusal) => refusal,
            };
            let left = patience.saturating_sub(begun.elapsed());
            if left.is_zero() {
                return Err(refusal);
            }
            (taken, _) = self.shared.freed.wait_timeout(taken, left).unwrap_or_else(PoisonError::into_inner);
        }
    }

    fn take_of(&self, taken: &mut TakenSlots<K>, party: Option<K>) -> Result<Slot<K>, NoSlot> {
        let SharedSlots { size, share, .. } = *self.shared;
        if taken.all >= size {
            return Err(NoSlot::Full(size));
        }
        if let Some(party) = &party {
            let owned = taken.by_party.get(party).copied().unwrap_or(0);
            if owned >= share {
                return Err(NoSlot::ShareTaken(share));
            }
            taken.by_party.insert(party.clone(), owned + 1);
        }
        taken.all += 1;
        Ok(Slot { shared: Arc::clone(&self.shared), party })
    }
}

impl<K> SharedSlots<K> {
    fn lock(&self) -> MutexGuard<'_, TakenSlots<K>> {
        self.taken.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<K: Eq + Hash> Drop for Slot<K> {
    fn drop(&mut self) {
        let mut taken = self.shared.lock();
        taken.all = taken.all.saturating_sub(1);
        if let Some(party) = &self.party
            && let Some(owned) = taken.by_party.get_mut(party)
        {
            *owned = owned.saturating_sub(1);
            if *owned == 0 {
                taken.by_party.remove(party);
            }
        }
        drop(taken);
        // A waiting party may have its share already, so that each must look.
        self.shared.freed.notify_all();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_party_leaves_room_for_others() {
        let slots = Slots::halved(5);
        let first: Vec<_> = (0..3).map(|_| slots.try_take(Some("alice")).unwrap()).collect();
        assert_eq!(slots.try_take(Some("alice")).unwrap_err(), NoSlot::ShareTaken(3));
        let second = [slots.try_take(Some("bob")).unwrap(), slots.try_take(Some("bob")).unwrap()];
        assert_eq!(slots.try_take(Some("carol")).unwrap_err(), NoSlot::Full(5));
        drop(first);
        assert!(slots.try_take(Some("alice")).is_ok());
        drop(second);
        assert!(slots.shared.lock().by_party.is_empty() && slots.shared.lock().all == 0);
    }

    #[test]
    fn the_only_party_may_have_all() {
        let slots = Slots::<&str>::halved(3);
        let all: Vec<_> = (0..3).map(|_| slots.try_take(None).unwrap()).collect();
        assert_eq!((slots.try_take(None).unwrap_err(), all.len()), (NoSlot::Full(3), 3));
        assert_eq!(Slots::halved(1).try_take(Some("alice")).map(drop), Ok(()));
    }

    #[test]
    fn a_party_waits_for_its_share_and_not_for_ever() {
        let slots = Slots::halved(2);
        let held = slots.try_take(Some("alice")).unwrap();
        let short = Duration::from_millis(20);
        assert_eq!(slots.take_within(Some(&"alice"), short).unwrap_err(), NoSlot::ShareTaken(1));
        assert!(slots.take_within(Some(&"bob"), Duration::ZERO).is_ok());
        let waiting = slots.clone();
        let waiting = std::thread::spawn(move || waiting.take_within(Some(&"alice"), Duration::from_secs(60)).is_ok());
        std::thread::sleep(short);
        drop(held);
        assert!(waiting.join().unwrap());
    }
}
