//! vLLM: `POST /v1/completions` with `prompt_logprobs`. It answers with log-probabilities, of the token and of the most probable
//! one, and with the moments of the distribution only where the plugin in `deploy/vllm` adds them.
//!
//! The prompt is token ids, so no text is sent and nothing depends on vLLM's tokenizer. vLLM says neither what weights it runs nor
//! how exact they are: its identity is what it says of itself, and how much its numbers depend on what else runs is measured.

use super::backend::Backend;
use super::description::{BackendInfo, ServedDescription, ServedRounding, WeightsAttested, check_version, differences};
use super::server::{ModelServer, Patience, excerpt, unavailable, unreached};
use super::vllm_answer::{Completion, ModelCard, ModelCards, ServerVersion, WITH_MOMENTS, stats};
use crate::config::ServedKind;
use lm::models::files::digest;
use lm::models::{BatchStats, ModelError};
use mia::TokenStats;
use serde::Serialize;

const COMPLETIONS: &str = "/v1/completions";
const MEDIA: &str = "application/json";
/// Maximum number of bytes of an answer per token: up to four entries, each with an id, names, and the token as text.
const BYTES_PER_TOKEN: usize = 1 << 10;
/// Maximum number of bytes beside that: per sequence a token that is generated, and for all the description of the server.
const BYTES_PER_SEQUENCE: usize = 4 << 10;
const REST: usize = 64 << 10;
/// Maximum number of bytes of the description of the models, or of the version.
const MAX_SAID: u64 = 1 << 20;
/// The ids of the probe, and how often it is in a batch.
const PROBE_IDS: usize = 64;
const PROBE_COPIES: usize = 8;

/// A vLLM that runs the model under a name.
pub struct VllmServer {
    pub server: ModelServer,
    pub name: String,
    /// Number of URLs of the model.
    pub urls: usize,
    /// True if the plugin adds the moments.
    pub moments: bool,
}

/// Identity that a vLLM reports.
struct VllmIdentity {
    /// All of it in one line, and what is asked for.
    text: String,
    /// SHA-256 of what it says.
    digest: String,
    version: String,
    /// Maximum number of ids of a sequence.
    context: usize,
}

#[derive(Serialize)]
struct CompletionRequest<'a> {
    model: &'a str,
    prompt: &'a [Vec<u32>],
    /// Fewer are refused.
    max_tokens: usize,
    temperature: f64,
    /// Number of the most probable tokens reported beside the one that came.
    prompt_logprobs: usize,
    return_token_ids: bool,
}

impl VllmServer {
    /// The statistics of prompts of at least one id each.
    fn complete(&self, prompt: &[Vec<u32>], patience: Patience) -> Result<BatchStats, ModelError> {
        let request = CompletionRequest {
            model: &self.name,
            prompt,
            max_tokens: 1,
            temperature: 0.0,
            prompt_logprobs: if self.moments { WITH_MOMENTS } else { 1 },
            return_token_ids: true,
        };
        let request = serde_json::to_vec(&request).map_err(|error| ModelError::Forward(error.to_string()))?;
        let tokens: usize = prompt.iter().map(Vec::len).sum();
        let most = tokens * BYTES_PER_TOKEN + prompt.len() * BYTES_PER_SEQUENCE + REST;
        let answer = self.server.post(COMPLETIONS, &request, MEDIA, most as u64, patience)?;
        let answer: Completion = self.server.parsed(&answer)?;
        stats(&answer, prompt, self.moments).map_err(|reason| unavailable(format!("its answer is wrong: {reason}")))
    }

    /// The log-probabilities of ids that every vocabulary has, by copy in one batch.
    fn probe(&self, context: usize, copies: usize, patience: Patience) -> Result<Vec<Vec<f64>>, ModelError> {
        let ids: Vec<u32> = (0..).take(context.min(PROBE_IDS)).collect();
        let column = |stats: &Vec<TokenStats>| stats.iter().map(|stats| stats.lp).collect();
        Ok(self.complete(&vec![ids; copies], patience)?.iter().map(column).collect())
    }

    /// Returns the identity that it reports.
    fn identify(&self) -> Result<VllmIdentity, ModelError> {
        let (version, card) = (self.version()?, self.card()?);
        let root = card.root.unwrap_or_default();
        let length = card.max_model_len.ok_or_else(|| unreached("it does not tell the length of its context"))?;
        // One token is always generated, and counts.
        let context = length.saturating_sub(1);
        let text = format!("vllm {version} {} {root} {length}", self.name);
        let digest = digest(text.as_bytes());
        // Entries kept without moments are not enough for a server that has them.
        let text = if self.moments { format!("{text} moments") } else { text };
        Ok(VllmIdentity { text, digest, version, context })
    }

    fn version(&self) -> Result<String, ModelError> {
        let version: ServerVersion = self.server.parsed(&self.server.get("/version", MAX_SAID)?)?;
        check_version(version.version)
    }

    fn card(&self) -> Result<ModelCard, ModelError> {
        let cards: ModelCards = self.server.parsed(&self.server.get("/v1/models", MAX_SAID)?)?;
        let names: Vec<&str> = cards.data.iter().map(|card| card.id.as_str()).collect();
        let names = excerpt(&names.join(", "));
        let missing = unreached(format!("it does not serve `{}`; it serves {names}", self.name));
        cards.data.into_iter().find(|card| card.id == self.name).ok_or(missing)
    }
}

impl Backend for VllmServer {
    fn describe(&self) -> Result<ServedDescription, ModelError> {
        let VllmIdentity { text: identity, digest, version, context } = self.identify()?;
        let probe = self.probe(context, 1, Patience::Description)?.concat();
        let copies = self.probe(context, PROBE_COPIES, Patience::Description)?;
        let measured = copies.iter().flat_map(|copy| differences(&probe, copy)).fold(0.0, f64::max);
        if !measured.is_finite() {
            return Err(unreached("a log-probability is finite alone and not in a batch, or the other way round"));
        }
        Ok(ServedDescription {
            digest,
            identity,
            probe,
            tokenizer_digest: None,
            dtype: "unstated".to_owned(),
            rounding: None,
            context: Some(context),
            vocab_size: None,
            backend: BackendInfo {
                kind: ServedKind::Vllm.to_string(),
                version,
                served_name: self.name.clone(),
                urls: self.urls,
                weights: WeightsAttested::NotAttested,
                rounding: Some(ServedRounding { measured }),
            },
        })
    }

    fn check(&self, opened: &ServedDescription) -> Result<(), ModelError> {
        let identity = self.identify()?;
        // It waits behind the batches that the server has.
        opened.check(&identity.text, &self.probe(identity.context, 1, Patience::Batch)?.concat())
    }

    fn names_its_model(&self) -> bool {
        false
    }

    fn token_stats(&self, sequences: &[Vec<u32>], _: &str) -> Result<BatchStats, ModelError> {
        // A sequence without an id that follows another has no statistics, and an empty prompt is refused.
        let is_scored = |ids: &&Vec<u32>| ids.len() > 1;
        let prompts: Vec<Vec<u32>> = sequences.iter().filter(is_scored).cloned().collect();
        let mut stats =
            if prompts.is_empty() { Vec::new() } else { self.complete(&prompts, Patience::Batch)? }.into_iter();
        Ok(sequences.iter().map(|ids| if is_scored(&ids) { stats.next() } else { None }.unwrap_or_default()).collect())
    }
}
