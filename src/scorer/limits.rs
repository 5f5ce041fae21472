//! What bounds the work and the answers of all requests.

/// The most bytes, by estimate, that one answer may take.
pub const MAX_ANSWER_BYTES: usize = 128 << 20;

/// The most text of audits and files that is under way at once, in KiB.
pub(super) const MOST_BATCH_KIB: u32 = 16 << 10;

/// How many texts of an audit or a file to have under way at once.
pub const IN_FLIGHT: usize = 512;
