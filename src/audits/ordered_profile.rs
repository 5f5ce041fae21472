//! Sums over the samples of an audit, in the order of the samples.

use super::metric_options::ProfileOptions;
use super::profiles::AuditProfiles;
use super::results::SampleScores;
use crate::engine::Stats;
use mia::statistics::PriorTestSums;
use std::collections::BTreeMap;

/// Position profiles to which samples are added in their own order, whatever the order they come in: sums of `f64` depend on
/// it, and a report must not depend on the time at which its samples were done.
pub struct OrderedProfile {
    profiles: AuditProfiles,
    prior: PriorTestSums,
    /// The first sample that was not added.
    next: usize,
    /// Samples that came before an earlier one.
    waiting: BTreeMap<usize, WaitingSample>,
}

/// The parts of a sample that a profile needs.
struct WaitingSample {
    member: Option<bool>,
    cluster: Option<usize>,
    group: Option<String>,
    stats: Stats,
}

impl OrderedProfile {
    pub fn new(options: ProfileOptions) -> Self {
        Self {
            profiles: AuditProfiles::new(options),
            prior: PriorTestSums::default(),
            next: 0,
            waiting: BTreeMap::new(),
        }
    }

    /// Adds the statistics of the sample at this place; they are empty if it could not be run.
    pub fn add(&mut self, row: usize, sample: &SampleScores, stats: Stats) {
        let SampleScores { member, cluster, group, .. } = sample;
        let sample = WaitingSample { member: *member, cluster: *cluster, group: group.clone(), stats };
        self.waiting.insert(row, sample);
        while let Some(WaitingSample { member, cluster, group, stats }) = self.waiting.remove(&self.next) {
            self.profiles.add(member, group.as_deref(), &stats);
            if let (Some(member), Some(cluster)) = (member, cluster) {
                self.prior.add(member, cluster, &stats);
            }
            self.next += 1;
        }
    }

    /// The profiles of the samples up to the first that was not added, and what the test of PDR's prior needs of them.
    pub fn finish(self) -> (AuditProfiles, PriorTestSums) {
        (self.profiles, self.prior)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::datasets::{Label, Sample};
    use mia::TokenStats;

    fn stats(row: usize) -> Stats {
        let noise = |t: usize| ((row * 7919 + t * 104_729) % 1009) as f64 / 99.0;
        let token = |t| TokenStats { lp: -noise(t), mu: -noise(t + 1), var: 1.0, max_lp: -0.5 };
        (0..1 + row % 13).map(token).collect()
    }

    #[test]
    fn the_bits_do_not_depend_on_the_order_of_arrival() {
        let sample = |row: usize| Sample {
            label: Some(if row.is_multiple_of(3) { Label::MEMBER } else { Label::NON_MEMBER }),
            ..Sample::default()
        };
        let samples: Vec<SampleScores> = (0..500).map(|row| SampleScores::unknown(&sample(row), 0)).collect();
        let folded = |order: &mut dyn Iterator<Item = usize>| {
            let mut profile = OrderedProfile::new(ProfileOptions::default());
            order.for_each(|row| profile.add(row, &samples[row], stats(row)));
            assert!(profile.waiting.is_empty());
            profile.finish()
        };
        let expected = folded(&mut (0..500));
        assert!(expected == folded(&mut (0..500).rev()));
        // 7 and 500 have no common divisor, so that every sample comes once.
        assert!(expected == folded(&mut (0..500).map(|step| step * 7 % 500)));
        // The sums themselves do depend on the order.
        let mut unordered = AuditProfiles::default();
        (0..500).rev().for_each(|row| unordered.add(samples[row].member, None, &stats(row)));
        assert!(expected.0 != unordered);
    }
}
