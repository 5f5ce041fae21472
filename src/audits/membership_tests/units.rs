//! The tests that compare a text with others of its unit: of a document, a canary or a shard. Pure.

use super::kind::UnitKind;
use super::measure::{EFFECT_CONFIDENCE, EffectMeasure, LEAST_P_VALUE_DRAWN, Measured, UnitEffect};
use crate::audits::evidence::{LEVEL, PERMUTATION_SEED, POWER};
use crate::audits::results::SampleScores;
use mia::statistics::{
    CanaryRank, DocumentScores, HypothesisError, ShardOrder, canary_rank, detectable_share, mean_estimate, order,
    publication_test,
};
use std::collections::HashSet;
use std::ops::Range;

/// The score of a unit's first text and those of the others.
pub type UnitScores = (f64, Vec<f64>);

/// The scores of the units, each text's by `score`. A unit is left out where one of its texts has no score.
pub fn unit_scores(
    units: &[Range<usize>],
    rows: &[SampleScores],
    score: impl Fn(&SampleScores) -> Option<f64>,
) -> Vec<UnitScores> {
    let scores = |unit: &Range<usize>| {
        let scores: Option<Vec<f64>> = rows.get(unit.clone())?.iter().map(&score).collect();
        let mut scores = scores?.into_iter();
        Some((scores.next()?, scores.collect()))
    };
    units.iter().filter_map(scores).collect()
}

/// The units whose first text no earlier one has, but for case and white space: the same text twice says no more than once.
pub fn distinct_units(units: Vec<Range<usize>>, rows: &[SampleScores]) -> Vec<Range<usize>> {
    let mut known = HashSet::new();
    let mut is_new = |row: &SampleScores| known.insert(row.normalized.unwrap_or(row.text));
    units.into_iter().filter(|unit| rows.get(unit.start).is_none_or(&mut is_new)).collect()
}

/// Tests the units; `left_out` is how many more there are.
pub fn test_units(
    kind: UnitKind,
    units: Vec<UnitScores>,
    left_out: usize,
    wanted: &dyn Fn() -> bool,
) -> Result<Measured, HypothesisError> {
    let measured = Measured { tested: units.len(), left_out, ..Measured::default() };
    match kind {
        UnitKind::Paired => paired(&units, measured, wanted),
        UnitKind::Rank => rank(&units, measured),
        UnitKind::Order => orders(units, measured),
    }
}

fn paired(
    units: &[UnitScores],
    mut measured: Measured,
    wanted: &dyn Fn() -> bool,
) -> Result<Measured, HypothesisError> {
    let document =
        |(published, private): &UnitScores| DocumentScores { published: *published, private: private.clone() };
    let documents: Vec<DocumentScores> = units.iter().map(document).collect();
    let test = publication_test(&documents, PERMUTATION_SEED, wanted)?;
    let least = if test.exact { 1.0 / test.permutations as f64 } else { LEAST_P_VALUE_DRAWN };
    measured.smallest_p_value = Some(least);
    measured.statistics.permutation = Some(test);
    let differences: Vec<f64> = documents.iter().map(DocumentScores::difference).collect();
    Ok(measured.with_differences(&differences, Some(test.p_value)))
}

fn rank(units: &[UnitScores], mut measured: Measured) -> Result<Measured, HypothesisError> {
    let ranks = units.iter().map(|(canary, twins)| CanaryRank::new(*canary, twins));
    let ranks: Vec<CanaryRank> = ranks.collect::<Result<_, _>>()?;
    let test = canary_rank(&ranks)?;
    let smallest = ranks.iter().map(|rank| 1.0 / (rank.twins as f64 + 1.0)).product();
    measured.smallest_p_value = Some(smallest);
    measured.p_value = Some(test.p_value);
    measured.statistics.canary_rank = Some(test);
    let shares: Vec<f64> = ranks.iter().filter_map(CanaryRank::share_above).collect();
    measured.effect = (!shares.is_empty()).then(|| UnitEffect::new(EffectMeasure::ShareOfTwins, &shares, test.p_value));
    measured.could_have_found = detectable_share(&ranks).filter(|_| smallest <= LEVEL);
    Ok(measured)
}

fn orders(units: Vec<UnitScores>, mut measured: Measured) -> Result<Measured, HypothesisError> {
    let shards: Vec<ShardOrder> =
        units.into_iter().map(|(canonical, shuffles)| ShardOrder { canonical, shuffles }).collect();
    let test = order(&shards)?;
    measured.smallest_p_value = match &*shards {
        [shard] => Some(1.0 / (shard.shuffles.len() as f64 + 1.0)),
        _ => None,
    };
    measured.statistics.order = Some(test);
    let mean = |scores: &[f64]| scores.iter().sum::<f64>() / scores.len() as f64;
    let differences: Vec<f64> = shards.iter().map(|shard| shard.canonical - mean(&shard.shuffles)).collect();
    Ok(measured.with_differences(&differences, test.p_value()))
}

impl Measured {
    /// Adds the effect that is the mean of differences, one for each document or shard.
    fn with_differences(mut self, differences: &[f64], p_value: Option<f64>) -> Self {
        self.p_value = p_value;
        self.effect = p_value.map(|p_value| UnitEffect::new(EffectMeasure::MeanDifference, differences, p_value));
        self.could_have_found = mean_estimate(differences, EFFECT_CONFIDENCE)
            .filter(|_| self.smallest_p_value.is_none_or(|smallest| smallest <= LEVEL))
            .and_then(|estimate| estimate.detectable(LEVEL, POWER));
        self
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::datasets::Sample;

    fn rows(scores: &[Option<f64>]) -> Vec<SampleScores> {
        let row = |score: &Option<f64>| SampleScores {
            scores: vec![None, *score],
            ..SampleScores::unknown(&Sample::default(), 2)
        };
        scores.iter().map(row).collect()
    }

    fn tested(kind: UnitKind, units: &[(f64, &[f64])]) -> Measured {
        let units = units.iter().map(|(first, others)| (*first, others.to_vec())).collect();
        test_units(kind, units, 0, &|| true).unwrap()
    }

    #[test]
    fn units_without_a_score_are_left_out() {
        let rows = rows(&[Some(1.0), Some(2.0), Some(3.0), None, Some(5.0), Some(6.0), Some(7.0)]);
        let units = [0..2, 2..4, 4..7, 7..9];
        let scores = |place: usize| unit_scores(&units, &rows, |row| *row.scores.get(place)?);
        assert_eq!(scores(1), [(1.0, vec![2.0]), (5.0, vec![6.0, 7.0])]);
        assert!(scores(0).is_empty());
        assert!(scores(2).is_empty());
    }

    #[test]
    fn a_unit_that_repeats_another_does_not_count() {
        let row = |text: &str| SampleScores::unknown(&Sample { text: text.to_owned(), ..Sample::default() }, 1);
        let rows = [row("a"), row("x"), row("b"), row("x"), row("a"), row("y")];
        assert_eq!(distinct_units(vec![0..2, 2..4, 4..6], &rows), [0..2, 2..4]);
        let equal = SampleScores { normalized: rows[0].normalized.or(Some(rows[0].text)), ..row("A") };
        assert_eq!(distinct_units(vec![0..1, 1..2], &[row("a"), equal]), vec![0..1]);
    }

    /// Differences of 1, 2 and 3, each the largest of its document: one of 3 * 2 * 4 choices reaches their sum.
    #[test]
    fn documents_are_compared_with_the_mean_of_their_private_texts() {
        let units: [(f64, &[f64]); 3] = [(2.0, &[0.5, 1.5]), (2.0, &[0.0]), (5.0, &[1.0, 2.0, 3.0])];
        let measured = tested(UnitKind::Paired, &units);
        assert_eq!(
            (measured.p_value, measured.smallest_p_value, measured.tested),
            (Some(1.0 / 24.0), Some(1.0 / 24.0), 3)
        );
        // Such a test shows nothing at level 0.01.
        assert_eq!(measured.could_have_found, None);
        let effect = measured.effect.unwrap();
        assert_eq!((effect.value, effect.null_value, effect.p_value), (2.0, 0.0, 1.0 / 24.0));
        assert!(effect.interval.unwrap()[0] < 0.0, "{effect:?}");
        assert_eq!(measured.statistics.permutation.map(|test| (test.mean, test.documents)), Some((2.0, 3)));
        let many: Vec<UnitScores> = (0..20).map(|_| (1.0, vec![0.0])).collect();
        let measured = test_units(UnitKind::Paired, many, 0, &|| true).unwrap();
        assert_eq!(measured.smallest_p_value, Some(1e-4));
        assert!(measured.p_value.unwrap() < 0.001);
        // Equal differences have no interval.
        assert_eq!((measured.effect.unwrap().interval, measured.could_have_found), (None, None));
    }

    #[test]
    fn canaries_are_ranked_among_their_twins() {
        let first = tested(UnitKind::Rank, &[(1.0, &[0.0, 0.5]), (3.0, &[1.0, 2.0, 2.5])]);
        assert_eq!(first.statistics.canary_rank.map(|test| (test.rank_sum, test.first)), Some((0, 2)));
        let (p_value, smallest) = (first.p_value.unwrap(), first.smallest_p_value.unwrap());
        assert!((p_value - 1.0 / 12.0).abs() < 1e-15 && (smallest - 1.0 / 12.0).abs() < 1e-15, "{first:?}");
        let share = first.effect.unwrap();
        assert_eq!((share.measure, share.value, share.interval), (EffectMeasure::ShareOfTwins, 1.0, None));
        assert_eq!(first.could_have_found, None);
        let second = tested(UnitKind::Rank, &[(1.0, &[2.0, 0.0])]);
        assert!((second.p_value.unwrap() - 2.0 / 3.0).abs() < 1e-15);
    }

    #[test]
    fn a_single_shard_has_the_rank_of_its_order_and_several_a_t() {
        let one = tested(UnitKind::Order, &[(1.0, &[0.0, 0.0, 2.0])]);
        assert_eq!((one.p_value, one.smallest_p_value), (Some(0.5), Some(0.25)));
        let two = tested(UnitKind::Order, &[(1.0, &[0.0]), (2.0, &[0.0])]);
        assert_eq!((two.smallest_p_value, two.p_value), (None, two.statistics.order.unwrap().t.map(|t| t.p_value)));
        assert!(two.p_value.unwrap() < 0.2);
        assert_eq!(tested(UnitKind::Order, &[(1.0, &[0.0]), (1.0, &[0.0])]).p_value, None);
    }

    #[test]
    fn nothing_is_no_test() {
        for kind in [UnitKind::Paired, UnitKind::Rank, UnitKind::Order] {
            assert!(test_units(kind, Vec::new(), 3, &|| true).is_err(), "{kind:?}");
        }
    }
}
