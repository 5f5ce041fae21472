//! The statistics of an audit: how well scores separate members of the training data from non-members.
//!
//! Pure functions over plain data. Scores are only compared with each other; a higher score means that the text is more
//! likely a member. No result is ever NaN: what cannot be computed is an error or absent.

mod auroc;
mod bootstrap;
mod cluster_index;
mod cluster_variance;
mod clustered_texts;
mod comparability;
mod conformal;
mod delong;
mod detectable;
mod discovery;
mod folds;
mod holm;
mod hypothesis;
mod isotonic;
mod max_t;
mod naive_bayes;
mod operating_point;
mod profile;
mod realised;
mod roc;
mod separating;
mod stratified;
mod warnings;
mod words;

#[cfg(test)]
mod tests;

pub use auroc::{auroc, auroc_standard_error_by_cluster};
pub use bootstrap::{
    Bootstrap, BootstrapColumn, BootstrapSummary, ColumnBootstrap, PairedBootstrap, Summary, TprSummary, bootstrap,
    bootstrap_listed,
};
pub use clustered_texts::{ClusterScores, ClusteredTexts};
pub use comparability::{
    CONTROL_MEASURES, CharacterNgrams, CharacterTable, Comparability, ComparabilityFit, ComparabilityState,
    ComparedTexts, Measure, MeasureDifference, TextFacts, WordPairTable,
};
pub use conformal::{CalibratedThreshold, CalibrationError, CalibrationScores};
pub use delong::{PairedDeLong, PairedScore, delong, normal_quantile};
pub use detectable::detectable_auroc;
pub use discovery::{Discoveries, Procedure, discover, minimum_discoveries};
pub use folds::folds;
pub use holm::holm;
pub use hypothesis::{
    CanaryRank, CanaryRankTest, DocumentScores, HypothesisError, KolmogorovSmirnov, MannWhitney, MeanEstimate,
    OrderTest, PriorTest, PriorTestSums, PublicationTest, ShardOrder, TTest, canary_rank, detectable_share,
    kolmogorov_smirnov, mann_whitney, mean_estimate, one_sample_t, order, publication_test, welch,
};
pub use isotonic::{IsotonicBlock, isotonic, out_of_fold_posteriors, posterior};
pub use max_t::{PermutationTest, RankColumn, max_t};
pub use operating_point::{TprAtFpr, clopper_pearson, false_positive_budget};
pub use profile::{PositionMeans, PositionProfile, PositionRow, PositionRows};
pub use realised::{false_discoveries_upper, fpr_upper};
pub use roc::{LabelledScore, Roc, RocPoint, StatisticsError};
pub use separating::SeparatingNgram;
pub use stratified::{StratifiedAuroc, StratifiedDifference, stratified_auroc, stratified_delong};
pub use warnings::{AuditSample, Warning, WarningCode, method_warnings, warnings};
pub use words::{Shift, TopWords, WordTable, WordsBaseline, words_baseline};
