//! Measures of a text that do not need the model that is asked about.

use super::characters::CharacterTable;
use super::word_pairs::WordPairTable;
use crate::statistics::clusters::{FOLDS, folds};
use crate::statistics::features::{FeatureRows, standardised};
use crate::statistics::naive_bayes::NgramColumns;
use crate::statistics::ngrams::NgramSets;
use crate::statistics::words::WordTable;
use serde::{Deserialize, Serialize};
use strum::Display;
use utoipa::ToSchema;

/// The number of scores of the control model: `loss`, `min_k_plus_plus` with k = 0.2, `min_k` with k = 0.05 and 0.2.
pub const CONTROL_MEASURES: usize = 4;

/// Something measured of each text.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Display, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
#[strum(serialize_all = "snake_case")]
pub enum Measure {
    /// Log-odds of the text's words.
    Words,
    /// Log-odds of its character n-grams.
    Characters,
    /// The logarithm of the number of scored tokens.
    Tokens,
    BytesPerToken,
    /// Bytes over those that zlib makes of them.
    BytesPerZlibByte,
    /// The share of the text's distinct words that no other text has.
    UniqueWords,
    /// The share of the text's distinct character 3-grams that no other text has.
    UniqueCharacters,
    /// The agreement of the text's word order with that of the other texts, in [-1, 1]: the log-ratios of texts with a pair
    /// of adjacent words to texts with the same two words reversed, summed and divided by the sum of their absolute values.
    WordOrder,
    /// `loss` under the control model.
    ControlLoss,
    /// `min_k_plus_plus` with k = 0.2 under the control model.
    ControlMinKPlusPlus,
    /// `min_k` with k = 0.05 under the control model.
    #[serde(rename = "control_min_k_5")]
    #[strum(serialize = "control_min_k_5")]
    ControlMinK5,
    /// `min_k` with k = 0.2 under the control model.
    #[serde(rename = "control_min_k_20")]
    #[strum(serialize = "control_min_k_20")]
    ControlMinK20,
}

/// The measures of the control model, in the order of [`TextFacts::control`].
const CONTROL: [Measure; CONTROL_MEASURES] =
    [Measure::ControlLoss, Measure::ControlMinKPlusPlus, Measure::ControlMinK5, Measure::ControlMinK20];

/// Facts about a text that do not need the model that is asked about, beside its words and characters.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct TextFacts {
    pub bytes: usize,
    pub zlib_bytes: usize,
    pub scored_tokens: usize,
    /// Scores of the control model, as [`CONTROL_MEASURES`] lists them; `None` without one.
    pub control: [Option<f64>; CONTROL_MEASURES],
}

/// Two lists of texts, with what is known of each text without the model that is asked about.
#[derive(Clone, Copy, Debug)]
pub struct ComparedTexts<'a> {
    /// True for each text of the first list, such as members.
    pub labels: &'a [bool],
    pub clusters: &'a [usize],
    /// The group that each text is compared within.
    pub strata: &'a [usize],
    pub words: &'a WordTable,
    pub characters: &'a CharacterTable,
    pub word_pairs: &'a WordPairTable,
    pub facts: &'a [TextFacts],
}

/// The measures of texts. A measure that no text has is left out.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Measures {
    /// The fold of each text.
    folds: Vec<usize>,
    columns: Vec<(Measure, Column)>,
}

/// The values of a measure, one for each text.
#[derive(Clone, Debug, PartialEq)]
enum Column {
    /// Values that do not depend on labels.
    Known(Vec<Option<f64>>),
    /// Log-odds by models that are fitted without the text's fold, and without each fold in turn.
    Fitted(Vec<[f64; FOLDS]>),
}

impl Measures {
    /// Computes the measures; `None` if the log-odds of words or characters cannot be fitted.
    pub fn new(texts: &ComparedTexts) -> Option<Self> {
        let ComparedTexts { labels, clusters, words, characters, word_pairs, facts, .. } = *texts;
        let ratio = |a: usize, b: usize| (b > 0).then(|| a as f64 / b as f64);
        let of_facts = |value: &dyn Fn(&TextFacts) -> Option<f64>| facts.iter().map(value).collect::<Vec<_>>();
        let tokens = |facts: &TextFacts| (facts.scored_tokens > 0).then(|| (facts.scored_tokens as f64).ln());
        let mut known = vec![
            (Measure::Tokens, of_facts(&tokens)),
            (Measure::BytesPerToken, of_facts(&|facts| ratio(facts.bytes, facts.scored_tokens))),
            (Measure::BytesPerZlibByte, of_facts(&|facts| ratio(facts.bytes, facts.zlib_bytes))),
            (Measure::UniqueWords, words.sets.unique_shares(|_| true).collect()),
            (Measure::UniqueCharacters, characters.unique_shares().collect()),
            (Measure::WordOrder, word_pairs.orders().collect()),
        ];
        known.extend(
            (0..).zip(CONTROL).map(|(place, measure)| (measure, of_facts(&|facts: &TextFacts| facts.control[place]))),
        );
        known.retain(|(_, values)| values.iter().any(Option::is_some));
        let fitted = |sets: &NgramSets| NgramColumns::new(sets).nested_log_odds(labels, clusters).map(Column::Fitted);
        let (words, characters) = rayon::join(|| fitted(&words.sets), || fitted(&characters.sets));
        let mut columns = vec![(Measure::Words, words?), (Measure::Characters, characters?)];
        columns.extend(known.into_iter().map(|(measure, values)| (measure, Column::Known(values))));
        Some(Self { folds: folds(labels, clusters), columns })
    }

    /// The fold of each text.
    pub fn folds(&self) -> &[usize] {
        &self.folds
    }

    /// Each measure with its values, those of texts by models that are fitted on the other folds.
    pub fn iter(&self) -> impl Iterator<Item = (Measure, impl Fn(usize) -> Option<f64>)> {
        self.columns.iter().map(|(measure, column)| (*measure, |text: usize| column.value(text, self.folds[text])))
    }
}

impl Column {
    /// The value of a text by models that are fitted without the fold `held`.
    fn value(&self, text: usize, held: usize) -> Option<f64> {
        match self {
            Self::Known(values) => values[text],
            Self::Fitted(odds) => Some(odds[text][held]),
        }
    }
}

/// The measures as rows of a regression that is fitted without one fold: standardised on the `training` texts, those of the other
/// folds, within groups, and their squares. Missing values are the mean.
pub(super) fn standardised_rows(measures: &Measures, held: usize, training: &[usize], strata: &[usize]) -> FeatureRows {
    let mut rows = FeatureRows::zero(strata.len(), 2 * measures.columns.len());
    for (place, (_, column)) in measures.columns.iter().enumerate() {
        let column: Vec<Option<f64>> = (0..strata.len()).map(|text| column.value(text, held)).collect();
        let standardised = standardised(&column, training, strata);
        rows.set_column(2 * place, &standardised);
        rows.set_column(2 * place + 1, &standardised.iter().map(|value| value * value).collect::<Vec<_>>());
    }
    rows
}
