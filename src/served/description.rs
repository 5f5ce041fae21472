//! Description that a server gives of the model that it runs.

use super::dialect::{EchoDialect, LeadingToken};
use super::server::{excerpt, unreached};
#[cfg(test)]
use crate::config::ServedKind;
use lm::models::ModelError;
use lm::models::files::digest;
use lm::models::precision::Rounding;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// The server of a model that is served elsewhere, as answers, audits and reports describe it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct BackendInfo {
    /// `pdr-audit`, `vllm`, `sglang` or `openai`.
    #[schema(examples("pdr-audit"))]
    pub kind: String,
    /// Its version, as it says.
    #[schema(examples("0.1.0"))]
    pub version: String,
    /// The name that it serves the model under.
    pub served_name: String,
    /// Number of servers in the settings.
    pub urls: usize,
    /// Tells whether the digest of the model is that of its weights.
    pub weights: WeightsAttested,
    /// Dependence of its numbers on what else it runs; absent if it was not measured.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rounding: Option<ServedRounding>,
}

/// Difference between numbers of a server that depend on the batch.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct ServedRounding {
    /// The largest difference of a log-probability between a text alone and in a batch of 8, when the model was opened.
    #[schema(examples(2.4e-6))]
    pub measured: f64,
}

/// Party that vouches for the weights.
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
    /// Possible deviation of its numbers from those in f32, if the server reports it.
    pub rounding: Option<Rounding>,
    /// Form of the requests to a server of the kind `openai`; `None` for the other kinds, which have one form each.
    pub dialect: Option<EchoDialect>,
    /// Maximum number of ids of a sequence; `None` if there is no limit.
    pub context: Option<usize>,
    /// Every id below is one of its tokens; `None` if the server does not say so.
    pub vocab_size: Option<usize>,
    pub backend: BackendInfo,
}

/// Log-probabilities of another model differ by more than this, on average; those of the same one in bf16 by a tenth of it.
const MOST_APART: f64 = 0.1;
/// The numbers of a server that differ by no more than this do not depend on what else runs.
const STEADY: f64 = 1e-4;
/// Of how many numbers the mean is taken where they do.
const GROUP: usize = 16;

/// Maximum number of bytes of a version.
const MAX_VERSION: usize = 100;

impl ServedDescription {
    /// All that the numbers depend on, with what the probe shows of the weights, for caches that outlive the server.
    pub fn cache_identity(&self) -> String {
        if self.probe.is_empty() {
            return self.identity.clone();
        }
        // In tenths: of each number where they do not depend on what else runs, and else of means, which hardly do.
        let measured = self.backend.rounding.map_or(0.0, |rounding| rounding.measured);
        let group = if measured <= STEADY { 1 } else { GROUP };
        let tenths: Vec<String> =
            self.probe.chunks(group).map(|lps| format!("{:.1}", mean(lps.iter().copied()))).collect();
        format!("{} probe {}", self.identity, digest(tenths.join(" ").as_bytes()))
    }

    /// As [`Self::cache_identity`], with the numbers of the probe as they are.
    pub fn exact_identity(&self) -> String {
        let bits: Vec<u8> = self.probe.iter().flat_map(|lp| lp.to_le_bytes()).collect();
        format!("{} exact {}", self.cache_identity(), digest(&bits))
    }

    /// Returns true if the server adds a token before texts that it leaves out of its answers.
    pub fn leaves_out_leading_token(&self) -> bool {
        self.dialect.is_some_and(|dialect| dialect.leading == LeadingToken::LeftOut)
    }

    pub fn is_same(&self, later: &Self) -> bool {
        self.check(&later.identity, &later.probe).is_ok()
    }

    /// Checks that a server with this identity and probe runs this model.
    pub fn check(&self, identity: &str, probe: &[f64]) -> Result<(), ModelError> {
        check_identity(&self.identity, identity)?;
        if probe.len() == self.probe.len() && mean(differences(probe, &self.probe)) <= MOST_APART {
            return Ok(());
        }
        Err(unreached("it runs other weights than were opened: the same ids have other log-probabilities"))
    }
}

/// Checks that a server has the identity of the model that was opened.
pub fn check_identity(opened: &str, identity: &str) -> Result<(), ModelError> {
    if identity == opened {
        return Ok(());
    }
    Err(unreached(format!("it runs another model than was opened: `{}`, not `{}`", excerpt(identity), excerpt(opened))))
}

/// Checks that what a server says of its version can stand in every answer.
pub fn check_version(version: String) -> Result<String, ModelError> {
    match version.len() {
        0..=MAX_VERSION => Ok(version),
        bytes => Err(unreached(format!("its version has {bytes} bytes, and {MAX_VERSION} are the most that is taken"))),
    }
}

fn mean(numbers: impl ExactSizeIterator<Item = f64>) -> f64 {
    let count = numbers.len().max(1) as f64;
    numbers.sum::<f64>() / count
}

/// Returns the differences between log-probabilities, one by one; two of minus infinity are equal.
pub fn differences(ones: &[f64], others: &[f64]) -> impl ExactSizeIterator<Item = f64> {
    ones.iter().zip(others).map(|(one, other)| if one == other { 0.0 } else { (one - other).abs() })
}

#[cfg(test)]
impl ServedDescription {
    /// That of a vLLM whose numbers differ by `measured` between batches.
    pub fn of_vllm(probe: Vec<f64>, measured: f64) -> Self {
        Self {
            identity: "vllm 1 m".to_owned(),
            probe,
            digest: String::new(),
            tokenizer_digest: None,
            dtype: String::new(),
            rounding: None,
            dialect: None,
            context: None,
            vocab_size: None,
            backend: BackendInfo {
                kind: ServedKind::Vllm.to_string(),
                version: "1".to_owned(),
                served_name: "m".to_owned(),
                urls: 1,
                weights: WeightsAttested::NotAttested,
                rounding: Some(ServedRounding { measured }),
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Numbers from -2 to -9; `noise` alternates in sign.
    fn probe(noise: f64) -> Vec<f64> {
        (0..63).map(|n| -2.02 - f64::from(n * n % 64) / 10.0 + if n % 2 == 0 { noise } else { -noise }).collect()
    }

    #[test]
    fn the_identity_for_caches_does_not_depend_on_the_last_digits() {
        for (noise, measured) in [(1e-6, 0.0), (0.03, 0.06)] {
            let (one, other) =
                (ServedDescription::of_vllm(probe(0.0), measured), ServedDescription::of_vllm(probe(noise), measured));
            assert_eq!(one.cache_identity(), other.cache_identity(), "{noise}");
            one.check("vllm 1 m", &other.probe).unwrap();
        }
    }

    #[test]
    fn other_weights_are_another_model() {
        let opened = ServedDescription::of_vllm(probe(0.0), 0.0);
        let other: Vec<f64> = probe(0.0).iter().map(|lp| lp * 1.1).collect();
        for measured in [0.0, 0.06] {
            assert_ne!(
                ServedDescription::of_vllm(other.clone(), measured).cache_identity(),
                ServedDescription::of_vllm(probe(0.0), measured).cache_identity()
            );
        }
        opened.check("vllm 1 m", &other).unwrap_err();
        opened.check("vllm 2 m", &probe(0.0)).unwrap_err();
        let one_impossible = [probe(0.0), vec![f64::NEG_INFINITY]].concat();
        opened.check("vllm 1 m", &one_impossible).unwrap_err();
        let impossible = ServedDescription::of_vllm(one_impossible, 0.0);
        assert_ne!(impossible.cache_identity(), opened.cache_identity());
        impossible.check("vllm 1 m", &impossible.probe).unwrap();
    }

    #[test]
    fn what_cannot_be_a_version_is_refused() {
        assert_eq!(check_version("0.32.0".to_owned()).unwrap(), "0.32.0");
        check_version("1".repeat(1_000_000)).unwrap_err();
    }
}
