//! The columns that are resampled together, since they score the same samples.

use super::BootstrapColumn;
use super::draws::Draws;
use super::ranked::Ranked;
use super::summary::Replicates;
use crate::statistics::false_positive_budget;
use rayon::prelude::*;

/// How many replicates are handed to rayon at once; in between it is asked whether they are still wanted.
const BLOCK: usize = 64;

/// Samples that are drawn from, and what is wanted of their replicates.
pub(super) struct Cohort {
    /// For each sample whether it can be drawn.
    scored: Vec<bool>,
    /// The columns to walk; a replicate has their values in this order.
    pub columns: Vec<usize>,
    /// Columns that score exactly these samples.
    pub summaries: Vec<usize>,
    /// Columns and their baselines that share exactly these samples.
    pub pairs: Vec<(usize, usize)>,
}

impl Cohort {
    /// The cohorts of `columns`: one for each distinct set of samples that a column scores, or that a column and its
    /// baseline both score.
    pub fn all(labels: &[bool], columns: &[BootstrapColumn]) -> Vec<Self> {
        let scored = |column: &BootstrapColumn| -> Vec<bool> {
            let finite = |place| column.scores.get(place).copied().flatten().is_some_and(f64::is_finite);
            (0..labels.len()).map(finite).collect()
        };
        let masks: Vec<Vec<bool>> = columns.iter().map(scored).collect();
        let mut cohorts = Vec::new();
        for (at, column) in columns.iter().enumerate() {
            let own = Self::of(&mut cohorts, masks[at].clone(), &[at]);
            own.summaries.push(at);
            if let Some(base) = column.baseline.filter(|&base| base < columns.len()) {
                let both = masks[at].iter().zip(&masks[base]).map(|(a, b)| a & b).collect();
                Self::of(&mut cohorts, both, &[at, base]).pairs.push((at, base));
            }
        }
        cohorts
    }

    /// The cohort of `scored`, made if there is none, with `columns` among those it walks.
    fn of<'a>(cohorts: &'a mut Vec<Self>, scored: Vec<bool>, columns: &[usize]) -> &'a mut Self {
        let found = cohorts.iter().position(|cohort| cohort.scored == scored).unwrap_or(cohorts.len());
        if found == cohorts.len() {
            cohorts.push(Self { scored, columns: Vec::new(), summaries: Vec::new(), pairs: Vec::new() });
        }
        let cohort = &mut cohorts[found];
        for column in columns {
            if !cohort.columns.contains(column) {
                cohort.columns.push(*column);
            }
        }
        cohort
    }

    /// The values of every replicate, and those of the samples as they are.
    pub fn replicates(
        &self,
        labels: &[bool],
        columns: &[BootstrapColumn],
        fpr_targets: &[f64],
        draws: &Draws,
        wanted: &dyn Fn() -> bool,
    ) -> Replicates {
        let places: Vec<u32> = (0..).zip(&self.scored).filter(|(_, scored)| **scored).map(|(place, _)| place).collect();
        let ranked = self.columns.iter().map(|&at| Ranked::new(labels, columns[at].scores, &places)).collect();
        let walker = Walker { labels, places: &places, ranked, targets: Targets::new(fpr_targets) };
        let key = draws.key(&self.scored);
        let scratch = || vec![0; labels.len()];
        let row = |counts: &mut Vec<u32>, replicate| {
            draws.count(replicate, key, &places, counts);
            walker.values(counts)
        };
        let mut rows = Vec::with_capacity(draws.replicates());
        while rows.len() < draws.replicates() && wanted() {
            let block = rows.len()..draws.replicates().min(rows.len() + BLOCK);
            rows.par_extend(block.into_par_iter().map_init(scratch, row));
        }
        let observed = walker.values(&vec![1; labels.len()]);
        Replicates { rows, observed, targets: fpr_targets.len() }
    }
}

/// The bounds on the false positive rate in ascending order, and where each stands among those asked for.
struct Targets(Vec<(usize, f64)>);

impl Targets {
    fn new(asked: &[f64]) -> Self {
        let mut ascending: Vec<(usize, f64)> = asked.iter().copied().enumerate().collect();
        // What is no number allows no false positive, as 0 does.
        ascending.sort_by(|a, b| a.1.max(0.0).total_cmp(&b.1.max(0.0)));
        Self(ascending)
    }
}

/// All that the replicates of a cohort share.
struct Walker<'a> {
    labels: &'a [bool],
    places: &'a [u32],
    ranked: Vec<Ranked>,
    targets: Targets,
}

impl Walker<'_> {
    /// For each column the AUROC, then the true positive rate at each target, of samples that are there `counts`
    /// times; `None` if a class is not there.
    fn values(&self, counts: &[u32]) -> Option<Box<[f64]>> {
        // Without a branch, which labels would mispredict half of the time.
        let by_class = |(members, all): (u64, u64), &place: &u32| {
            let count = u64::from(counts[place as usize]);
            (members + count * u64::from(self.labels[place as usize]), all + count)
        };
        let (members, all) = self.places.iter().fold((0, 0), by_class);
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
            let twice_won = ranked.walk(counts, &budgets, &mut reached);
            values[0] = twice_won as f64 / (2 * members * non_members) as f64;
            for (&(asked, _), &reached) in targets.iter().zip(&reached) {
                values[1 + asked] = reached as f64 / members as f64;
            }
        }
        Some(values.into())
    }
}
