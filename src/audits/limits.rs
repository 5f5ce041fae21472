//! Limits of one audit, checked before it is accepted.

use super::columns::columns;
use super::request::AuditRequest;
use crate::datasets::SampleTotals;
use crate::jobs::JobError;

/// Maximum number of scores in one audit, samples times methods (and baselines): about 160 MB, and 80 MB more if all of them
/// are errors.
pub const MAX_SCORES: usize = 10_000_000;
/// Maximum number of scores that the replicates of one audit read: about half a minute on two cores.
const MAX_DRAWS: u64 = 40_000_000_000;
/// Maximum number of numbers that the replicates of one bootstrap keep: half a GB. Groups are resampled one after the other, so
/// they add nothing.
const MAX_NUMBERS: u64 = 1 << 26;
/// Cost of a sample besides its scores, counted in scores: texts, ids and errors.
const SCORES_OF_A_SAMPLE: usize = 16;
/// Maximum number of samples in an audit; with any method, more would exceed `MAX_SCORES`.
pub const MAX_SAMPLES: usize = MAX_SCORES / (SCORES_OF_A_SAMPLE + 1);
/// Cost of a group per replicate and method besides its samples, counted in scores read: 15 were measured.
const DRAWS_OF_A_GROUP: usize = 16;
/// Cost of a group's results per method and rate reported, counted in scores: the rate, its interval and its replicates.
const SCORES_OF_A_RATE: usize = 8;

/// Computes the memory that the audit's results take, counted in scores.
pub fn check_cost(request: &AuditRequest, totals: &SampleTotals) -> Result<usize, JobError> {
    let columns = columns(&request.methods).len();
    let SampleTotals { samples, groups, grouped, .. } = *totals;
    // The true-positive rates, and the AUROC.
    let rates = 1 + request.metrics.fpr_targets.len();

    let of_groups = groups.saturating_mul(columns).saturating_mul(rates).saturating_mul(SCORES_OF_A_RATE);
    let scored = if request.evidence.control.is_some() { 2 * columns } else { columns };
    let scores = samples.saturating_mul(scored + SCORES_OF_A_SAMPLE).saturating_add(of_groups);
    let scores = scores.saturating_add(request.metrics.option_cost(groups));
    if scores > MAX_SCORES {
        return Err(JobError::TooLarge(format!(
            "the audit asks for {scores} scores, samples times methods (16 more for each sample; 8 for each rate, method and group, \
             and for each position of a group's profile; 128 for each token listed); the limit is {MAX_SCORES}"
        )));
    }
    let replicates = request.metrics.bootstrap.as_ref().map_or(0, |bootstrap| bootstrap.replicates as u64);
    let replicated = replicates.saturating_mul(columns as u64);
    let looked_at = samples.saturating_add(grouped).saturating_add(groups.saturating_mul(rates + DRAWS_OF_A_GROUP));
    let draws = replicated.saturating_mul(looked_at as u64);
    if draws > MAX_DRAWS {
        return Err(JobError::TooLarge(format!(
            "the bootstrap would look at {draws} scores (replicates times samples times methods; a sample of a group counts twice, and \
             each group as one more sample for each rate asked for, and 1); the limit is {MAX_DRAWS}"
        )));
    }
    let numbers = replicated.saturating_mul(rates as u64);
    if numbers > MAX_NUMBERS {
        return Err(JobError::TooLarge(format!(
            "the bootstrap would keep {numbers} numbers (replicates times methods times rates asked for, and 1); the limit is {MAX_NUMBERS}"
        )));
    }
    Ok(scores)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::audits::fixtures::request;
    use crate::audits::request::AuditMetrics;
    use mia::statistics::Bootstrap;

    /// The cost of `samples` samples in `groups` groups; 0 for none.
    fn cost(samples: usize, groups: usize, replicates: usize) -> Result<usize, JobError> {
        let bootstrap = Some(Bootstrap { replicates, ..Bootstrap::default() });
        let request = request(AuditMetrics { bootstrap, ..AuditMetrics::default() });
        let grouped = if groups > 0 { samples } else { 0 };
        check_cost(&request, &SampleTotals { samples, groups, grouped, ..SampleTotals::default() })
    }

    #[test]
    fn groups_count_in_the_bounds() {
        // Eight methods, the baselines among them, and four rates.
        assert_eq!(cost(1_000, 0, 1).unwrap(), 1_000 * (8 + 16));
        assert_eq!(cost(1_000, 10, 1).unwrap(), 1_000 * (8 + 16) + 10 * 8 * 4 * 8);
        // A hundred times the samples, so that the draws are over the limit before the numbers are.
        let message = |groups| cost(100_000, groups, 100_000).unwrap_err().to_string();
        for (groups, draws) in [(0, 100_000_u64 * 8 * 100_000), (10, 100_000 * 8 * (2 * 100_000 + 10 * (4 + 16)))] {
            let message = message(groups);
            assert!(message.starts_with(&format!("the bootstrap would look at {draws} scores")), "{message}");
        }
    }

    #[test]
    fn an_audit_within_the_bounds_is_over_them_with_groups() {
        // 8 methods, 40,000 replicates: 100,000 samples are at most 40e9 draws alone, and twice that in groups.
        assert!(cost(100_000, 0, 40_000).is_ok());
        assert!(matches!(cost(100_000, 3, 40_000), Err(JobError::TooLarge(_))));
    }
}
