//! One text on its way to the models: checked, tokenized, cut if the request allows it.

use super::bound::{Bound, too_large, too_long};
use super::error::{ScorerError, TextError};
use super::passes::Sequence;
use crate::engine::Request;
use lm::tokenizer::Encoded;
use mia::methods::{AuxiliaryPass, AuxiliaryPassError, AuxiliaryStats, Split};
use mia::texts::cluster_digest;
use std::sync::Arc;

/// A text to score.
#[derive(Clone, Debug, Default)]
pub struct Input {
    /// Given back with the result.
    pub id: Option<String>,
    pub text: String,
    /// Texts that differ little from it, for the method `neighbor`.
    pub neighbors: Option<Vec<String>>,
}

/// The neighbours that a masked model generated for a text, or why there are none.
pub type GeneratedNeighbors = (AuxiliaryPass, Result<Vec<String>, AuxiliaryPassError>);

/// The sequences of an auxiliary pass, or why there are none.
type Sequences = Result<Vec<Sequence>, AuxiliaryPassError>;

/// A text with its ids and passes, or with the reason why it cannot be scored.
pub struct PreparedText {
    pub input: Input,
    pub truncated: bool,
    /// None where the text was not tokenized.
    pub encoded: Option<Arc<Encoded>>,
    /// The ids that are scored.
    pub ids: Arc<[u32]>,
    pub error: Option<TextError>,
    /// The text itself; without passes if it cannot be run.
    pub sequence: Sequence,
    /// The auxiliary passes of its methods.
    auxiliary: Vec<(AuxiliaryPass, Sequences)>,
}

impl PreparedText {
    /// Tokenizes the text and plans its own passes.
    pub fn new(input: Input, bound: &Bound) -> Self {
        match bound.encode(&input.text) {
            Ok(encoded) => Self::fit(input, encoded, bound),
            Err(error) => Self::failed(input, error),
        }
    }

    /// Plans the auxiliary passes of the methods, unless the text has failed. `generated` are the neighbours that masked
    /// models generated for it.
    pub fn with_auxiliary_passes(mut self, generated: &[GeneratedNeighbors], bound: &Bound) -> Self {
        let Some(encoded) = self.encoded.as_ref().filter(|_| self.error.is_none()) else { return self };
        let specials = encoded.specials_before;
        let truncated = self.truncated;
        let planner = PassPlanner { input: &self.input, ids: &self.ids, specials, truncated, generated, bound };
        self.auxiliary = bound.passes.iter().map(|pass| (pass.clone(), planner.sequences(pass))).collect();
        self
    }

    /// Adds all its passes to the requests of their models.
    pub fn add_to(&mut self, requests: &mut [Request]) {
        let auxiliary = self.auxiliary.iter_mut().filter_map(|(_, sequences)| sequences.as_mut().ok()).flatten();
        [&mut self.sequence].into_iter().chain(auxiliary).for_each(|sequence| sequence.add_to(requests));
    }

    /// The statistics of the auxiliary passes, once the requests are answered.
    pub fn auxiliary_stats(&self) -> Result<Vec<(AuxiliaryPass, AuxiliaryStats)>, ScorerError> {
        let stats = |(pass, sequences): &(AuxiliaryPass, Sequences)| {
            let stats = match sequences {
                Ok(sequences) => Ok(sequences.iter().map(Sequence::stats).collect::<Result<_, _>>()?),
                Err(error) => Err(error.clone()),
            };
            Ok((pass.clone(), stats))
        };
        self.auxiliary.iter().map(stats).collect()
    }

    fn fit(input: Input, encoded: Arc<Encoded>, bound: &Bound) -> Self {
        let ids = match bound.fit(0, &encoded.ids, true) {
            Ok(ids) => ids,
            Err(detail) => return Self::failed(input, TextError::whole("too_long", format!("the text has {detail}"))),
        };
        let truncated = ids.len() < encoded.ids.len();
        if ids.len() < 2 {
            let tokens = encoded.ids.len();
            let detail = format!("the text has {tokens} token(s); the first is never scored, so at least 2 are needed");
            let error = Some(TextError::whole("too_short", detail));
            return Self { truncated, encoded: Some(encoded), ids, error, ..Self::bare(input) };
        }
        let sequence = Sequence::new(0, &ids, bound.models[0].longest);
        Self { truncated, encoded: Some(encoded), ids, sequence, ..Self::bare(input) }
    }

    fn failed(input: Input, error: TextError) -> Self {
        Self { error: Some(error), ..Self::bare(input) }
    }

    fn bare(input: Input) -> Self {
        Self {
            input,
            truncated: false,
            encoded: None,
            ids: Arc::new([]),
            error: None,
            sequence: Sequence::default(),
            auxiliary: Vec::new(),
        }
    }
}

/// Inputs of the auxiliary passes.
struct PassPlanner<'a> {
    input: &'a Input,
    /// The ids that are scored.
    ids: &'a Arc<[u32]>,
    /// Number of them before the text.
    specials: usize,
    /// True if the text was cut, so that what is made of it may be cut as well.
    truncated: bool,
    generated: &'a [GeneratedNeighbors],
    bound: &'a Bound,
}

impl PassPlanner<'_> {
    fn sequences(&self, pass: &AuxiliaryPass) -> Sequences {
        match pass {
            AuxiliaryPass::Lowercase => {
                Ok(vec![self.encoded(0, &self.input.text.to_lowercase(), "lower-cased text")?])
            }
            AuxiliaryPass::Reference(id) => Ok(vec![self.fitted(self.model(id)?, self.ids, "text")?]),
            AuxiliaryPass::Tuned(id) => Ok(vec![self.tuned(id)?]),
            AuxiliaryPass::Split(split) => Ok(vec![self.split(*split)?]),
            AuxiliaryPass::ReferenceTokenization(id) => {
                Ok(vec![self.encoded(self.model(id)?, &self.input.text, "text")?])
            }
            AuxiliaryPass::Neighbors(None) => match &self.input.neighbors {
                Some(neighbors) => self.neighbors(neighbors),
                None => Err(failed("no_neighbors", "the text comes without neighbours, and nothing makes them")),
            },
            AuxiliaryPass::Neighbors(Some(_)) => {
                let generated = self.generated.iter().find(|(known, _)| known == pass).map(|(_, neighbors)| neighbors);
                match generated {
                    Some(Ok(neighbors)) => self.neighbors(neighbors),
                    Some(Err(error)) => Err(error.clone()),
                    None => Err(failed("internal", "internal error: no neighbours were generated for the text")),
                }
            }
            AuxiliaryPass::Prefixed(texts) => {
                if texts.as_slice().contains(&self.input.text) {
                    return Err(failed("in_prefix", "the text itself is among those of the prefix"));
                }
                Ok(vec![self.prefixed(self.bound.prefix(texts)?)?])
            }
        }
    }

    /// The text under an adapter, unless it is one of those that the adapter was tuned on: what that did to its score tells
    /// nothing of the base.
    fn tuned(&self, id: &str) -> Result<Sequence, AuxiliaryPassError> {
        let index = self.model(id)?;
        let adapted = self.bound.models[index].adapted.as_ref();
        if adapted.is_some_and(|adapted| adapted.adapter.tuned_on.contains(&cluster_digest(&self.input.text))) {
            return Err(failed("tuned_on", format!("the adapter `{id}` was tuned on the text")));
        }
        self.fitted(index, self.ids, "text")
    }

    /// The text under the model that was tuned on a share of the audit's texts, unless it is in that share.
    fn split(&self, split: Split) -> Result<Sequence, AuxiliaryPassError> {
        let tuned = self.bound.plan.splits.iter().find(|tuned| tuned.split == split);
        let tuned = tuned.ok_or_else(|| failed("internal", "internal error: the audit has not tuned its model"))?;
        if tuned.left_out.contains(&cluster_digest(&self.input.text)) {
            let share = split.share;
            let detail = format!("the text is in the share of {share} whose non-members the model was tuned on");
            return Err(failed("in_split", detail));
        }
        self.fitted(self.model(&tuned.adapter)?, self.ids, "text")
    }

    /// The index of a model that the methods name, which was opened with them.
    fn model(&self, id: &str) -> Result<usize, AuxiliaryPassError> {
        let index = self.bound.models.iter().position(|model| model.id() == id);
        index.ok_or_else(|| failed("internal", format!("internal error: model `{id}` was not opened with the methods")))
    }

    fn neighbors(&self, texts: &[String]) -> Sequences {
        if texts.is_empty() {
            return Err(failed("no_neighbors", "the text has no neighbours"));
        }
        let numbered = texts.iter().enumerate();
        numbered.map(|(index, text)| self.encoded(0, text, &format!("neighbour {index}"))).collect()
    }

    /// Another text, by a model in its own ids.
    fn encoded(&self, model: usize, text: &str, what: &str) -> Result<Sequence, AuxiliaryPassError> {
        let Bound { encodings, models, text_limit, .. } = self.bound;
        if let Some(detail) = too_large(text, *text_limit) {
            return Err(failed("too_long", format!("the {what} has {detail}")));
        }
        let encoded = encodings.encode(&models[model], text);
        let encoded = encoded.map_err(|error| failed("untokenizable", format!("the {what}: {error}")))?;
        let fitting = self.bound.fit(model, &encoded.ids, self.truncated);
        let ids = fitting.map_err(|detail| failed("too_long", format!("the {what} has {detail}")))?;
        if ids.len() < 2 {
            return Err(failed("too_short", format!("the {what} has {} token(s); at least 2 are needed", ids.len())));
        }
        Ok(Sequence::new(model, &ids, models[model].longest))
    }

    /// Ids as they are: in windows if that was asked for, but never cut, since the text itself was not.
    fn fitted(&self, model: usize, ids: &Arc<[u32]>, what: &str) -> Result<Sequence, AuxiliaryPassError> {
        let fitting = self.bound.fit(model, ids, false);
        let ids = fitting.map_err(|detail| failed("too_long", format!("the {what} has {detail}")))?;
        Ok(Sequence::new(model, &ids, self.bound.models[model].longest))
    }

    /// The text after a prefix: one pass, for the prefix must be seen by every token.
    fn prefixed(&self, prefix: &[u32]) -> Result<Sequence, AuxiliaryPassError> {
        let (model, tokens) = (&self.bound.models[0], prefix.len() + self.ids.len());
        if tokens > model.longest {
            let detail = too_long(tokens, model);
            return Err(failed("too_long", format!("the text with its prefix has {detail}")));
        }
        let (specials, text) = self.ids.split_at(self.specials.min(self.ids.len()));
        let ids: Arc<[u32]> = [specials, prefix, text].concat().into();
        // The statistic at 0 belongs to the second id.
        let skip = (specials.len() + prefix.len()).saturating_sub(1);
        Ok(Sequence::single(0, ids, skip))
    }
}

fn failed(code: &'static str, detail: impl Into<String>) -> AuxiliaryPassError {
    AuxiliaryPassError { code: code.into(), detail: detail.into() }
}
