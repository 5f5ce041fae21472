//! Statistics of sequences that ran before, in memory and, where it is configured, on disk. Both are bounded in bytes; the
//! device threads insert into both, admission looks up in memory.
//!
//! The disk is asked before admission, off the threads that must not block: what [`StatsCache::recall`] finds goes into the
//! passes of the request, and into memory.
//!
//! The key is what determines the numbers and nothing else: the model's identity (digest and numeric path) and the
//! ids. So changing a method's parameters costs no forward pass, and two configured models of one identity share
//! entries.

mod disk;
mod disk_store;
mod files;
mod holds;
mod record;
mod stats_cache;
#[cfg(test)]
mod tests;

pub use holds::StatisticsHold;
pub(super) use stats_cache::StatsCache;
