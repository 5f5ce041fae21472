//! One text on its way to the models: checked, tokenized, cut if the request allows it.

use super::bound::{Bound, too_long};
use super::error::{ScorerError, TextError};
use super::passes::Sequence;
use super::spans::Spans;
use crate::engine::Request;
use lm::tokenizer::Encoded;
use mia::methods::{AuxiliaryPass, AuxiliaryPassError, AuxiliaryStats, Split};
use mia::texts::cluster_digest;
use std::borrow::Cow;
use std::sync::Arc;

/// A text to score.
#[derive(Clone, Debug, Default)]
pub struct Input {
    /// Given back with the result.
    pub id: Option<String>,
    pub text: String,
    /// Text before it, which the model is given and which is not scored.
    pub context: Option<String>,
    /// Parts of the text that are scored; `None` for all of it.
    pub spans: Option<Spans>,
    /// Texts that differ little from it, for the method `neighbor`.
    pub neighbors: Option<Vec<String>>,
}

impl Input {
    /// Bytes of all texts that are tokenized for it.
    pub fn bytes(&self) -> usize {
        let texts = self.context.iter().chain(self.neighbors.iter().flatten());
        self.text.len() + texts.map(String::len).sum::<usize>()
    }

    /// The part of the text that is scored.
    pub fn scored_text(&self) -> Cow<'_, str> {
        self.spans.as_ref().map_or(Cow::Borrowed(&self.text), |spans| spans.text(&self.text).into())
    }
}

/// The neighbours that a masked model generated for a text, or why there are none.
pub type GeneratedNeighbors = (AuxiliaryPass, Result<Vec<String>, AuxiliaryPassError>);

/// The sequences of an auxiliary pass, or why there are none.
type Sequences = Result<Vec<Sequence>, AuxiliaryPassError>;

/// A text with its ids and passes, or with the reason why it cannot be scored.
pub struct PreparedText {
    pub input: Input,
    /// The text as the target reads it; `None` where it was not tokenized.
    pub reading: Option<Reading>,
    pub error: Option<TextError>,
    /// The text itself; without passes if it cannot be run.
    pub sequence: Sequence,
    /// The auxiliary passes of its methods.
    auxiliary: Vec<(AuxiliaryPass, Sequences)>,
}

impl PreparedText {
    /// Tokenizes the text and plans its own passes.
    pub fn new(input: Input, bound: &Bound) -> Self {
        let read = Reading::new(bound, 0, &input.text, &input, None, true, "text");
        let (reading, planned) = match read {
            Ok(reading) => {
                let planned = reading.sequence(bound, "text");
                (Some(reading), planned)
            }
            Err(error) => (None, Err(error)),
        };
        let (sequence, error) = match planned {
            Ok(sequence) => (sequence, None),
            Err(error) => (Sequence::default(), Some(TextError::from(error))),
        };
        Self { input, reading, error, sequence, auxiliary: Vec::new() }
    }

    /// Plans the auxiliary passes of the methods, unless the text has failed. `generated` are the neighbours that masked
    /// models generated for it.
    pub fn with_auxiliary_passes(mut self, generated: &[GeneratedNeighbors], bound: &Bound) -> Self {
        let Some(reading) = self.reading.as_ref().filter(|_| self.error.is_none()) else { return self };
        let planner = PassPlanner { input: &self.input, reading, generated, bound };
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

    /// The ids of the text; none where it was not tokenized.
    pub fn ids(&self) -> &[u32] {
        self.reading.as_ref().map_or(&[], |reading| &reading.ids)
    }
}

/// A text in the ids of a model, cut if the request allows it, and the tokens before it.
pub struct Reading {
    /// Index of the model among those of the request.
    model: usize,
    pub encoded: Arc<Encoded>,
    /// The ids of the text, as far as they fit.
    pub ids: Arc<[u32]>,
    /// Ids of the context, which come after the special tokens and before the text.
    context: Vec<u32>,
    /// Positions of the scored ids among those of the text; `None` for all but the first.
    chosen: Option<Vec<usize>>,
}

impl Reading {
    /// Reads a text, which is that of the input or made from it, by a model; `context` has the ids of the context where they are known.
    /// The text may be cut if `cut`.
    fn new(
        bound: &Bound,
        model: usize,
        text: &str,
        input: &Input,
        context: Option<Vec<u32>>,
        cut: bool,
        what: &str,
    ) -> Result<Self, AuxiliaryPassError> {
        let encoded = bound.encode(model, text, what, input.spans.is_some())?;
        let context = match (context, &input.context) {
            (Some(known), _) => known,
            (None, Some(context)) => bound.context_ids(model, context)?,
            (None, None) => Vec::new(),
        };
        let mut chosen = match &input.spans {
            Some(spans) => Some(spans.positions(text, &encoded.offsets)),
            None => (!context.is_empty()).then(|| (encoded.specials_before..encoded.ids.len()).collect()),
        };
        if let Some(fault) = input.spans.as_ref().and_then(|spans| spans.fault(text)) {
            return Err(failed("invalid_spans", fault));
        }
        let whole = after(&encoded.ids, encoded.specials_before, &context);
        let fitting =
            bound.fit(model, &whole, cut).map_err(|detail| failed("too_long", format!("the {what} has {detail}")))?;
        let kept = fitting.len().saturating_sub(context.len());
        let ids = if kept == encoded.ids.len() { Arc::clone(&encoded.ids) } else { encoded.ids[..kept].into() };
        if let Some(chosen) = &mut chosen {
            // Nothing comes before the first token of a sequence.
            chosen.retain(|&position| position < kept && position + context.len() > 0);
        }
        Ok(Self { model, encoded, ids, context, chosen })
    }

    /// Returns true if the text was cut.
    pub fn is_truncated(&self) -> bool {
        self.ids.len() < self.encoded.ids.len()
    }

    /// Returns the index of the statistics of the id at this position of the text; `None` if it is not scored.
    pub fn statistics_index(&self, position: usize) -> Option<usize> {
        match &self.chosen {
            None => position.checked_sub(1),
            Some(chosen) => chosen.binary_search(&position).ok(),
        }
    }

    /// The ids that are scored, one for each entry of the statistics.
    pub fn scored_ids(&self) -> Vec<u32> {
        match &self.chosen {
            None => self.ids.get(1..).unwrap_or_default().to_vec(),
            Some(chosen) => chosen.iter().map(|position| self.ids[*position]).collect(),
        }
    }

    /// The sequence of the text after its context.
    fn sequence(&self, bound: &Bound, what: &str) -> Result<Sequence, AuxiliaryPassError> {
        let tokens = self.ids.len();
        match &self.chosen {
            None if tokens < 2 => {
                let detail =
                    format!("the {what} has {tokens} token(s); the first is never scored, so at least 2 are needed");
                return Err(failed("too_short", detail));
            }
            Some(chosen) if chosen.is_empty() => return Err(self.nothing_scored(bound, what)),
            _ => {}
        }
        let ids = after(&self.ids, self.encoded.specials_before, &self.context);
        Ok(Sequence::new(self.model, &ids, bound.models[self.model].longest).with_wanted(self.wanted(0)))
    }

    fn nothing_scored(&self, bound: &Bound, what: &str) -> AuxiliaryPassError {
        if self.is_truncated() {
            let before = self.context.len();
            let model = &bound.models[self.model];
            let detail = format!(
                "no scored token of the {what} is within the context of model `{}`, {} tokens, after {before} of \
                 the text's own context",
                model.id(),
                model.longest
            );
            return failed("too_long", detail);
        }
        failed(
            "too_short",
            format!(
                "no token of the {what} is scored: the first token of all is not, and spans must hold whole tokens"
            ),
        )
    }

    /// Indices of the wanted statistics where `more` ids come before the context; `None` for all of a text that is scored whole.
    fn wanted(&self, more: usize) -> Option<Arc<[usize]>> {
        // The statistic at 0 belongs to the second id.
        let before = more + self.context.len();
        self.chosen.as_ref().map(|chosen| chosen.iter().map(|position| position + before - 1).collect())
    }
}

/// The ids of a text with others between its special tokens and itself.
fn after(ids: &Arc<[u32]>, specials: usize, before: &[u32]) -> Arc<[u32]> {
    if before.is_empty() {
        return Arc::clone(ids);
    }
    let (specials, text) = ids.split_at(specials.min(ids.len()));
    [specials, before, text].concat().into()
}

/// Inputs of the auxiliary passes.
struct PassPlanner<'a> {
    input: &'a Input,
    /// The text as the target reads it.
    reading: &'a Reading,
    generated: &'a [GeneratedNeighbors],
    bound: &'a Bound,
}

impl PassPlanner<'_> {
    fn sequences(&self, pass: &AuxiliaryPass) -> Sequences {
        if self.input.spans.is_some() && pass.rewrites_text() {
            let detail = "the text has spans, and their places in the texts that are made of it are not known";
            return Err(failed("spans_unknown", detail));
        }
        match pass {
            AuxiliaryPass::Lowercase => Ok(vec![self.changed(&self.input.text.to_lowercase(), "lower-cased text")?]),
            AuxiliaryPass::Reference(id) => Ok(vec![self.same_ids(self.model(id)?)?]),
            AuxiliaryPass::Tuned(id) => Ok(vec![self.tuned(id)?]),
            AuxiliaryPass::Split(split) => Ok(vec![self.split(*split)?]),
            AuxiliaryPass::ReferenceTokenization(id) => {
                Ok(vec![self.read(self.model(id)?, &self.input.text, "text")?])
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
            AuxiliaryPass::Swapped(swaps) => {
                let copies = swaps.apply(&self.input.text);
                let copies = copies.ok_or_else(|| failed("too_few_words", "the text has no two words to swap"))?;
                self.changed_texts(&copies, "copy with swapped words")
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
        self.same_ids(index)
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
        self.same_ids(self.model(&tuned.adapter)?)
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
        self.changed_texts(texts, "neighbour")
    }

    /// Several texts made from the input's, each called `what` with its number.
    fn changed_texts(&self, texts: &[String], what: &str) -> Sequences {
        let numbered = texts.iter().enumerate();
        numbered.map(|(index, text)| self.changed(text, &format!("{what} {index}"))).collect()
    }

    /// A text made from the input's, by the target, after the same context.
    fn changed(&self, text: &str, what: &str) -> Result<Sequence, AuxiliaryPassError> {
        let (context, cut) = (Some(self.reading.context.clone()), self.reading.is_truncated());
        Reading::new(self.bound, 0, text, self.input, context, cut, what)?.sequence(self.bound, what)
    }

    /// The input's text or another one, by a model in its own ids; cut only if the text itself was.
    fn read(&self, model: usize, text: &str, what: &str) -> Result<Sequence, AuxiliaryPassError> {
        Reading::new(self.bound, model, text, self.input, None, self.reading.is_truncated(), what)?
            .sequence(self.bound, what)
    }

    /// The target's ids by another model: in windows if that was asked for, but never cut, since the text itself was not.
    fn same_ids(&self, model: usize) -> Result<Sequence, AuxiliaryPassError> {
        let Reading { ids, encoded, context, .. } = self.reading;
        let ids = after(ids, encoded.specials_before, context);
        let fitting = self.bound.fit(model, &ids, false);
        let ids = fitting.map_err(|detail| failed("too_long", format!("the text has {detail}")))?;
        Ok(Sequence::new(model, &ids, self.bound.models[model].longest).with_wanted(self.reading.wanted(0)))
    }

    /// The text after a prefix: one pass, for the prefix must be seen by every token.
    fn prefixed(&self, prefix: &[u32]) -> Result<Sequence, AuxiliaryPassError> {
        let Reading { ids, encoded, context, .. } = self.reading;
        let ids = after(ids, encoded.specials_before, &[prefix, context].concat());
        let model = &self.bound.models[0];
        if ids.len() > model.longest {
            let detail = too_long(ids.len(), model);
            return Err(failed("too_long", format!("the text with its prefix has {detail}")));
        }
        match self.reading.wanted(prefix.len()) {
            Some(wanted) => Ok(Sequence::single(0, ids, 0).with_wanted(Some(wanted))),
            // The statistic at 0 belongs to the second id.
            None => Ok(Sequence::single(0, ids, (encoded.specials_before + prefix.len()).saturating_sub(1))),
        }
    }
}

fn failed(code: &'static str, detail: impl Into<String>) -> AuxiliaryPassError {
    AuxiliaryPassError { code: code.into(), detail: detail.into() }
}
