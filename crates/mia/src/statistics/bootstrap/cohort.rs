//! The columns that are resampled together, since they score the same samples.

use super::draws::{Draws, Units};
use super::ranked::Ranked;
use super::summary::{BootstrapColumn, Replicates};
use crate::statistics::rates::false_positive_budget;
use rayon::prelude::*;

/// Replicates that are computed at once; between blocks, the caller may cancel.
const BLOCK: usize = 64;

/// The samples to draw from, and the statistics to compute from their replicates.
pub(super) struct Cohort {
    /// True for each sample that can be drawn.
    scored: Vec<bool>,
    /// The columns to evaluate; a replicate has their values in this order.
    pub columns: Vec<usize>,
    /// Columns that score exactly these samples.
    pub summaries: Vec<usize>,
    /// Columns and their baselines that both score exactly these samples.
    pub pairs: Vec<(usize, usize)>,
}

impl Cohort {
    /// The cohorts of `columns`: one for each distinct set of samples that a column scores, or that a column and its
    /// baseline both score.
    pub fn all(labels: &[bool], columns: &[BootstrapColumn]) -> Vec<Self> {
        let scored = |column: &BootstrapColumn| -> Vec<bool> {
            let finite = |index| column.scores.get(index).copied().flatten().is_some_and(f64::is_finite);
            (0..labels.len()).map(finite).collect()
        };
        let masks: Vec<Vec<bool>> = columns.iter().map(scored).collect();
        let mut cohorts = Vec::new();
        for (index, column) in columns.iter().enumerate() {
            let cohort = Self::find_or_insert(&mut cohorts, masks[index].clone(), &[index]);
            cohort.summaries.push(index);
            if let Some(base) = column.baseline.filter(|&base| base < columns.len()) {
                let both = masks[index].iter().zip(&masks[base]).map(|(a, b)| a & b).collect();
                Self::find_or_insert(&mut cohorts, both, &[index, base]).pairs.push((index, base));
            }
        }
        cohorts
    }

    /// The cohort of `scored`, which is inserted if it does not exist, with `columns` among those it evaluates.
    fn find_or_insert<'a>(cohorts: &'a mut Vec<Self>, scored: Vec<bool>, columns: &[usize]) -> &'a mut Self {
        let position = cohorts.iter().position(|cohort| cohort.scored == scored).unwrap_or(cohorts.len());
        if position == cohorts.len() {
            cohorts.push(Self { scored, columns: Vec::new(), summaries: Vec::new(), pairs: Vec::new() });
        }
        let cohort = &mut cohorts[position];
        for column in columns {
            if !cohort.columns.contains(column) {
                cohort.columns.push(*column);
            }
        }
        cohort
    }

    /// The values of every replicate, and those of the original samples.
    pub fn replicates(
        &self,
        labels: &[bool],
        clusters: &[usize],
        columns: &[BootstrapColumn],
        fpr_targets: &[f64],
        draws: &Draws,
        keep_going: &dyn Fn() -> bool,
    ) -> Replicates {
        let indices: Vec<u32> =
            (0..).zip(&self.scored).filter(|(_, scored)| **scored).map(|(index, _)| index).collect();
        let ranked = self.columns.iter().map(|&column| Ranked::new(labels, columns[column].scores, &indices)).collect();
        let evaluator = Evaluator { labels, indices: &indices, ranked, targets: Targets::new(fpr_targets) };
        let key = draws.key(&self.scored);
        let units = Units::new(clusters, &indices);
        let scratch = || vec![0; labels.len()];
        let row = |counts: &mut Vec<u32>, replicate| {
            draws.count(replicate, key, &units, counts);
            evaluator.values(counts)
        };
        let mut rows = Vec::with_capacity(draws.replicates());
        while rows.len() < draws.replicates() && keep_going() {
            let block = rows.len()..draws.replicates().min(rows.len() + BLOCK);
            rows.par_extend(block.into_par_iter().map_init(scratch, row));
        }
        let observed = evaluator.values(&vec![1; labels.len()]);
        Replicates { rows, observed, columns: self.columns.clone(), targets: fpr_targets.len() }
    }
}

/// The targets of the false positive rate in ascending order, each with its index among those requested.
struct Targets(Vec<(usize, f64)>);

impl Targets {
    fn new(requested: &[f64]) -> Self {
        let mut ascending: Vec<(usize, f64)> = requested.iter().copied().enumerate().collect();
        // NaN allows no false positive, as 0 does.
        ascending.sort_by(|a, b| a.1.max(0.0).total_cmp(&b.1.max(0.0)));
        Self(ascending)
    }
}

/// State that all replicates of a cohort share.
struct Evaluator<'a> {
    labels: &'a [bool],
    indices: &'a [u32],
    ranked: Vec<Ranked>,
    targets: Targets,
}

impl Evaluator<'_> {
    /// For each column the AUROC, then the true positive rate at each target, of a resample in which every sample
    /// occurs `counts` times; `None` if a class does not occur.
    fn values(&self, counts: &[u32]) -> Option<Box<[f64]>> {
        // Branch-free, since labels would be mispredicted half of the time.
        let by_class = |(members, all): (u64, u64), &index: &u32| {
            let count = u64::from(counts[index as usize]);
            (members + count * u64::from(self.labels[index as usize]), all + count)
        };
        let (members, all) = self.indices.iter().fold((0, 0), by_class);
        let non_members = all - members;
        if members == 0 || non_members == 0 {
            return None;
        }
        let targets = &self.targets.0;
        let budget = |&(_, fpr): &(usize, f64)| false_positive_budget(fpr, non_members as usize) as u64;
        let budgets: Vec<u64> = targets.iter().map(budget).collect();
        let mut reached = vec![0; budgets.len()];
        let mut values = vec![0.0; self.ranked.len() * (1 + targets.len())];
        for (ranked, values) in self.ranked.iter().zip(values.chunks_exact_mut(1 + targets.len())) {
            let twice_won = ranked.evaluate(counts, &budgets, &mut reached);
            values[0] = twice_won as f64 / (2 * members * non_members) as f64;
            for (&(target, _), &reached) in targets.iter().zip(&reached) {
                values[1 + target] = reached as f64 / members as f64;
            }
        }
        Some(values.into())
    }
}
