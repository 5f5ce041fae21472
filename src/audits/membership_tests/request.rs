//! A test as it is stored and run.

use super::commitment::Commitment;
use super::layout::TestLayout;
use crate::audits::request::AuditRequest;
use serde::{Deserialize, Serialize};

/// Request of a test, as plain data.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TestRequest {
    /// Scoring of the samples; its evidence names the primary method and the control.
    pub scoring: AuditRequest,
    /// Which sample is what.
    pub layout: TestLayout,
    /// Commitment of the client, if it made one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub commitment: Option<Commitment>,
}
