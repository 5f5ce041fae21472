//! Servers that report log-probabilities of prompts and do not say what weights they run: how much their numbers depend on what else
//! runs is measured when the model is opened, and what they run is checked by the numbers of some ids.

use super::description::{
    BackendInfo, ServedDescription, ServedRounding, WeightsAttested, check_identity, differences,
};
use super::dialect::EchoDialect;
use super::model::{Backend, OpenedModel};
use super::server::{ModelServer, Patience, unreached};
use crate::config::ServedKind;
use lm::models::{BatchStats, Continuation, GreedyPrompt, ModelError};
use lm::tokenizer::Tokenizer;
use mia::TokenStats;

/// The number of ids of the probe, and how often they are in a batch.
const PROBE_IDS: usize = 64;
const PROBE_COPIES: usize = 8;
/// The number of most probable tokens that the probe asks for: the more there are, the more surely a sum of their probabilities
/// above 1 shows that these are none. OpenAI's limit.
pub const PROBE_BEST: usize = 5;

/// Identity that a server reports.
pub struct ServerIdentity {
    /// All that the server says of what its numbers depend on.
    pub text: String,
    /// SHA-256 over what it says of the model.
    pub digest: String,
    pub version: String,
    /// Maximum number of ids of a sequence; `None` if nobody says so.
    pub context: Option<usize>,
}

/// A question about prompts.
#[derive(Clone, Copy)]
pub struct PromptQuestion<'a> {
    /// The prompts, of at least one id each.
    pub prompts: &'a [Vec<u32>],
    pub tokenizer: &'a Tokenizer,
    pub dialect: Option<EchoDialect>,
    /// Number of most probable tokens to report at each position, where the kind has a choice.
    pub best: usize,
    pub patience: Patience,
}

/// What differs between the kinds of these servers.
pub trait PromptServer: Send + Sync {
    const KIND: ServedKind;

    fn server(&self) -> &ModelServer;

    /// Returns what it says of itself.
    fn identify(&self) -> Result<ServerIdentity, ModelError>;

    /// Finds out how it is asked, where servers of the kind differ in that.
    fn find_dialect(&self, _: &Tokenizer, _: Option<usize>) -> Result<Option<EchoDialect>, ModelError> {
        Ok(None)
    }

    /// The ids of the probe, at most `most` of them.
    fn probe_ids(&self, most: usize, _: &Tokenizer, _: Option<EchoDialect>) -> Result<Vec<u32>, ModelError> {
        // Every vocabulary has these.
        Ok((0..).take(most).collect())
    }

    /// The statistics of prompts.
    fn prompt_stats(&self, question: PromptQuestion) -> Result<BatchStats, ModelError>;

    /// As [`Backend::continue_greedily`].
    fn continue_greedily(&self, _: &[GreedyPrompt]) -> Result<Vec<Continuation>, ModelError> {
        Err(ModelError::continues_no_texts())
    }
}

/// A server of one of these kinds, as the engine asks it.
pub struct Probed<S>(pub S);

impl<S: PromptServer> Probed<S> {
    /// The log-probabilities of the probe, by copy in one batch.
    fn probe(
        &self,
        context: Option<usize>,
        tokenizer: &Tokenizer,
        dialect: Option<EchoDialect>,
        copies: usize,
        patience: Patience,
    ) -> Result<Vec<Vec<f64>>, ModelError> {
        let most = context.map_or(PROBE_IDS, |context| context.min(PROBE_IDS));
        let prompts = vec![self.0.probe_ids(most, tokenizer, dialect)?; copies];
        let question = PromptQuestion { prompts: &prompts, tokenizer, dialect, best: PROBE_BEST, patience };
        let column = |stats: &Vec<TokenStats>| stats.iter().map(|stats| stats.lp).collect();
        Ok(self.0.prompt_stats(question)?.iter().map(column).collect())
    }
}

impl<S: PromptServer> Backend for Probed<S> {
    fn describe(&self, tokenizer: &Tokenizer) -> Result<ServedDescription, ModelError> {
        let ServerIdentity { text: identity, digest, version, context } = self.0.identify()?;
        let dialect = self.0.find_dialect(tokenizer, context)?;
        let probe = self.probe(context, tokenizer, dialect, 1, Patience::Description)?.concat();
        let copies = self.probe(context, tokenizer, dialect, PROBE_COPIES, Patience::Description)?;
        let measured = copies.iter().flat_map(|copy| differences(&probe, copy)).fold(0.0, f64::max);
        if !measured.is_finite() {
            return Err(unreached("a log-probability is finite alone and not in a batch, or the other way round"));
        }
        let server = self.0.server();
        Ok(ServedDescription {
            digest,
            identity: match dialect {
                Some(dialect) => format!("{identity} {dialect}"),
                None => identity,
            },
            probe,
            tokenizer_digest: None,
            dtype: "unstated".to_owned(),
            rounding: None,
            dialect,
            context,
            vocab_size: None,
            backend: BackendInfo {
                kind: S::KIND.to_string(),
                version,
                served_name: server.name.clone(),
                urls: server.urls,
                weights: WeightsAttested::NotAttested,
                rounding: Some(ServedRounding { measured }),
            },
        })
    }

    fn check(&self, opened: &OpenedModel) -> Result<(), ModelError> {
        let description = &opened.description;
        let ServerIdentity { text, context, .. } = self.0.identify()?;
        let identity = match description.dialect {
            Some(dialect) => format!("{text} {dialect}"),
            None => text,
        };
        // Another model may take no probe of this one.
        check_identity(&description.identity, &identity)?;
        // It waits behind the batches that the server has.
        let probe = self.probe(context, &opened.tokenizer, description.dialect, 1, Patience::Batch)?;
        description.check(&identity, &probe.concat())
    }

    fn names_its_model(&self) -> bool {
        false
    }

    fn token_stats(&self, sequences: &[Vec<u32>], opened: &OpenedModel) -> Result<BatchStats, ModelError> {
        // A sequence without an id that follows another has no statistics, and an empty prompt is refused.
        let is_scored = |ids: &&Vec<u32>| ids.len() > 1;
        let prompts: Vec<Vec<u32>> = sequences.iter().filter(is_scored).cloned().collect();
        let mut stats = match prompts.is_empty() {
            true => Vec::new(),
            false => self.0.prompt_stats(PromptQuestion {
                prompts: &prompts,
                tokenizer: &opened.tokenizer,
                dialect: opened.description.dialect,
                best: 1,
                patience: Patience::Batch,
            })?,
        }
        .into_iter();
        Ok(sequences.iter().map(|ids| if is_scored(&ids) { stats.next() } else { None }.unwrap_or_default()).collect())
    }

    fn continue_greedily(&self, prompts: &[GreedyPrompt]) -> Result<Vec<Continuation>, ModelError> {
        self.0.continue_greedily(prompts)
    }
}
