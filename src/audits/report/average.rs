//! The means of a method's numbers over groups.

use super::findings::Separation;
use mia::statistics::TprAtFpr;
use serde::Serialize;
use utoipa::ToSchema;

/// The means of a method's numbers, by what they are over.
#[derive(Clone, Debug, PartialEq, Serialize, ToSchema)]
pub struct Averages {
    pub group: GroupAverage,
}

/// The unweighted (macro) means over the groups: each counts the same, however many samples it has.
#[derive(Clone, Debug, PartialEq, Serialize, ToSchema)]
pub struct GroupAverage {
    /// Groups in the means.
    pub groups: usize,
    /// Groups that are left out, since the method scored samples of one class only, or none.
    pub left_out: usize,
    /// Mean area under the ROC curve; null where every group is left out.
    #[schema(required = false)]
    pub auroc: Option<f64>,
    /// Mean true-positive rates, in the order of the targets; empty where every group is left out.
    pub tpr_at_fpr: Vec<MeanTpr>,
}

/// A true-positive rate averaged over groups, each with a threshold of its own.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, ToSchema)]
pub struct MeanTpr {
    /// The bound on the false-positive rate in each group.
    pub fpr: f64,
    /// Mean of the largest true-positive rates within the bound.
    pub tpr: f64,
}

/// The means of one method's numbers in each group; none of a group without labels.
pub fn group_average(separations: &[Option<&Separation>]) -> GroupAverage {
    let labelled = separations.iter().flatten();
    let curves: Vec<(f64, &[TprAtFpr])> =
        labelled.filter_map(|separation| Some((separation.auroc?, &*separation.tpr_at_fpr))).collect();
    let targets = curves.first().map_or(0, |(_, rates)| rates.len());
    let rate = |target: usize| {
        let rates = || curves.iter().filter_map(move |(_, rates)| rates.get(target));
        Some(MeanTpr { fpr: rates().next()?.fpr, tpr: mean(rates().map(|rate| rate.tpr))? })
    };
    GroupAverage {
        groups: curves.len(),
        left_out: separations.len() - curves.len(),
        auroc: mean(curves.iter().map(|(auroc, _)| *auroc)),
        tpr_at_fpr: (0..targets).filter_map(rate).collect(),
    }
}

/// `None` of nothing.
fn mean(values: impl Iterator<Item = f64>) -> Option<f64> {
    let (count, sum) = values.fold((0_usize, 0.0), |(count, sum), value| (count + 1, sum + value));
    (count > 0).then(|| sum / count as f64)
}
