//! Sums over the samples of an audit, in the order of the samples.

use super::metric_options::ProfileOptions;
use super::profiles::AuditProfiles;
use super::sample::Sample;
use crate::engine::Stats;
use std::collections::BTreeMap;

/// Position profiles to which samples are added in their own order, whatever the order they come in: sums of `f64` depend on
/// it, and a report must not depend on the time at which its samples were done.
pub struct OrderedProfile<'a> {
    samples: &'a [Sample],
    profiles: AuditProfiles,
    /// The first sample that was not added.
    next: usize,
    /// Samples that came before an earlier one.
    waiting: BTreeMap<usize, Stats>,
}

impl<'a> OrderedProfile<'a> {
    /// Empty profiles of these samples.
    pub fn new(samples: &'a [Sample], options: ProfileOptions) -> Self {
        Self { samples, profiles: AuditProfiles::new(options), next: 0, waiting: BTreeMap::new() }
    }

    /// Adds the statistics of the sample at this place, none where it could not be run.
    pub fn add(&mut self, row: usize, stats: Stats) {
        self.waiting.insert(row, stats);
        while let Some(stats) = self.waiting.remove(&self.next) {
            let sample = &self.samples[self.next];
            self.profiles.add(sample.is_member(), sample.group.as_deref(), &stats);
            self.next += 1;
        }
    }

    /// The profiles of the samples up to the first that was not added.
    pub fn finish(self) -> AuditProfiles {
        self.profiles
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::audits::sample::Label;
    use crate::token_stats::TokenStats;

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
        let samples: Vec<Sample> = (0..500).map(sample).collect();
        let folded = |order: &mut dyn Iterator<Item = usize>| {
            let mut profile = OrderedProfile::new(&samples, ProfileOptions::default());
            order.for_each(|row| profile.add(row, stats(row)));
            assert!(profile.waiting.is_empty());
            profile.finish()
        };
        let expected = folded(&mut (0..500));
        assert!(expected == folded(&mut (0..500).rev()));
        // 7 and 500 have no common divisor, so that every sample comes once.
        assert!(expected == folded(&mut (0..500).map(|step| step * 7 % 500)));
        // The sums themselves do depend on the order.
        let mut unordered = AuditProfiles::default();
        (0..500).rev().for_each(|row| unordered.add(samples[row].is_member(), None, &stats(row)));
        assert!(expected != unordered);
    }
}
