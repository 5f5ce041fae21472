//! Findings that the results of an audit hold beside its scores.

use super::evidence::Effect;
use crate::datasets::SampleId;
use crate::wire::number_of;
use mia::statistics::{CalibratedThreshold, MannWhitney, Procedure, WordsBaseline};
use serde::{Deserialize, Serialize};
use std::fmt::{Display, Formatter};
use std::sync::Arc;
use utoipa::ToSchema;

/// Known works that a sentence names.
const NAMED: usize = 3;

/// Results of an audit that a calibration adds.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct CalibratedResults {
    /// The digest of the calibration's samples, as datasets are named; `None` for a share of the audit's own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub digest: Option<String>,
    /// Texts of the calibration.
    pub texts: usize,
    /// Clusters that are in the calibration and among the texts tested; they were removed from the calibration.
    pub overlap: usize,
    /// Documents of the calibration that are in these clusters, by name; at most 1,000.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub overlapping_documents: Vec<String>,
    /// Text that known works share with the works tested; `None` where the calibration has no works.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub shared_text: Option<SharedTextFindings>,
    /// That the texts tested and those of the calibration have the same lengths, by Kolmogorov and Smirnov.
    pub length_p_value: Option<f64>,
    /// One entry per listed method; `None` if the calibration has too few scores of it.
    pub methods: Vec<Option<MethodCalibration>>,
    pub decisions: Option<Decisions>,
    /// The works that are tested, in the order in which they appear; empty where no text names a document.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub works: Vec<WorkFindings>,
    /// Test of whether the texts tested score higher than those of the calibration, by the primary method.
    pub dataset_test: Option<MannWhitney>,
    /// Effect size of the texts tested over those of the calibration, by the primary method.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub effect: Option<Effect>,
    /// Clusters of texts tested, and of known non-members, that the primary method scores.
    #[serde(default)]
    pub clusters: [usize; 2],
    /// The number of texts that the primary method's score of each cluster is the mean of.
    #[serde(default)]
    pub texts_per_cluster: usize,
}

/// Resolution of the p-values of a method, and the guarantees of thresholds.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct MethodCalibration {
    /// Clusters of known non-members that have a score.
    pub clusters: usize,
    /// The smallest p-value that is possible, 1 / (clusters + 1).
    pub resolution: f64,
    /// The threshold at each false-positive rate that the calibration is large enough for.
    pub threshold_at_fpr: Vec<CalibratedThreshold>,
}

/// The list of texts at a false discovery rate.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct Decisions {
    /// Label of the method that decides.
    #[schema(value_type = String)]
    pub method: Arc<str>,
    pub procedure: Procedure,
    pub fdr: f64,
    /// The estimated share of non-members among the texts tested; of `storey` alone.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pi0: Option<f64>,
    /// Clusters of texts tested.
    pub tested: usize,
    /// Clusters on the list.
    pub rejected: usize,
    /// The shortest list that a calibration of this size makes possible at all.
    pub minimum_discoveries: usize,
    /// The lowest score on the list; absent where the list is empty.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub threshold: Option<f64>,
    /// The upper 95 % bound of the false-positive rate at that threshold, had it been fixed beforehand.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fpr_upper_95: Option<f64>,
    /// The upper 95 % bound of how many of the clusters tested would be listed if all were non-members.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub false_discoveries_upper_95: Option<usize>,
    /// Clusters on the list that are labelled non-members; absent without labels.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub non_members_rejected: Option<usize>,
}

/// One work among the known works: a document whose passages are texts of the audit, by the method that decides.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct WorkFindings {
    /// Id of the document.
    pub document: SampleId,
    /// Passages that have a score.
    pub passages: usize,
    /// Mean score of as many of its passages as are compared of every work. Works that share a passage are one cluster, with one score
    /// and one p-value.
    pub score: f64,
    /// Known works that score at least as high.
    pub known_above: usize,
    /// The share of the known works and this one that score at least as high: (known_above + 1) / (known works + 1).
    pub p_value: f64,
    /// The same adjusted for the number of works tested.
    pub p_value_adjusted: f64,
    /// True if the work is on the list.
    pub listed: bool,
}

/// Text that known works share with the works tested.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct SharedTextFindings {
    pub state: SharedTextState,
    /// The shortest run of words that is always recognised within a passage of a known work; absent where nothing was checked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub shortest_run: Option<usize>,
    /// Known works that are left out: those that share a tenth of their n-grams of 13 words with the works tested, or have a tenth of
    /// those of one work tested, or 100 words in a row of it.
    pub works: usize,
    /// The first 1,000 of these.
    pub left_out: Vec<SharedWork>,
    /// Passages of other known works that are left out for shorter text that they share.
    pub known_passages: usize,
    /// Passages of the works tested that are left out for the same text.
    pub tested_passages: usize,
}

/// Outcome of the comparison of the known works with the works tested.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum SharedTextState {
    Checked,
    /// An earlier version made the calibration, which has no n-grams: only passages that are equal but for case and white space
    /// were recognised.
    #[default]
    NotChecked,
}

/// A known work that is left out.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct SharedWork {
    /// Id of the known document.
    pub document: SampleId,
    /// The work tested that has most of the shared text: its document, or else its id; absent where it has neither.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub with: Option<SampleId>,
    /// The shared n-grams as a share of those of the known work or, where that is larger, of the work tested.
    pub share: f64,
    /// About how many words the longest shared run has.
    pub longest_run: usize,
}

impl SharedTextFindings {
    /// A sentence on all that is left out; `None` where it is nothing.
    pub fn sentence(&self) -> Option<String> {
        let first: Vec<String> = self.left_out.iter().take(NAMED).map(ToString::to_string).collect();
        let more = if self.works > first.len() { ", ..." } else { "" };
        let verb = |count: usize, one: &'static str, more: &'static str| if count == 1 { one } else { more };
        let whole = (self.works > 0).then(|| {
            let (shares, is) = (verb(self.works, "shares", "share"), verb(self.works, "is", "are"));
            let works = number_of(self.works, "known work");
            format!("{works} {shares} text with the works tested and {is} left out ({}{more})", first.join(", "))
        });
        let passages = self.known_passages + self.tested_passages;
        let quotations = (passages > 0).then(|| {
            format!(
                "{} of other known works and {} of the works tested {} left out, which hold shorter text that both have",
                number_of(self.known_passages, "passage"),
                self.tested_passages,
                verb(passages, "is", "are")
            )
        });
        let said: Vec<String> = whole.into_iter().chain(quotations).collect();
        (!said.is_empty()).then(|| said.join("; "))
    }
}

impl Display for SharedWork {
    fn fmt(&self, f: &mut Formatter<'_>) -> std::fmt::Result {
        let Self { document, with, share, longest_run } = self;
        let with = with.as_ref().map(|work| format!(" of {work}")).unwrap_or_default();
        write!(f, "{document}: share {share:.2}{with}, {longest_run} words in a row")
    }
}

/// Result of the tuning on one share of an audit's texts.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct SplitOutcome {
    /// Id of the model that was tuned: the one asked about, or the control.
    pub model: String,
    /// The share of the texts that was left out of scoring.
    pub split: f64,
    /// Seed of the split and of the tuning.
    pub seed: u64,
    /// SHA-256 of the adapter.
    pub adapter: String,
    /// Samples that were left out of scoring.
    pub left_out: usize,
    /// Texts that the model was tuned on: the non-members among those, each once.
    pub tuned_on: usize,
    /// Steps of the tuning.
    pub steps: usize,
    /// Loss of the first step.
    pub first_loss: f64,
    /// Loss of the last step.
    pub last_loss: f64,
}

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
