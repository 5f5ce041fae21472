//! Work that a device runs while its thread goes on.

use std::sync::Arc;
use std::time::Instant;

use crate::engine::queue::QueuedPass;
use crate::engine::request::Answer;
use lm::models::Pending;

/// A batch, or a part of one, that the device works on.
pub(super) struct InFlightBatch {
    /// The id of its model.
    pub(super) model: Arc<str>,
    pub(super) passes: Vec<QueuedPass>,
    pub(super) answers: Pending<Vec<Answer>>,
    /// When the device came to it.
    pub(super) since: Instant,
}
