//! Memory budget of the requests in flight: for their bodies, for uploads, and for answers until they are sent.
//!
//! It counts what a request is estimated to hold, and not what the allocator gave it. Each client may have half of it.

use super::principal::Principal;
use crate::telemetry::names;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Part of the budget that one client may have: one in this many.
const CLIENTS: u64 = 2;
/// Bodies of full length that the default has room for, beside [`ANSWERS`].
const BODIES: u64 = 8;
/// Memory for answers in the default, in bytes.
const ANSWERS: u64 = 256 << 20;

/// Memory budget of the requests in flight; cheap to clone, and clones are the same one.
#[derive(Clone, Debug)]
pub struct MemoryBudget {
    total: u64,
    /// Maximum for one client, in bytes.
    share: u64,
    usage: Arc<Mutex<MemoryUsage>>,
}

#[derive(Debug, Default)]
struct MemoryUsage {
    bytes: u64,
    /// Bytes of each client that has some.
    clients: HashMap<Arc<str>, u64>,
}

/// Memory that one request holds; given back when dropped.
#[derive(Debug)]
pub struct RequestMemory {
    budget: MemoryBudget,
    client: Arc<str>,
    bytes: Mutex<u64>,
}

/// Why a request gets no more memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum MemoryRefusal {
    #[error("the requests in flight hold what `server.request_memory` allows")]
    Full,
    #[error("the requests of this client in flight hold its share of `server.request_memory`, {0} bytes")]
    Share(u64),
    #[error(
        "the request and its answer would take some {bytes} bytes of memory; of `server.request_memory` a client may have {share}"
    )]
    TooLarge { bytes: u64, share: u64 },
}

impl MemoryBudget {
    /// Creates a budget of `bytes`, by default for eight bodies of `body_limit` bytes and 256 MiB of answers; never less than one body.
    #[must_use]
    pub fn new(bytes: Option<u64>, body_limit: u64) -> Self {
        let default = body_limit.saturating_mul(BODIES).saturating_add(ANSWERS);
        let total = bytes.unwrap_or(default).max(body_limit);
        Self { total, share: (total / CLIENTS).max(body_limit), usage: Arc::default() }
    }

    /// Begins a request of a client, which holds nothing yet. A client without a name is the only one, and may have all.
    #[must_use]
    pub fn begin(&self, client: &Principal) -> RequestMemory {
        let share = if client.has_name() { self.share } else { self.total };
        let budget = Self { share, ..self.clone() };
        RequestMemory { budget, client: Arc::clone(client.shared_name()), bytes: Mutex::default() }
    }

    fn usage(&self) -> MutexGuard<'_, MemoryUsage> {
        self.usage.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl RequestMemory {
    /// Lets the request hold `more` bytes more.
    ///
    /// # Errors
    /// [`MemoryRefusal`]; the request holds what it held then.
    pub fn grow_by(&self, more: u64) -> Result<(), MemoryRefusal> {
        let mut held = self.held();
        let bytes = held.saturating_add(more);
        self.set(&mut held, bytes)
    }

    /// Lets the request hold at least `bytes` bytes.
    ///
    /// # Errors
    /// [`MemoryRefusal`]; the request holds what it held then.
    pub fn grow_to(&self, bytes: u64) -> Result<(), MemoryRefusal> {
        let mut held = self.held();
        if bytes > *held { self.set(&mut held, bytes) } else { Ok(()) }
    }

    fn set(&self, held: &mut u64, bytes: u64) -> Result<(), MemoryRefusal> {
        let MemoryBudget { total, share, .. } = self.budget;
        if bytes > share {
            return Err(MemoryRefusal::TooLarge { bytes, share });
        }
        let more = bytes - *held;
        let mut usage = self.budget.usage();
        if usage.bytes + more > total {
            return Err(MemoryRefusal::Full);
        }
        let of_client = usage.clients.get(&self.client).copied().unwrap_or(0) + more;
        if of_client > share {
            return Err(MemoryRefusal::Share(share));
        }
        usage.bytes += more;
        usage.clients.insert(Arc::clone(&self.client), of_client);
        *held = bytes;
        metrics::gauge!(names::HTTP_REQUEST_MEMORY).increment(more as f64);
        Ok(())
    }

    fn held(&self) -> MutexGuard<'_, u64> {
        self.bytes.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for RequestMemory {
    fn drop(&mut self) {
        let held = *self.held();
        if held == 0 {
            return;
        }
        let mut usage = self.budget.usage();
        usage.bytes -= held;
        if let Some(bytes) = usage.clients.get_mut(&self.client) {
            *bytes -= held;
            if *bytes == 0 {
                usage.clients.remove(&self.client);
            }
        }
        metrics::gauge!(names::HTTP_REQUEST_MEMORY).decrement(held as f64);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn client(name: &str) -> Principal {
        Principal::new(name, false)
    }

    #[test]
    fn a_client_has_half_and_gives_it_back() {
        let budget = MemoryBudget::new(Some(100), 10);
        let [first, second] = [(); 2].map(|()| budget.begin(&client("alice")));
        assert_eq!((first.grow_to(40), first.grow_to(30), first.grow_by(10)), (Ok(()), Ok(()), Ok(())));
        assert_eq!(
            (second.grow_by(1), second.grow_by(51)),
            (Err(MemoryRefusal::Share(50)), { Err(MemoryRefusal::TooLarge { bytes: 51, share: 50 }) })
        );
        let other = budget.begin(&client("bob"));
        assert_eq!(other.grow_to(50), Ok(()));
        assert_eq!(budget.begin(&client("carol")).grow_to(1), Err(MemoryRefusal::Full));
        drop(first);
        assert_eq!(
            (second.grow_to(50), second.grow_by(1)),
            (Ok(()), { Err(MemoryRefusal::TooLarge { bytes: 51, share: 50 }) })
        );
        drop((second, other));
        let usage = budget.usage();
        assert_eq!((usage.bytes, usage.clients.len()), (0, 0));
    }

    #[test]
    fn the_only_client_has_all_and_one_body_always_has_room() {
        let budget = MemoryBudget::new(Some(100), 10);
        assert_eq!(budget.begin(&Principal::default()).grow_to(100), Ok(()));
        assert_eq!(MemoryBudget::new(Some(1), 64).begin(&client("alice")).grow_to(64), Ok(()));
        let default = MemoryBudget::new(None, 64);
        assert_eq!(default.begin(&client("alice")).grow_to(128 << 20), Ok(()), "the longest answer");
    }
}
