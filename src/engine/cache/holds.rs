//! Which statistics unfinished work still needs: all that it has used since it began.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

#[derive(Debug, Default)]
pub(super) struct Holds {
    /// Since when each piece of work needs statistics; none for all that there were when it began, too.
    beginnings: Mutex<BTreeMap<u64, Option<Instant>>>,
}

/// Keeps the statistics on disk that some work uses from being dropped to make room, until it is dropped itself.
#[derive(Debug)]
#[must_use = "statistics are kept only as long as this is"]
pub struct StatisticsHold {
    holds: Arc<Holds>,
    number: u64,
}

impl Holds {
    /// Begins a piece of work; `everything` for one that also needs what is there already.
    pub(super) fn begin(self: &Arc<Self>, everything: bool) -> StatisticsHold {
        let mut beginnings = self.lock();
        let number = beginnings.last_key_value().map_or(0, |(last, _)| last + 1);
        beginnings.insert(number, (!everything).then(Instant::now));
        StatisticsHold { holds: Arc::clone(self), number }
    }

    /// Returns true if unfinished work may need what was used at this time.
    pub(super) fn need(&self, used: Instant) -> bool {
        self.lock().values().any(|begun| begun.is_none_or(|begun| begun <= used))
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<u64, Option<Instant>>> {
        self.beginnings.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for StatisticsHold {
    fn drop(&mut self) {
        self.holds.lock().remove(&self.number);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn work_needs_what_was_used_since_it_began() {
        let (holds, before) = (Arc::<Holds>::default(), Instant::now());
        assert!(!holds.need(before));
        std::thread::sleep(std::time::Duration::from_millis(2));
        let first = holds.begin(false);
        assert!(!holds.need(before) && holds.need(Instant::now()));
        let resumed = holds.begin(true);
        assert!(holds.need(before));
        drop(first);
        let third = holds.begin(false);
        assert!(holds.need(before), "each is its own");
        drop(resumed);
        assert!(!holds.need(before) && holds.need(Instant::now()));
        drop(third);
        assert!(!holds.need(Instant::now()));
    }
}
