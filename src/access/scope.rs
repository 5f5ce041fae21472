//! Scopes of keys.

use serde::{Deserialize, Serialize};
use strum::{Display, EnumString, VariantNames};

/// A scope of a key: the requests that it allows.
#[derive(
    Clone, Copy, Debug, Display, EnumString, VariantNames, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize,
)]
#[serde(rename_all = "snake_case")]
#[strum(serialize_all = "snake_case")]
pub enum KeyScope {
    /// To score texts while the client waits.
    Score,
    /// To submit jobs and datasets, and to see one's own.
    Audit,
    /// To load and unload models, to tune adapters, and to see what all clients own.
    Admin,
}
