//! Comparisons that must find nothing: between groups of texts that were not trained on.

use super::CONFIDENCE;
use mia::statistics::{PairedScore, delong};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// Minimum number of non-members in a group that is compared.
const FEWEST: usize = 50;
/// Maximum number of groups that are compared with each other, the largest ones: 28 pairs.
const MOST_GROUPS: usize = 8;
/// The difference to the control where there is nothing to find: two groups of non-members in place of the two classes.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct NegativeControl {
    pub groups: [String; 2],
    /// AUROC between the groups minus that under the control.
    pub difference: f64,
    /// Together with those of the other negative controls at a confidence of 0.95 (Bonferroni). Absent without a standard error.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub interval: Option<[f64; 2]>,
}

impl NegativeControl {
    /// True if the interval contains 0; without an interval, if the difference is 0.
    #[must_use]
    pub fn holds(&self) -> bool {
        self.interval.map_or(self.difference == 0.0, |[low, high]| low <= 0.0 && 0.0 <= high)
    }
}

/// A non-member that has a group and a score.
#[derive(Clone, Copy, Debug)]
pub struct NegativeControlSample<'a> {
    pub group: &'a str,
    pub cluster: usize,
    pub control: f64,
    pub target: f64,
}

/// The differences between the groups of these non-members that are large enough.
#[must_use]
pub fn negative_controls(samples: &[NegativeControlSample]) -> Vec<NegativeControl> {
    let groups = large_groups(samples);
    let pairs: Vec<(&str, &str)> =
        groups.iter().enumerate().flat_map(|(place, &a)| groups[place + 1..].iter().map(move |&b| (a, b))).collect();
    let confidence = 1.0 - (1.0 - CONFIDENCE) / pairs.len().max(1) as f64;
    pairs.into_iter().filter_map(|(a, b)| negative_control(samples, a, b, confidence)).collect()
}

/// The largest groups, in the order in which they appear.
fn large_groups<'a>(samples: &[NegativeControlSample<'a>]) -> Vec<&'a str> {
    let mut counts = indexmap::IndexMap::<&str, usize>::new();
    for sample in samples {
        *counts.entry(sample.group).or_default() += 1;
    }
    let mut sizes: Vec<usize> = counts.values().copied().filter(|count| *count >= FEWEST).collect();
    sizes.sort_unstable_by(|a, b| b.cmp(a));
    let smallest = sizes.get(MOST_GROUPS - 1).copied().unwrap_or(FEWEST);
    counts.into_iter().filter(|(_, count)| *count >= smallest).map(|(group, _)| group).take(MOST_GROUPS).collect()
}

fn negative_control(samples: &[NegativeControlSample], a: &str, b: &str, confidence: f64) -> Option<NegativeControl> {
    let both: Vec<&NegativeControlSample> =
        samples.iter().filter(|sample| sample.group == a || sample.group == b).collect();
    let paired = |sample: &&NegativeControlSample| PairedScore {
        member: sample.group == a,
        first: sample.control,
        second: sample.target,
    };
    let clusters: Vec<usize> = both.iter().map(|sample| sample.cluster).collect();
    let scores: Vec<PairedScore> = both.iter().map(paired).collect();
    let difference = delong(&scores, &clusters, confidence).ok()?;
    Some(NegativeControl {
        groups: [a.to_owned(), b.to_owned()],
        difference: difference.delta,
        interval: difference.interval,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn samples(groups: &[(&'static str, usize, f64)]) -> Vec<NegativeControlSample<'static>> {
        let group = |&(group, count, shift): &(&'static str, usize, f64)| {
            (0..count).map(move |place| {
                let noise = (place * 7919 % 101) as f64 / 100.0;
                NegativeControlSample { group, cluster: 0, control: noise, target: noise + shift }
            })
        };
        let mut samples: Vec<NegativeControlSample> = groups.iter().flat_map(group).collect();
        samples.iter_mut().enumerate().for_each(|(place, sample)| sample.cluster = place);
        samples
    }

    #[test]
    fn groups_of_fifty_are_compared_and_a_shift_between_them_shows() {
        let compared = negative_controls(&samples(&[("a", 60, 0.0), ("b", 49, 0.0), ("c", 80, 0.4)]));
        assert_eq!(compared.len(), 1);
        assert_eq!(compared[0].groups, ["a".to_owned(), "c".to_owned()]);
        assert!(compared[0].difference < -0.2 && !compared[0].holds(), "{compared:?}");
        let same = negative_controls(&samples(&[("a", 60, 0.0), ("c", 80, 0.0)]));
        assert!(same[0].difference == 0.0 && same[0].holds(), "{same:?}");
    }

    #[test]
    fn more_negative_controls_have_wider_intervals() {
        let width = |groups: &[(&'static str, usize, f64)]| {
            let compared = negative_controls(&samples(groups));
            let [low, high] = compared[0].interval.unwrap();
            high - low
        };
        let two = [("a", 60, 0.0), ("b", 60, 0.1)];
        let three = [two[0], two[1], ("c", 60, 0.2)];
        assert!(width(&three) > 1.1 * width(&two));
        let names = ["0", "1", "2", "3", "4", "5", "6", "7", "8", "9"];
        let ten: Vec<_> = names.iter().map(|&name| (name, 60, 0.0)).collect();
        assert_eq!(negative_controls(&samples(&ten)).len(), 28);
    }
}
