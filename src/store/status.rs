//! Where a job stands.

use super::error::StoreError;
use serde::Serialize;
use utoipa::ToSchema;

/// Where a job stands. Queued goes to running or cancelled; running goes to succeeded, failed or cancelled, and back to queued
/// where the process that runs it ends. Nothing leaves a final state.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "snake_case")]
#[schema(as = Status)]
pub enum JobStatus {
    Queued,
    Running,
    Succeeded,
    Failed,
    Cancelled,
}

impl JobStatus {
    /// All there are.
    pub const ALL: [Self; 5] = [Self::Queued, Self::Running, Self::Succeeded, Self::Failed, Self::Cancelled];

    /// Whether nothing will change any more.
    #[must_use]
    pub fn is_final(self) -> bool {
        match self {
            Self::Queued | Self::Running => false,
            Self::Succeeded | Self::Failed | Self::Cancelled => true,
        }
    }

    /// The name that clients, metrics and the store see.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Queued => "queued",
            Self::Running => "running",
            Self::Succeeded => "succeeded",
            Self::Failed => "failed",
            Self::Cancelled => "cancelled",
        }
    }

    /// The status of this name.
    ///
    /// # Errors
    /// [`StoreError::Damaged`] where there is none.
    pub(super) fn parse(name: &str) -> Result<Self, StoreError> {
        let known = Self::ALL.into_iter().find(|status| status.name() == name);
        known.ok_or_else(|| StoreError::Damaged(format!("the status of a job is {name:?}")))
    }
}
