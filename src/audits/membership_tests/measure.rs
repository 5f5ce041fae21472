//! The measurements of one method in a test.

use super::layout::UnitKind;
use crate::audits::clusters::list_scores;
use crate::audits::evidence::{LEVEL, PERMUTATION_SEED, POWER};
use crate::audits::results::SampleScores;
use mia::statistics::{
    CanaryRank, CanaryRankTest, ClusterScores, ClusteredTexts, DocumentScores, HypothesisError, MannWhitney, OrderTest,
    PublicationTest, ShardOrder, TTest, canary_rank, detectable_share, mann_whitney, mean_estimate, order,
    publication_test, welch,
};
use serde::Serialize;
use std::collections::HashSet;
use std::ops::Range;
use utoipa::ToSchema;

/// The smallest p-value of a test that draws 9,999 permutations.
const LEAST_P_VALUE_DRAWN: f64 = 1e-4;

/// The confidence of the interval of an effect.
const EFFECT_CONFIDENCE: f64 = 0.99;

/// The measurements of one method in a test.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Measured {
    pub statistics: TestStatistics,
    /// Clusters, documents, canaries or shards that are compared.
    pub tested: usize,
    pub p_value: Option<f64>,
    /// The smallest p-value that this many can give; `None` if there is no bound.
    pub smallest_p_value: Option<f64>,
    /// Effect size of the published texts over the others; `None` for `dataset`.
    pub effect: Option<UnitEffect>,
    /// The smallest effect that this many show at level 0.01 with a power of 0.8; `None` for `dataset`, and if no effect
    /// could be shown.
    pub could_have_found: Option<f64>,
}

/// The statistics of the kind of test.
#[derive(Clone, Debug, Default, PartialEq, Serialize, ToSchema)]
#[schema(as = TestStatistics)]
pub struct TestStatistics {
    /// Of `dataset` and `di`: clusters of suspects that are compared.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub suspects: Option<usize>,
    /// Of `dataset` and `di`: clusters of held-out texts that are compared.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub held_out: Option<usize>,
    /// Of `dataset` and `di`: whether suspects score higher.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mann_whitney: Option<MannWhitney>,
    /// Of `dataset` and `di`: the same by the means; absent where a side has fewer than two clusters, or nothing varies.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub welch: Option<TTest>,
    /// Of `paired`: whether the public texts score higher than the mean of their private ones.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub permutation: Option<PublicationTest>,
    /// Of `rank`: whether canaries rank higher among their twins than by chance.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub canary_rank: Option<CanaryRankTest>,
    /// Of `order`: whether published orders score higher than random ones, in the unit of the method's score.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub order: Option<OrderTest>,
}

/// The effect that a test estimates: how far published texts score above the others.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, ToSchema)]
#[schema(as = TestEffect)]
pub struct UnitEffect {
    pub measure: EffectMeasure,
    pub value: f64,
    /// The expected value under the null hypothesis.
    pub null_value: f64,
    /// Absent where documents, canaries or shards do not vary, or there is one of them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub standard_error: Option<f64>,
    /// By Student's distribution, two-sided, at a confidence of 0.99; absent without a standard error.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub interval: Option<[f64; 2]>,
    /// Of an effect that is no larger than under the null hypothesis, one-sided.
    pub p_value: f64,
}

/// The measure of an effect.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "snake_case")]
#[schema(as = TestEffectMeasure)]
pub enum EffectMeasure {
    /// The mean over documents or shards of the published text's score less the mean score of the others.
    MeanDifference,
    /// The mean over canaries of the share of their twins that they score above.
    ShareOfTwins,
}

impl UnitEffect {
    /// The mean of `values`, one for each document, canary or shard.
    fn new(measure: EffectMeasure, values: &[f64], p_value: f64) -> Self {
        let (null_value, bounds) = match measure {
            EffectMeasure::MeanDifference => (0.0, [f64::NEG_INFINITY, f64::INFINITY]),
            EffectMeasure::ShareOfTwins => (0.5, [0.0, 1.0]),
        };
        let estimate = mean_estimate(values, EFFECT_CONFIDENCE);
        let clamped = |bound: f64| bound.clamp(bounds[0], bounds[1]);
        Self {
            measure,
            value: values.iter().sum::<f64>() / values.len() as f64,
            null_value,
            standard_error: estimate.map(|estimate| estimate.standard_error),
            interval: estimate.map(|estimate| estimate.interval.map(clamped)),
            p_value,
        }
    }
}

/// Tests whether suspects score higher than held-out texts, given the scores of their clusters. A cluster counts once.
pub fn test_dataset(scores: &ClusterScores<1>, clustered: &ClusteredTexts) -> Result<Measured, HypothesisError> {
    let [suspects, held_out] = [true, false].map(|suspect| list_scores(scores, clustered, suspect));
    let test = mann_whitney(&suspects, &held_out)?;
    Ok(Measured {
        tested: suspects.len() + held_out.len(),
        p_value: Some(test.p_value),
        smallest_p_value: smallest_p_value(suspects.len(), held_out.len()),
        statistics: TestStatistics {
            suspects: Some(suspects.len()),
            held_out: Some(held_out.len()),
            mann_whitney: Some(test),
            welch: welch(&suspects, &held_out),
            ..TestStatistics::default()
        },
        ..Measured::default()
    })
}

/// The p-value where every suspect scores higher than every held-out text.
fn smallest_p_value(suspects: usize, held_out: usize) -> Option<f64> {
    let scores: Vec<f64> = (0..suspects + held_out).map(|score| score as f64).collect();
    let (low, high) = scores.split_at(held_out);
    mann_whitney(high, low).ok().map(|test| test.p_value)
}

/// The scores of the units, each text's by `score`; the first text is the published one. A unit is left out where one of its
/// texts has no score.
pub fn unit_scores(
    units: &[Range<usize>],
    rows: &[SampleScores],
    score: impl Fn(&SampleScores) -> Option<f64>,
) -> Vec<DocumentScores> {
    let scores = |unit: &Range<usize>| {
        let scores: Option<Vec<f64>> = rows.get(unit.clone())?.iter().map(&score).collect();
        let mut scores = scores?.into_iter();
        Some(DocumentScores { published: scores.next()?, private: scores.collect() })
    };
    units.iter().filter_map(scores).collect()
}

/// The units whose first text no earlier one has, but for case and white space: the same text twice says no more than once.
pub fn distinct_units(units: Vec<Range<usize>>, rows: &[SampleScores]) -> Vec<Range<usize>> {
    let mut known = HashSet::new();
    let mut is_new = |row: &SampleScores| known.insert(row.normalized.unwrap_or(row.text));
    units.into_iter().filter(|unit| rows.get(unit.start).is_none_or(&mut is_new)).collect()
}

pub fn test_units(
    kind: UnitKind,
    units: Vec<DocumentScores>,
    wanted: &dyn Fn() -> bool,
) -> Result<Measured, HypothesisError> {
    let measured = Measured { tested: units.len(), ..Measured::default() };
    match kind {
        UnitKind::Paired => paired(&units, measured, wanted),
        UnitKind::Rank => rank(&units, measured),
        UnitKind::Order => orders(units, measured),
    }
}

fn paired(
    documents: &[DocumentScores],
    mut measured: Measured,
    wanted: &dyn Fn() -> bool,
) -> Result<Measured, HypothesisError> {
    let test = publication_test(documents, PERMUTATION_SEED, wanted)?;
    let least = if test.exact { 1.0 / test.permutations as f64 } else { LEAST_P_VALUE_DRAWN };
    measured.smallest_p_value = Some(least);
    measured.statistics.permutation = Some(test);
    let differences: Vec<f64> = documents.iter().map(DocumentScores::difference).collect();
    Ok(measured.with_differences(&differences, Some(test.p_value)))
}

fn rank(canaries: &[DocumentScores], mut measured: Measured) -> Result<Measured, HypothesisError> {
    let ranks = canaries.iter().map(|canary| CanaryRank::new(canary.published, &canary.private));
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

fn orders(units: Vec<DocumentScores>, mut measured: Measured) -> Result<Measured, HypothesisError> {
    let shard = |DocumentScores { published, private }| ShardOrder { canonical: published, shuffles: private };
    let shards: Vec<ShardOrder> = units.into_iter().map(shard).collect();
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
    use crate::audits::clusters::row_clusters;
    use crate::audits::fixtures;
    use mia::texts::TextDigest;

    /// A dataset of rows whose clusters are given.
    fn dataset(rows: &[(bool, Option<f64>)], numbers: &[usize]) -> Result<Measured, HypothesisError> {
        let row = |(&(member, score), &cluster): (&(bool, Option<f64>), &usize)| SampleScores {
            cluster: Some(cluster),
            ..fixtures::row(&format!("{score:?}"), member, vec![score])
        };
        let rows: Vec<SampleScores> = rows.iter().zip(numbers).map(row).collect();
        let labels: Vec<bool> = rows.iter().map(|row| row.member == Some(true)).collect();
        let digests: Vec<TextDigest> = (0..rows.len()).map(|row| TextDigest::new(&row.to_string())).collect();
        let clustered = ClusteredTexts::new(&labels, numbers, &vec![0; rows.len()], &digests);
        let clusters = row_clusters(&rows);
        let score = |row: usize| rows[row].scores[0].filter(|_| !clusters[numbers[row]].is_mixed);
        test_dataset(&clustered.scores(|row| score(row).map(|score| [score])), &clustered)
    }

    #[test]
    fn a_cluster_counts_once_and_a_mixed_one_not_at_all() {
        let rows = [
            (true, Some(9.0)),
            (true, Some(9.0)),
            (true, Some(4.0)),
            (true, None),
            (false, Some(1.0)),
            (false, Some(2.0)),
            (true, Some(-7.0)),
            (false, Some(7.0)),
        ];
        let clusters = [0, 0, 1, 2, 3, 4, 5, 5];
        let measured = dataset(&rows, &clusters).unwrap();
        let statistics = measured.statistics;
        assert_eq!((statistics.suspects, statistics.held_out, measured.tested), (Some(2), Some(2), 4));
        assert_eq!(statistics.mann_whitney.map(|test| (test.auroc, test.exact)), Some((1.0, true)));
        // One of the 6 arrangements of 2 and 2.
        assert_eq!((measured.p_value, measured.smallest_p_value), (Some(1.0 / 6.0), Some(1.0 / 6.0)));
        // Means 6.5 and 1.5, variances 12.5 and 0.5: t = 5 / sqrt(6.5).
        assert!((statistics.welch.unwrap().statistic - 5.0 / 6.5_f64.sqrt()).abs() < 1e-12);
    }

    #[test]
    fn one_text_a_side_is_a_test_that_proves_nothing() {
        let measured = dataset(&[(true, Some(1.0)), (false, Some(0.0))], &[0, 1]).unwrap();
        assert_eq!((measured.p_value, measured.smallest_p_value), (Some(0.5), Some(0.5)));
        assert!(measured.statistics.welch.is_none());
        let one_side = dataset(&[(true, Some(1.0)), (false, None)], &[0, 1]);
        assert_eq!(one_side, Err(HypothesisError::NoValues));
    }

    fn rows(scores: &[Option<f64>]) -> Vec<SampleScores> {
        scores.iter().map(|score| fixtures::row("", true, vec![None, *score])).collect()
    }

    fn unit(published: f64, private: &[f64]) -> DocumentScores {
        DocumentScores { published, private: private.to_vec() }
    }

    fn tested(kind: UnitKind, units: &[(f64, &[f64])]) -> Measured {
        let units = units.iter().map(|&(first, others)| unit(first, others)).collect();
        test_units(kind, units, &|| true).unwrap()
    }

    #[test]
    fn units_without_a_score_are_left_out() {
        let rows = rows(&[Some(1.0), Some(2.0), Some(3.0), None, Some(5.0), Some(6.0), Some(7.0)]);
        let units = [0..2, 2..4, 4..7, 7..9];
        let scores = |place: usize| unit_scores(&units, &rows, |row| *row.scores.get(place)?);
        assert_eq!(scores(1), [unit(1.0, &[2.0]), unit(5.0, &[6.0, 7.0])]);
        assert!(scores(0).is_empty());
        assert!(scores(2).is_empty());
    }

    #[test]
    fn a_unit_that_repeats_another_does_not_count() {
        let row = |text: &str| fixtures::row(text, true, vec![None]);
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
        let many = vec![unit(1.0, &[0.0]); 20];
        let measured = test_units(UnitKind::Paired, many, &|| true).unwrap();
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
            assert!(test_units(kind, Vec::new(), &|| true).is_err(), "{kind:?}");
        }
    }
}
