//! Separation of the classes by the texts alone, without any model.

use super::PERMUTATION_SEED;
use mia::statistics::{LabelledScore, TextFacts, WordTable, WordsBaseline, auroc, words_baseline};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// Separation of the classes by the texts alone, without any model.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct BlindFindings {
    /// By the words of the texts; absent where a class has too few texts.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub words: Option<WordsBaseline>,
    pub lengths: LengthFindings,
}

/// AUROC of how long the texts are, and of how repetitive. Far from one half on either side means that it tells the classes apart.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct LengthFindings {
    /// Of the number of scored tokens; absent where a class has no sample.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub scored_tokens: Option<f64>,
    /// Of the bytes of a text over those that zlib makes of it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bytes_per_zlib_byte: Option<f64>,
}

/// Computes the AUROC of a feature of the texts; `None` if a class is missing.
fn feature_auroc(labels: &[bool], feature: impl Iterator<Item = f64>) -> Option<f64> {
    let samples: Vec<LabelledScore> =
        labels.iter().zip(feature).map(|(&member, score)| LabelledScore { score, member }).collect();
    auroc(&samples).ok()
}

/// Computes the findings on texts with these labels, clusters, facts and words.
#[must_use]
pub fn blind_findings(
    labels: &[bool],
    clusters: &[usize],
    facts: &[TextFacts],
    words: &WordTable,
    wanted: &dyn Fn() -> bool,
) -> BlindFindings {
    let feature = |feature: &dyn Fn(&TextFacts) -> f64| feature_auroc(labels, facts.iter().map(feature));
    BlindFindings {
        words: words_baseline(words, labels, clusters, PERMUTATION_SEED, wanted),
        lengths: LengthFindings {
            scored_tokens: feature(&|facts| facts.scored_tokens as f64),
            bytes_per_zlib_byte: feature(&|facts| facts.bytes as f64 / facts.zlib_bytes as f64),
        },
    }
}
