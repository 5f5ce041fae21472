//! Access to the service: keys, with their scopes and limits.
//!
//! A key is a secret that its holder sends with every request; only the SHA-256 of it is kept, in a file that `pdr-audit key` writes
//! and the service reads. A key has the name of a client: jobs and datasets belong to the name, so that a client may have two keys
//! while it changes from one to the other.

mod key_file;
mod keyring;
mod memory;
mod principal;
mod quota;
mod record;
mod record_chain;
mod record_file;
mod secret;

pub use key_file::{ClientLimits, KeyEntry, KeyFile, KeyFileError, KeyScope};
pub use keyring::{Client, Keyring, RefusedKey};
pub use memory::{MemoryBudget, MemoryRefusal, RequestMemory};
pub use principal::Principal;
pub use quota::{Quota, QuotaExceeded, QuotaWindow, RemainingTokens, RequestPermit, StoredUsage, TokenReservation};
pub use record::{AccessEntry, AccessRecord, RecordedEvent, RecordedWork};
pub use record_chain::{BrokenChain, ChainCheck};
pub use secret::{Secret, SecretDigest};
