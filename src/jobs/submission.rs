//! A job as a client submits it.

use crate::datasets::SubmittedSamples;
use std::time::Duration;

/// A job as it is submitted.
#[derive(Clone, Debug)]
pub struct Submission<R> {
    pub request: R,
    /// Name of the job in lists.
    pub name: Option<String>,
    pub samples: SubmittedSamples,
    /// Name of the submission, under which the client may send it again.
    pub idempotency_key: Option<String>,
    /// Time after its submission in which it must end.
    pub timeout: Option<Duration>,
}
