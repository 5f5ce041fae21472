//! Where a job stands.

use super::error::StoreError;
use serde::Serialize;
use strum::{EnumString, IntoStaticStr, VariantNames};
use utoipa::ToSchema;

/// Status of a job. Queued goes to running or cancelled; running goes to succeeded, failed or cancelled, and back to queued
/// where the process that runs it ends. Nothing leaves a final state.
#[derive(Clone, Copy, Debug, PartialEq, Eq, EnumString, IntoStaticStr, VariantNames, Serialize, ToSchema)]
#[serde(rename_all = "snake_case")]
#[strum(serialize_all = "snake_case")]
#[schema(as = Status)]
pub enum JobStatus {
    Queued,
    Running,
    Succeeded,
    Failed,
    Cancelled,
}

impl JobStatus {
    /// Returns true if nothing will change any more.
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
        self.into()
    }

    /// The status of this name.
    ///
    /// # Errors
    /// [`StoreError::Damaged`] where there is none.
    pub(super) fn parse(name: &str) -> Result<Self, StoreError> {
        name.parse().map_err(|_| StoreError::Damaged(format!("the status of a job is {name:?}")))
    }
}
