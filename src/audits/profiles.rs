//! The position profiles of an audit: of all texts, of those that reach the positions asked for, and of each group.

use super::request::{MOST_GROUP_POSITIONS, MOST_POSITIONS, ProfileOptions};
use super::results::SampleScores;
use crate::engine::Stats;
use mia::TokenStats;
use mia::statistics::{PositionProfile, PositionRows, PriorTestSums};
use std::collections::BTreeMap;

/// Sums by position, to which the texts are added in the order of the samples.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct AuditProfiles {
    options: ProfileOptions,
    /// Of all texts, whatever the options: the weights of `entropy_dataset` come from it.
    all: PositionProfile,
    /// Of the texts that reach every position asked for.
    full_length: PositionProfile,
    /// By group.
    groups: BTreeMap<String, GroupProfile>,
}

/// The profile of a group, with no more positions than are listed.
#[derive(Clone, Debug, Default, PartialEq)]
struct GroupProfile {
    profile: PositionProfile,
    /// The positions of its longest text.
    longest: usize,
}

impl AuditProfiles {
    pub fn new(options: ProfileOptions) -> Self {
        Self { options, ..Self::default() }
    }

    /// Adds the scored tokens of a text, which may have a label and a group.
    pub fn add(&mut self, member: Option<bool>, group: Option<&str>, tokens: &[TokenStats]) {
        self.all.add(member, tokens);
        let covered = match self.options.positions {
            None => tokens,
            Some(positions) => tokens.get(..positions).unwrap_or_default(),
        };
        if self.options.positions.is_some() {
            self.full_length.add(member, covered);
        }
        if let Some(group) = group.filter(|_| self.options.by_group) {
            let group = self.groups.entry(group.to_owned()).or_default();
            group.profile.add(member, &covered[..covered.len().min(MOST_GROUP_POSITIONS)]);
            group.longest = group.longest.max(covered.len());
        }
    }

    /// The mean entropy at each position over all texts that reach it, in nats.
    pub fn mean_entropy(&self) -> Vec<f64> {
        self.all.mean_entropy()
    }

    /// The rows of the profile asked for.
    pub fn rows(&self) -> PositionRows {
        let profile = if self.options.positions.is_some() { &self.full_length } else { &self.all };
        profile.rows(MOST_POSITIONS)
    }

    /// The rows of each group, where they were asked for.
    pub fn group_rows(&self) -> BTreeMap<String, PositionRows> {
        let rows = |group: &GroupProfile| {
            let PositionRows { rows, .. } = group.profile.rows(MOST_GROUP_POSITIONS);
            PositionRows { left_out: group.longest - rows.len(), rows }
        };
        self.groups.iter().map(|(name, group)| (name.clone(), rows(group))).collect()
    }
}

/// Position profiles to which samples are added in their own order, whatever the order they come in: sums of `f64` depend on
/// it, and a report must not depend on the time at which its samples were done.
pub struct OrderedProfile {
    profiles: AuditProfiles,
    prior: PriorTestSums,
    /// The first sample that was not added.
    next: usize,
    /// Statistics of samples that came before an earlier one.
    waiting: BTreeMap<usize, Stats>,
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

    /// Adds the statistics of one of `rows`; they are empty if it could not be run.
    pub fn add(&mut self, row: usize, rows: &[SampleScores], stats: Stats) {
        self.waiting.insert(row, stats);
        while let Some(stats) = self.waiting.remove(&self.next) {
            let SampleScores { member, cluster, group, .. } = &rows[self.next];
            self.profiles.add(*member, group.as_deref(), &stats);
            if let (&Some(member), &Some(cluster)) = (member, cluster) {
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
    use crate::audits::fixtures;
    use mia::statistics::PositionMeans;

    fn text(lps: &[f64]) -> Vec<TokenStats> {
        lps.iter().map(|&lp| TokenStats { lp, mu: -1.0, var: 1.0, max_lp: -0.5 }).collect()
    }

    fn profiles(options: ProfileOptions) -> AuditProfiles {
        let mut profiles = AuditProfiles::new(options);
        profiles.add(Some(true), Some("a"), &text(&[-1.0, -2.0, -3.0]));
        profiles.add(Some(true), Some("b"), &text(&[-5.0]));
        profiles.add(Some(false), Some("a"), &text(&[-2.0, -4.0]));
        profiles.add(Some(false), None, &[]);
        profiles
    }

    /// Position, count and mean of the members, and of the non-members.
    fn means(rows: &PositionRows) -> Vec<[Option<(usize, f64)>; 2]> {
        let pair = |means: Option<PositionMeans>| means.map(|means| (means.count, means.mean_lp));
        rows.rows.iter().map(|row| [pair(row.members), pair(row.non_members)]).collect()
    }

    #[test]
    fn by_default_there_is_one_profile_of_all_texts() {
        let profiles = profiles(ProfileOptions::default());
        let expected =
            [[Some((2, -3.0)), Some((1, -2.0))], [Some((1, -2.0)), Some((1, -4.0))], [Some((1, -3.0)), None]];
        assert_eq!(means(&profiles.rows()), expected);
        assert!(profiles.group_rows().is_empty());
    }

    #[test]
    fn texts_that_reach_every_position() {
        let profiles = profiles(ProfileOptions { by_group: true, positions: Some(2) });
        let expected = [[Some((1, -1.0)), Some((1, -2.0))], [Some((1, -2.0)), Some((1, -4.0))]];
        assert_eq!(means(&profiles.rows()), expected);
        assert_eq!(profiles.rows().left_out, 0);
        let groups = profiles.group_rows();
        assert_eq!(means(&groups["a"]), expected);
        // No text of the group is long enough.
        assert_eq!(groups["b"], PositionRows { rows: Vec::new(), left_out: 0 });
        // The weights of `entropy_dataset` are of all texts.
        assert_eq!(profiles.mean_entropy().len(), 3);
    }

    #[test]
    fn the_profile_of_a_group_is_bounded() {
        let mut profiles = AuditProfiles::new(ProfileOptions { by_group: true, positions: None });
        profiles.add(None, Some("long"), &text(&vec![-1.0; MOST_GROUP_POSITIONS + 5]));
        profiles.add(None, Some("short"), &text(&[-1.0]));
        let groups = profiles.group_rows();
        assert_eq!((groups["long"].rows.len(), groups["long"].left_out), (MOST_GROUP_POSITIONS, 5));
        assert_eq!((groups["short"].rows.len(), groups["short"].left_out), (1, 0));
    }

    fn stats(row: usize) -> Stats {
        let noise = |t: usize| ((row * 7919 + t * 104_729) % 1009) as f64 / 99.0;
        let token = |t| TokenStats { lp: -noise(t), mu: -noise(t + 1), var: 1.0, max_lp: -0.5 };
        (0..1 + row % 13).map(token).collect()
    }

    #[test]
    fn the_bits_do_not_depend_on_the_order_of_arrival() {
        let sample = |row: usize| fixtures::row("", row.is_multiple_of(3), Vec::new());
        let samples: Vec<SampleScores> = (0..500).map(sample).collect();
        let folded = |order: &mut dyn Iterator<Item = usize>| {
            let mut profile = OrderedProfile::new(ProfileOptions::default());
            order.for_each(|row| profile.add(row, &samples, stats(row)));
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
