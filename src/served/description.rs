//! What a server says of the model that it runs.

use super::server::unreached;
use crate::models::ModelError;
use crate::models::files::digest;
use crate::models::precision::Rounding;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// What runs a model that is served elsewhere: what answers, audits and reports say of it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct BackendInfo {
    /// `pdr-audit` or `vllm`.
    #[schema(examples("pdr-audit"))]
    pub kind: String,
    /// Its version, as it says.
    #[schema(examples("0.1.0"))]
    pub version: String,
    /// The name that it serves the model under.
    pub served_name: String,
    /// How many servers the settings name.
    pub urls: usize,
    /// Whether the digest of the model is that of its weights.
    pub weights: WeightsAttested,
    /// How much its numbers depend on what else it runs, where that was measured.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rounding: Option<ServedRounding>,
}

/// How far the numbers of a server are apart that depend on the batch.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct ServedRounding {
    /// The largest difference of a log-probability between a text alone and in a batch of 8, when the model was opened.
    #[schema(examples(2.4e-6))]
    pub measured: f64,
}

/// Who vouches for the weights.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum WeightsAttested {
    /// The server computed the digest of the weights that it runs, as this program does.
    Attested,
    /// Nobody: the server only names the model.
    NotAttested,
}

/// A model, as its server describes it.
#[derive(Clone, Debug, PartialEq)]
pub struct ServedDescription {
    /// All that its numbers depend on, as far as the server says it.
    pub identity: String,
    /// The log-probabilities of some ids, where the server does not say what weights it runs.
    pub probe: Vec<f64>,
    /// SHA-256 over configuration and weights or, where the server does not have it, over what it says instead.
    pub digest: String,
    /// SHA-256 of the server's tokenizer, where it says so.
    pub tokenizer_digest: Option<String>,
    /// The type it computes in.
    pub dtype: String,
    /// How far its numbers may be from those in f32, where the server says so.
    pub rounding: Option<Rounding>,
    /// The most ids of a sequence; none where there is no limit.
    pub context: Option<usize>,
    /// Every id below is one of its tokens; none where the server does not say so.
    pub vocab_size: Option<usize>,
    pub backend: BackendInfo,
}

/// Log-probabilities of another model differ by more than this, on average; those of the same one in bf16 by a tenth of it.
const MOST_APART: f64 = 0.1;

impl ServedDescription {
    /// All that the numbers depend on, with what the probe shows of the weights, for caches that outlive the server.
    pub fn cache_identity(&self) -> String {
        if self.probe.is_empty() {
            return self.identity.clone();
        }
        // In tenths, since the numbers may depend a little on what else runs. Where one of them is rounded the other way after a restart,
        // the cache begins anew.
        let tenths: Vec<String> = self.probe.iter().map(|lp| format!("{lp:.1}")).collect();
        format!("{} probe {}", self.identity, digest(tenths.join(" ").as_bytes()))
    }

    /// Checks that a server with this identity and probe runs this model.
    ///
    /// # Errors
    /// [`ModelError::Unavailable`] where it runs another one.
    pub fn check(&self, identity: &str, probe: &[f64]) -> Result<(), ModelError> {
        if identity != self.identity {
            return Err(unreached(format!(
                "it runs another model than was opened: `{identity}`, not `{}`",
                self.identity
            )));
        }
        let mean = differences(probe, &self.probe).sum::<f64>() / probe.len().max(1) as f64;
        if probe.len() == self.probe.len() && mean <= MOST_APART {
            return Ok(());
        }
        Err(unreached("it runs other weights than were opened: the same ids have other log-probabilities"))
    }
}

/// How far log-probabilities are apart, one by one; two of minus infinity are equal.
pub fn differences(ones: &[f64], others: &[f64]) -> impl Iterator<Item = f64> {
    ones.iter().zip(others).map(|(one, other)| if one == other { 0.0 } else { (one - other).abs() })
}
