//! Limits on the work and the answers of all requests.

/// Maximum number of bytes of one answer, by estimate.
pub const MAX_ANSWER_BYTES: usize = 128 << 20;

/// Maximum amount of text of audits and files under way at once, in KiB.
pub(super) const MOST_BATCH_KIB: u32 = 16 << 10;

/// Number of texts of an audit or a file to have under way at once.
pub const IN_FLIGHT: usize = 512;
