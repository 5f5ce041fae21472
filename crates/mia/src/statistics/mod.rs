//! The statistics of an audit: how well scores separate members of the training data from non-members.
//!
//! Pure functions over plain data. Scores are only compared with each other; a higher score means that the text is more
//! likely a member. No result is ever NaN: what cannot be computed is an error or absent.

mod bootstrap;
mod clusters;
mod comparability;
mod conformal;
mod dataset_inference;
mod delong;
mod features;
#[cfg(test)]
mod fixtures;
mod hypothesis;
mod isotonic;
mod lists;
mod logistic;
mod max_t;
mod multiple_testing;
mod naive_bayes;
mod ngrams;
mod profile;
mod rates;
mod roc;
mod stratified;
mod warnings;
mod words;

pub use bootstrap::{
    Bootstrap, BootstrapColumn, BootstrapSummary, ColumnBootstrap, PairedBootstrap, Summary, TprSummary, bootstrap,
    bootstrap_listed,
};
pub use clusters::{ClusterScores, ClusteredTexts, folds};
pub use comparability::{
    CONTROL_MEASURES, CharacterNgrams, CharacterTable, Comparability, ComparabilityFit, ComparabilityState,
    ComparedTexts, Measure, MeasureDifference, TextFacts, WordPairTable,
};
pub use conformal::{CalibratedThreshold, CalibrationError, CalibrationScores};
pub use dataset_inference::{
    ControlSplit, DatasetInference, InferenceFeatures, InferenceSplit, dataset_inference, twice_median,
};
pub use delong::{PairedDeLong, PairedScore, auroc_standard_error_by_cluster, delong, normal_quantile};
pub use hypothesis::{
    CanaryRank, CanaryRankTest, DocumentScores, HypothesisError, KolmogorovSmirnov, MannWhitney, MeanEstimate,
    OrderTest, PriorTest, PriorTestSums, PublicationTest, ShardOrder, TTest, canary_rank, detectable_auroc,
    detectable_share, kolmogorov_smirnov, mann_whitney, mean_estimate, order, publication_test, welch,
};
pub use isotonic::out_of_fold_posteriors;
pub use max_t::{PermutationTest, RankColumn, max_t};
pub use multiple_testing::{Discoveries, Procedure, discover, holm, minimum_discoveries};
pub use ngrams::SeparatingNgram;
pub use profile::{PositionMeans, PositionProfile, PositionRow, PositionRows};
pub use rates::{clopper_pearson, false_discoveries_upper, fpr_upper};
pub use roc::{LabelledScore, Roc, RocPoint, StatisticsError, TprAtFpr, auroc};
pub use stratified::{StratifiedAuroc, StratifiedDifference, stratified_auroc, stratified_delong};
pub use warnings::{AuditSample, Warning, WarningCode, method_warnings, warnings};
pub use words::{Shift, TopWords, WordTable, WordsBaseline, words_baseline};
