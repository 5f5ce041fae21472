//! Mean log-probability and entropy at each position of the texts: members have lower surprisal, most visibly at the
//! start.

use crate::TokenStats;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// Sums over the samples of an audit, by position and class.
///
/// The sums are `f64` and accumulated in the order of the samples, so that another order changes the means by rounding
/// at most. A token with a log-probability that is not finite is omitted and not counted; an entropy that is not known, or not finite,
/// is left out of the mean entropy alone.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct PositionProfile {
    members: Vec<Sums>,
    non_members: Vec<Sums>,
    unlabelled: Vec<Sums>,
}

/// The tokens of one class at one position.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct Sums {
    count: usize,
    lp: f64,
    /// Running mean and sum of squared deviations of the log-probabilities, by Welford 1962.
    running_mean: f64,
    squares: f64,
    /// Tokens with an entropy.
    entropies: usize,
    entropy: f64,
}

/// The first rows of a profile.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct PositionRows {
    /// From position 1, without gaps.
    pub rows: Vec<PositionRow>,
    /// The number of positions after the last row.
    pub left_out: usize,
}

/// The means of the scored tokens at one position; a class without tokens there is absent.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct PositionRow {
    /// From 1, the first scored token.
    pub position: usize,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub members: Option<PositionMeans>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub non_members: Option<PositionMeans>,
    /// Texts without a label.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub all: Option<PositionMeans>,
}

/// Means over the tokens at one position, in nats.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct PositionMeans {
    /// The number of tokens.
    pub count: usize,
    /// Mean log-probability of the observed tokens.
    pub mean_lp: f64,
    /// Standard error of `mean_lp`, with the texts taken as independent; absent for a single token.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub standard_error_lp: Option<f64>,
    /// Mean entropy of the model's distribution; absent where the model does not give it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mean_entropy: Option<f64>,
}

impl PositionProfile {
    /// Adds the scored tokens of one text; `member` is its label, if it has one.
    pub fn add(&mut self, member: Option<bool>, tokens: &[TokenStats]) {
        let sums = match member {
            Some(true) => &mut self.members,
            Some(false) => &mut self.non_members,
            None => &mut self.unlabelled,
        };
        if sums.len() < tokens.len() {
            sums.resize(tokens.len(), Sums::default());
        }
        for (sums, token) in sums.iter_mut().zip(tokens) {
            let (lp, entropy) = (token.lp, token.entropy());
            if lp.is_finite() {
                (sums.count, sums.lp) = (sums.count + 1, sums.lp + lp);
                let deviation = lp - sums.running_mean;
                sums.running_mean += deviation / sums.count as f64;
                sums.squares += deviation * (lp - sums.running_mean);
                if entropy.is_finite() {
                    (sums.entropies, sums.entropy) = (sums.entropies + 1, sums.entropy + entropy);
                }
            }
        }
    }

    /// One row for each position up to the length of the longest text, but at most `most`.
    pub fn rows(&self, most: usize) -> PositionRows {
        let means = |sums: &[Sums], index: usize| sums.get(index).and_then(Sums::means);
        let row = |index: usize| PositionRow {
            position: index + 1,
            members: means(&self.members, index),
            non_members: means(&self.non_members, index),
            all: means(&self.unlabelled, index),
        };
        let listed = self.positions().min(most);
        PositionRows { rows: (0..listed).map(row).collect(), left_out: self.positions() - listed }
    }

    /// The mean entropy at each position over all texts that reach it, labelled or not, in nats; 0 if every token was
    /// omitted.
    pub fn mean_entropy(&self) -> Vec<f64> {
        let mean = |index: usize| {
            let sums = self.classes().into_iter().filter_map(|class| class.get(index));
            let (count, entropy) = sums.fold((0, 0.0), |(count, sum), s| (count + s.entropies, sum + s.entropy));
            if count == 0 { 0.0 } else { entropy / count as f64 }
        };
        (0..self.positions()).map(mean).collect()
    }

    fn positions(&self) -> usize {
        self.classes().into_iter().map(Vec::len).max().unwrap_or(0)
    }

    fn classes(&self) -> [&Vec<Sums>; 3] {
        [&self.members, &self.non_members, &self.unlabelled]
    }
}

impl Sums {
    fn means(&self) -> Option<PositionMeans> {
        let count = self.count as f64;
        (self.count > 0).then(|| PositionMeans {
            count: self.count,
            mean_lp: self.lp / count,
            standard_error_lp: (self.count > 1).then(|| (self.squares / (count - 1.0) / count).sqrt()),
            mean_entropy: (self.entropies > 0).then(|| self.entropy / self.entropies as f64),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn token(lp: f64, entropy: f64) -> TokenStats {
        TokenStats { lp, mu: -entropy, var: 1.0, max_lp: -0.5 }
    }

    fn means(count: usize, mean_lp: f64, standard_error_lp: Option<f64>, mean_entropy: f64) -> Option<PositionMeans> {
        Some(PositionMeans { count, mean_lp, standard_error_lp, mean_entropy: Some(mean_entropy) })
    }

    #[test]
    fn means_by_position_and_class() {
        let mut profile = PositionProfile::default();
        profile.add(Some(true), &[token(-1.0, 4.0), token(-2.0, 3.0)]);
        profile.add(Some(true), &[token(-2.0, 5.0)]);
        profile.add(Some(false), &[token(-4.0, 6.0), token(-3.0, 1.0), token(-5.0, 2.0)]);
        profile.add(Some(false), &[]);
        let row = |position, members, non_members| PositionRow { position, members, non_members, all: None };
        let expected = [
            row(1, means(2, -1.5, Some(0.5), 4.5), means(1, -4.0, None, 6.0)),
            row(2, means(1, -2.0, None, 3.0), means(1, -3.0, None, 1.0)),
            row(3, None, means(1, -5.0, None, 2.0)),
        ];
        assert_eq!(profile.rows(9), PositionRows { rows: expected.to_vec(), left_out: 0 });
        assert_eq!(profile.rows(2), PositionRows { rows: expected[..2].to_vec(), left_out: 1 });
        assert_eq!(profile.rows(0), PositionRows { rows: Vec::new(), left_out: 3 });
        assert_eq!(profile.mean_entropy(), [5.0, 2.0, 2.0]);
    }

    #[test]
    fn tokens_that_are_not_finite_are_not_counted() {
        let mut profile = PositionProfile::default();
        profile.add(None, &[token(f64::NAN, 1.0), token(-1.0, 2.0), token(f64::NEG_INFINITY, 3.0)]);
        profile.add(None, &[token(-3.0, 7.0), token(-1.0, f64::INFINITY)]);
        let row = |position, all| PositionRow { position, members: None, non_members: None, all };
        let expected = [row(1, means(1, -3.0, None, 7.0)), row(2, means(2, -1.0, Some(0.0), 2.0)), row(3, None)];
        assert_eq!(profile.rows(9).rows, expected);
        assert_eq!(profile.mean_entropy(), [7.0, 2.0, 0.0]);
    }

    #[test]
    fn a_model_without_entropies_has_a_profile_of_log_probabilities() {
        let mut profile = PositionProfile::default();
        profile.add(None, &[token(-1.0, f64::NAN), token(-2.0, f64::NAN)]);
        let json = serde_json::to_string(&profile.rows(1).rows).expect("JSON");
        assert_eq!(json, r#"[{"position":1,"all":{"count":1,"mean_lp":-1.0}}]"#);
    }

    #[test]
    fn without_texts_there_are_no_rows() {
        let profile = PositionProfile::default();
        assert_eq!(profile.rows(9), PositionRows { rows: Vec::new(), left_out: 0 });
        assert!(profile.mean_entropy().is_empty());
    }

    #[test]
    fn the_order_of_texts_changes_rounding_at_most() {
        let text = |seed: usize| -> Vec<TokenStats> {
            let noise = |t: usize| ((seed * 7919 + t * 104_729) % 1009) as f64 / 100.0;
            (0..1 + seed % 13).map(|t| token(-noise(t), noise(t + 1))).collect()
        };
        let profile_of = |order: &mut dyn Iterator<Item = usize>| {
            let mut profile = PositionProfile::default();
            order.for_each(|seed| profile.add(Some(seed % 2 == 0), &text(seed)));
            profile
        };
        let (forward, backward) = (profile_of(&mut (0..500)), profile_of(&mut (0..500).rev()));
        for (a, b) in forward.rows(99).rows.iter().zip(backward.rows(99).rows) {
            let (a, b) = (a.members.expect("a member"), b.members.expect("a member"));
            assert_eq!(a.count, b.count);
            // Five hundred additions of numbers up to 10 have rounding errors of less than 1e-12 each.
            let entropies = a.mean_entropy.zip(b.mean_entropy).expect("entropies");
            assert!((a.mean_lp - b.mean_lp).abs() < 1e-12 && (entropies.0 - entropies.1).abs() < 1e-12);
        }
    }

    #[test]
    fn rows_as_clients_see_them() {
        let mut profile = PositionProfile::default();
        profile.add(Some(false), &[token(-1.0, 2.0)]);
        let json = serde_json::to_string(&profile.rows(1).rows).expect("JSON");
        let expected = r#"[{"position":1,"non_members":{"count":1,"mean_lp":-1.0,"mean_entropy":2.0}}]"#;
        assert_eq!(json, expected);
    }
}
