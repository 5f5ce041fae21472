//! The input and the result for one column.

use super::summary::{BootstrapSummary, PairedBootstrap};

/// The scores of one method.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct BootstrapColumn<'a> {
    /// One for each label. `None`, or a score that is not finite, is a sample that the method could not score.
    pub scores: &'a [Option<f64>],
    /// The index of the column to compare this one with.
    pub baseline: Option<usize>,
}

/// The bootstrap of one column.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ColumnBootstrap {
    /// Over the samples that the column scores.
    pub summary: BootstrapSummary,
    /// Over the samples that both the column and its baseline score; absent without a baseline, or if those samples are
    /// all of one class.
    pub versus_baseline: Option<PairedBootstrap>,
}
