//! Neighbours of the texts of a request, made by a masked model in one request to the engine.

use super::error::{ScorerError, TextError};
use super::handle::Scorer;
use super::substitution::{CANDIDATES, GeneratedNeighbor, Site, Substitutions, rank, replaced, sites};
use super::workers::TextWork;
use crate::engine::{Class, Pass, Refusal};
use crate::pool::Model;
use lm::models::masked::{Candidates, Filled, MaskedPosition};
use lm::tokenizer::Words;
use mia::methods::MAX_NEIGHBORS;
use std::collections::HashMap;
use std::sync::Arc;
use std::time::Instant;

/// The neighbours of one text, and what they cost.
#[derive(Clone, Debug, PartialEq)]
pub struct Generated {
    pub neighbors: Vec<GeneratedNeighbor>,
    /// Masked copies of the text that ran through the model.
    pub forward_passes: usize,
    /// Masked copies whose outcome was remembered.
    pub cached_passes: usize,
}

/// A text on its way.
enum Preparation {
    Failed(TextError),
    Known(Arc<Substitutions>),
    /// Its ids and the words to mask.
    New(Arc<[u32]>, Vec<Site>),
}

impl Preparation {
    fn sites(&self) -> &[Site] {
        match self {
            Self::New(_, sites) => sites,
            Self::Failed(_) | Self::Known(_) => &[],
        }
    }
}

impl Scorer {
    /// At most `count` neighbours of each text, in order. All texts are one request to the engine: of the interactive class
    /// it is admitted whole or refused, of the batch class it waits for room. A bad text fails alone, with `too_long`,
    /// `untokenizable` or `no_neighbors`.
    pub async fn neighbors(
        &self,
        mask_model: &Arc<Model>,
        texts: Vec<Arc<str>>,
        count: usize,
        class: Class,
        deadline: Option<Instant>,
    ) -> Result<Vec<Result<Generated, TextError>>, ScorerError> {
        let Some(words) = mask_model.words.clone() else {
            return Err(Refusal::WrongKind { model: mask_model.id().to_owned(), masked: false }.into());
        };
        let depends_on: Arc<str> = format!("{} {}", mask_model.identity, mask_model.tokenizer_digest).into();
        let (texts, places) = distinct(texts);
        let (model, known, key) = (Arc::clone(mask_model), self.substitutions.clone(), Arc::clone(&depends_on));
        let begin = move |text: Arc<str>| {
            let step = known.get(&key, &text).map_or_else(|| prepare(&model, &text), Preparation::Known);
            (text, step)
        };
        let work = TextWork::new(class, texts.iter().map(|text| text.len()).sum());
        let begun = self.workers.map(work, texts, begin).await?;
        let mut filled = self.fill(mask_model, &words, &begun, class, deadline).await?.into_iter();
        let with_answers = |(text, step): (Arc<str>, Preparation)| {
            let filled: Vec<Filled> = filled.by_ref().take(step.sites().len()).collect();
            (text, step, filled)
        };
        let parts: Vec<_> = begun.into_iter().map(with_answers).collect();
        let known = self.substitutions.clone();
        let finish = move |(text, step, filled): (Arc<str>, Preparation, Vec<Filled>)| match step {
            Preparation::Failed(error) => Err(error),
            Preparation::Known(ranked) => generated(&words, &text, &ranked, count, (0, ranked.passes)),
            Preparation::New(_, sites) => {
                // As many as anybody may ask for: the best are the first of them.
                let substitutions = rank(&text, &sites, &filled, &words, MAX_NEIGHBORS);
                let ranked = known.insert(&depends_on, &text, Substitutions { substitutions, passes: sites.len() });
                generated(&words, &text, &ranked, count, (ranked.passes, 0))
            }
        };
        Ok(repeated(self.workers.map(work, parts, finish).await?, &places))
    }

    /// Fills the masked positions of all new texts, one after another.
    async fn fill(
        &self,
        model: &Model,
        words: &Words,
        texts: &[(Arc<str>, Preparation)],
        class: Class,
        deadline: Option<Instant>,
    ) -> Result<Vec<Filled>, ScorerError> {
        // One more than needed, since one may turn out to be the original in another guise.
        let candidates = Candidates { mask: words.mask(), allowed: Arc::clone(words.allowed()), best: CANDIDATES + 1 };
        let candidates = Arc::new(candidates);
        let mut request = self.request(model, class, deadline);
        let mut passes = Vec::new();
        for (_, step) in texts {
            if let Preparation::New(ids, sites) = step {
                passes.extend(sites.iter().map(|site| {
                    let (ids, candidates) = (Arc::clone(ids), Arc::clone(&candidates));
                    request.add(Pass::fill(MaskedPosition { ids, position: site.position, candidates }))
                }));
            }
        }
        if passes.is_empty() {
            return Ok(Vec::new());
        }
        self.submit(request).await?.wait().await?;
        let filled: Option<Vec<Filled>> = passes.iter().map(|pass| pass.filled().cloned()).collect();
        filled.ok_or_else(|| ScorerError::Internal("a masked position of an answered request is not filled".into()))
    }
}

/// Each text once, and for every text the place of its own.
fn distinct(texts: Vec<Arc<str>>) -> (Vec<Arc<str>>, Vec<usize>) {
    let (mut distinct, mut known) = (Vec::new(), HashMap::new());
    let place = |text: Arc<str>| {
        *known.entry(text).or_insert_with_key(|text| {
            distinct.push(Arc::clone(text));
            distinct.len() - 1
        })
    };
    let places = texts.into_iter().map(place).collect();
    (distinct, places)
}

/// Returns the result of each text in every place of that text; its cost is in the first alone.
fn repeated(distinct: Vec<Result<Generated, TextError>>, places: &[usize]) -> Vec<Result<Generated, TextError>> {
    let mut seen = vec![false; distinct.len()];
    let in_place = |&place: &usize| {
        let again = std::mem::replace(&mut seen[place], true);
        distinct[place].clone().map(|generated| match again {
            true => Generated { forward_passes: 0, cached_passes: 0, ..generated },
            false => generated,
        })
    };
    places.iter().map(in_place).collect()
}

fn prepare(model: &Model, text: &str) -> Preparation {
    let encoded = match model.tokenizer.encode(text) {
        Ok(encoded) => encoded,
        Err(error) => return Preparation::Failed(TextError::whole("untokenizable", error.to_string())),
    };
    let (tokens, longest) = (encoded.ids.len(), model.longest);
    if tokens > longest {
        let limit = match model.context.filter(|&context| context == longest) {
            Some(context) => format!("its context is {context}"),
            None => format!("the device has memory for {longest}"),
        };
        let detail = format!("the text has {tokens} tokens for the mask model `{}`; {limit}", model.id());
        return Preparation::Failed(TextError::whole("too_long", detail));
    }
    let sites = model.words.as_ref().map_or_else(Vec::new, |words| sites(text, &encoded, words));
    if sites.is_empty() {
        let detail = format!("the text has no whole word that the mask model `{}` could replace", model.id());
        return Preparation::Failed(TextError::whole("no_neighbors", detail));
    }
    Preparation::New(encoded.ids, sites)
}

fn generated(
    words: &Words,
    text: &str,
    ranked: &Substitutions,
    count: usize,
    (forward_passes, cached_passes): (usize, usize),
) -> Result<Generated, TextError> {
    if ranked.substitutions.is_empty() {
        let detail = "the mask model gives no replacement of any word of the text".to_owned();
        return Err(TextError::whole("no_neighbors", detail));
    }
    let neighbors = ranked.substitutions.iter().take(count).map(|substitution| GeneratedNeighbor {
        score: substitution.score,
        position: substitution.position,
        id: substitution.id,
        text: replaced(text, &substitution.bytes, &words.text(substitution.id)),
    });
    Ok(Generated { neighbors: neighbors.collect(), forward_passes, cached_passes })
}
