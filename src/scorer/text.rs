//! One text on its way to the models: checked, tokenized, cut if the request allows it.

use super::TextError;
use super::bound::{Bound, too_large, too_long};
use super::passes::{PlannedPass, Sequence, sequence};
use crate::methods::{Unseen, View};
use crate::tokenizer::Encoded;
use crate::wire::by_name;
use serde::{Deserialize, Serialize};
use std::sync::Arc;
use utoipa::ToSchema;

/// A text to score.
#[derive(Clone, Debug, Default)]
pub struct Input {
    /// Given back with the result.
    pub id: Option<String>,
    pub text: String,
    /// Texts that differ little from it, for the method `neighbor`.
    pub neighbors: Option<Vec<String>>,
}

/// What to do with a text that is longer than the model's context.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case", try_from = "String")]
pub enum Overflow {
    /// The text fails with `too_long`.
    #[default]
    Error,
    /// The first tokens that fit are scored, special tokens counted, and the result says `truncated`.
    Truncate,
    /// The text is read in windows of the context, each starting half a window later; every token is scored once, with
    /// the most context that a window gives it, and positions run on over the whole text.
    Window,
}

impl TryFrom<String> for Overflow {
    type Error = String;

    fn try_from(name: String) -> Result<Self, String> {
        by_name(&name, &[("error", Overflow::Error), ("truncate", Overflow::Truncate), ("window", Overflow::Window)])
    }
}

/// The neighbours that a masked model made of a text, or why it made none.
pub type Made = (View, Result<Vec<String>, Unseen>);

/// The sequences of a view, or why there are none.
type Sequences = Result<Vec<Sequence>, Unseen>;

/// A text with its ids, or with the reason why it cannot be scored.
pub struct Prepared {
    pub input: Input,
    pub truncated: bool,
    /// None where the text was not tokenized.
    pub encoded: Option<Arc<Encoded>>,
    /// The ids that are scored.
    pub ids: Arc<[u32]>,
    pub error: Option<TextError>,
    /// The text's own passes.
    pub own: Sequence,
    /// What its methods look at besides.
    pub views: Vec<(View, Sequences)>,
}

impl Prepared {
    /// Tokenizes the text and plans its own passes.
    pub fn new(input: Input, bound: &Bound) -> Self {
        if let Some(detail) = too_large(&input.text, bound.text_limit) {
            return Self::failed(input, TextError::whole("too_long", format!("the text has {detail}")));
        }
        match bound.encodings.encode(&bound.models[0], &input.text) {
            Ok(encoded) => Self::fit(input, encoded, bound),
            Err(error) => Self::failed(input, TextError::whole("untokenizable", error.to_string())),
        }
    }

    /// Plans what the methods look at besides, unless the text has failed. `generated` are the neighbours that masked
    /// models made of it.
    pub fn with_views(mut self, generated: &[Made], bound: &Bound) -> Self {
        let Some(encoded) = self.encoded.as_ref().filter(|_| self.error.is_none()) else { return self };
        let specials = encoded.specials_before;
        let truncated = self.truncated;
        let about = About { input: &self.input, ids: &self.ids, specials, truncated, generated, bound };
        self.views = bound.views.iter().map(|view| (view.clone(), about.sequences(view))).collect();
        self
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
        let own = sequence(0, &ids, bound.models[0].longest);
        Self { truncated, encoded: Some(encoded), ids, own, ..Self::bare(input) }
    }

    fn failed(input: Input, error: TextError) -> Self {
        Self { error: Some(error), ..Self::bare(input) }
    }

    fn bare(input: Input) -> Self {
        let ids = Arc::new([]);
        Self { input, truncated: false, encoded: None, ids, error: None, own: Vec::new(), views: Vec::new() }
    }
}

/// What views are made of.
struct About<'a> {
    input: &'a Input,
    /// The ids that are scored.
    ids: &'a Arc<[u32]>,
    /// How many of them stand before the text.
    specials: usize,
    /// Whether the text was cut, so that what is made of it may be cut as well.
    truncated: bool,
    generated: &'a [Made],
    bound: &'a Bound,
}

impl About<'_> {
    fn sequences(&self, view: &View) -> Sequences {
        match view {
            View::Lowercase => Ok(vec![self.encoded(0, &self.input.text.to_lowercase(), "lower-cased text")?]),
            View::Reference(id) => Ok(vec![self.fitted(self.place(id)?, self.ids, "text")?]),
            View::OwnReference(id) => Ok(vec![self.encoded(self.place(id)?, &self.input.text, "text")?]),
            View::Neighbors(None) => match &self.input.neighbors {
                Some(neighbors) => self.neighbors(neighbors),
                None => Err(unseen("no_neighbors", "the text comes without neighbours, and nothing makes them")),
            },
            View::Neighbors(Some(_)) => {
                let made = self.generated.iter().find(|(made, _)| made == view).map(|(_, neighbors)| neighbors);
                match made {
                    Some(Ok(neighbors)) => self.neighbors(neighbors),
                    Some(Err(unseen)) => Err(unseen.clone()),
                    None => Err(unseen("no_neighbors", "the text has no neighbours")),
                }
            }
            View::After(texts) => {
                if texts.as_slice().contains(&self.input.text) {
                    return Err(unseen("in_prefix", "the text itself is among those that are put before it"));
                }
                Ok(vec![self.after(self.bound.prefix(texts)?)?])
            }
        }
    }

    /// The place of a model that a method names.
    fn place(&self, id: &str) -> Result<usize, Unseen> {
        self.bound.place_of(id).map_err(|error| unseen("internal", error.to_string()))
    }

    fn neighbors(&self, texts: &[String]) -> Sequences {
        if texts.is_empty() {
            return Err(unseen("no_neighbors", "the text has no neighbours"));
        }
        let numbered = texts.iter().enumerate();
        numbered.map(|(index, text)| self.encoded(0, text, &format!("neighbour {index}"))).collect()
    }

    /// Another text, by a model in its own ids.
    fn encoded(&self, model: usize, text: &str, what: &str) -> Result<Sequence, Unseen> {
        let Bound { encodings, models, text_limit, .. } = self.bound;
        if let Some(detail) = too_large(text, *text_limit) {
            return Err(unseen("too_long", format!("the {what} has {detail}")));
        }
        let encoded = encodings.encode(&models[model], text);
        let encoded = encoded.map_err(|error| unseen("untokenizable", format!("the {what}: {error}")))?;
        let fitting = self.bound.fit(model, &encoded.ids, self.truncated);
        let ids = fitting.map_err(|detail| unseen("too_long", format!("the {what} has {detail}")))?;
        if ids.len() < 2 {
            return Err(unseen("too_short", format!("the {what} has {} token(s); at least 2 are needed", ids.len())));
        }
        Ok(sequence(model, &ids, models[model].longest))
    }

    /// Ids as they are: in windows if that was asked for, but never cut, since the text itself was not.
    fn fitted(&self, model: usize, ids: &Arc<[u32]>, what: &str) -> Result<Sequence, Unseen> {
        let fitting = self.bound.fit(model, ids, false);
        let ids = fitting.map_err(|detail| unseen("too_long", format!("the {what} has {detail}")))?;
        Ok(sequence(model, &ids, self.bound.models[model].longest))
    }

    /// The text after a prefix: one pass, for the prefix must be seen by every token.
    fn after(&self, prefix: &[u32]) -> Result<Sequence, Unseen> {
        let (model, tokens) = (&self.bound.models[0], prefix.len() + self.ids.len());
        if tokens > model.longest {
            let detail = too_long(tokens, model);
            return Err(unseen("too_long", format!("the text with its prefix has {detail}")));
        }
        let (specials, text) = self.ids.split_at(self.specials.min(self.ids.len()));
        let ids: Arc<[u32]> = [specials, prefix, text].concat().into();
        // The statistic at 0 belongs to the second id.
        let skip = (specials.len() + prefix.len()).saturating_sub(1);
        Ok(vec![PlannedPass { model: 0, ids, skip }])
    }
}

fn unseen(code: &'static str, detail: impl Into<String>) -> Unseen {
    Unseen { code: code.into(), detail: detail.into() }
}
