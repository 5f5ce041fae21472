//! Examples worked by hand, and properties that hold for every sample.

use super::*;
use proptest::prelude::*;

#[track_caller]
fn assert_close(actual: f64, expected: f64) {
    let error = (actual - expected).abs();
    assert!(error <= 1e-9, "{actual} is not {expected}: off by {error}");
}

fn samples(scores: &[f64]) -> Vec<LabelledScore> {
    let members = [0, 0, 1, 1, 1, 1, 1, 1, 0, 0];
    scores.iter().zip(members).map(|(&score, member)| LabelledScore { score, member: member == 1 }).collect()
}

fn tied() -> Roc {
    let scores = [0.5, 0.625, 0.0, 0.75, 0.875, 0.125, 0.875, 0.625, 0.0, 0.75];
    Roc::new(&samples(&scores)).expect("both classes")
}

fn untied() -> Roc {
    let scores = [0.5, 0.3, 0.6, 0.8, 0.9, 0.4, 0.7, 0.65, 0.1, 0.55];
    Roc::new(&samples(&scores)).expect("both classes")
}

#[test]
fn area_and_its_standard_error() {
    assert_close(tied().auroc(), 0.645833333333333);
    assert_close(untied().auroc(), 0.916666666666667);
    let error = tied().auroc_standard_error().expect("two of each class");
    assert_close(error, 0.187731338767814);
}

#[test]
fn the_curve_keeps_every_point() {
    let points = tied().points();
    #[rustfmt::skip]
    let expected = [
        (0.0, 0.0, None),
        (0.0, 1.0 / 3.0, Some(0.875)),
        (0.25, 0.5, Some(0.75)),
        (0.5, 2.0 / 3.0, Some(0.625)),
        (0.75, 2.0 / 3.0, Some(0.5)),
        (0.75, 5.0 / 6.0, Some(0.125)),
        (1.0, 1.0, Some(0.0)),
    ];
    assert_eq!(points.len(), expected.len());
    for (point, (fpr, tpr, threshold)) in points.iter().zip(expected) {
        assert_close(point.fpr, fpr);
        assert_close(point.tpr, tpr);
        assert_eq!(point.threshold, threshold);
    }
}

#[test]
fn operating_points() {
    let roc = tied();
    for (fpr, tpr, threshold, budget) in [
        (0.05, 1.0 / 3.0, 0.875, 0),
        (0.25, 0.5, 0.75, 1),
        (0.3, 0.5, 0.75, 1),
        // Of two thresholds with the same rate, the one with fewer false positives.
        (0.5, 2.0 / 3.0, 0.625, 2),
        (0.75, 5.0 / 6.0, 0.125, 3),
        (1.0, 1.0, 0.0, 4),
    ] {
        let point = roc.tpr_at_fpr(fpr);
        assert_close(point.tpr, tpr);
        assert_eq!(point.threshold, Some(threshold));
        assert_eq!(point.false_positive_budget, budget);
        assert!(point.interval[0] <= point.tpr && point.tpr <= point.interval[1]);
    }
    assert_eq!(roc.fpr_at_95_tpr(), 1.0);
}

#[test]
fn an_operating_point_has_the_requested_confidence() {
    let roc = tied();
    let point = roc.tpr_at_fpr_with(0.05, 0.9);
    assert_eq!(Some(point.interval), clopper_pearson(2, 6, 0.9));
    assert_eq!(TprAtFpr { interval: roc.tpr_at_fpr(0.05).interval, ..point }, roc.tpr_at_fpr_with(0.05, 0.95));
    assert_eq!(roc.tpr_at_fpr_with(0.05, f64::NAN).interval, [0.0, 1.0]);
}

#[test]
fn a_bound_that_no_threshold_satisfies_has_none() {
    let roc = Roc::new(&[LabelledScore { score: 1.0, member: true }, LabelledScore { score: 2.0, member: false }])
        .expect("both classes");
    let point = roc.tpr_at_fpr(0.05);
    assert_eq!((point.tpr, point.threshold), (0.0, None));
    assert_eq!(point.interval[0], 0.0);
}

#[test]
fn the_rate_of_95_percent_is_met_exactly() {
    // 19 of 20 members are 95 %, although 0.95 has no exact binary representation.
    let members = (0..20).map(|i| LabelledScore { score: f64::from(i), member: true });
    let non_members = [-1.0, 0.5].map(|score| LabelledScore { score, member: false });
    let samples: Vec<LabelledScore> = members.chain(non_members).collect();
    assert_eq!(Roc::new(&samples).expect("both classes").fpr_at_95_tpr(), 0.0);
}

#[test]
fn false_positive_budgets() {
    for (fpr, non_members, budget) in [
        (0.005, 389, 1),
        (0.005, 258, 1),
        (0.005, 111, 0),
        (0.05, 20, 1),
        (0.05, 400, 20),
        (0.29, 100, 29),
        (0.07, 100, 7),
        (0.0, 100, 0),
        (1.0, 100, 100),
        (1.5, 100, 100),
        (-1.0, 100, 0),
        (f64::NAN, 100, 0),
        (f64::INFINITY, 100, 100),
        (0.05, 0, 0),
    ] {
        assert_eq!(false_positive_budget(fpr, non_members), budget, "{fpr} of {non_members}");
    }
}

#[test]
fn samples_without_a_curve() {
    let sample = |score, member| LabelledScore { score, member };
    for (samples, error) in [
        (vec![], StatisticsError::NoMembers),
        (vec![sample(1.0, false)], StatisticsError::NoMembers),
        (vec![sample(1.0, true)], StatisticsError::NoNonMembers),
        (vec![sample(1.0, true), sample(f64::NAN, false)], StatisticsError::NonFinite),
    ] {
        assert_eq!(auroc(&samples), Err(error));
    }
    let single = Roc::new(&[sample(1.0, true), sample(0.0, false), sample(0.5, false)]);
    assert_eq!(single.expect("both classes").auroc_standard_error(), None);
}

#[test]
fn clopper_pearson_intervals() {
    let close = |actual: Option<[f64; 2]>, expected: [f64; 2]| {
        let [low, high] = actual.expect("an interval");
        assert_close(low, expected[0]);
        assert_close(high, expected[1]);
    };
    close(clopper_pearson(23, 139, 0.95), [0.107878853117659, 0.237865420650191]);
    close(clopper_pearson(0, 111, 0.95), [0.0, 0.0326869940239477]);
    close(clopper_pearson(111, 111, 0.95), [1.0 - 0.0326869940239477, 1.0]);
    // The upper end of two-sided 90 % is that of one-sided 95 %.
    close(clopper_pearson(0, 111, 0.9), [0.0, 0.0266276416933757]);
    // Many trials; here the closed form is 1 - 0.025^(1/n).
    let rare = clopper_pearson(0, 10_000_000, 0.95);
    close(rare, [0.0, -(0.025_f64.ln() / 1e7).exp_m1()]);
    assert_eq!(clopper_pearson(0, 0, 0.95), None);
    assert_eq!(clopper_pearson(2, 1, 0.95), None);
    assert_eq!(clopper_pearson(1, 2, 1.0), None);
    assert_eq!(clopper_pearson(1, 2, f64::NAN), None);
}

fn any_samples() -> impl Strategy<Value = Vec<LabelledScore>> {
    // Few distinct scores, so that ties are common.
    let sample =
        (-8_i32..8, any::<bool>()).prop_map(|(score, member)| LabelledScore { score: f64::from(score), member });
    prop::collection::vec(sample, 2..60).prop_filter("both classes", |samples| {
        let members = samples.iter().filter(|sample| sample.member).count();
        0 < members && members < samples.len()
    })
}

proptest! {
    #[test]
    fn negated_scores_have_the_rest_of_the_area(samples in any_samples()) {
        let negated: Vec<LabelledScore> = samples
            .iter()
            .map(|sample| LabelledScore { score: -sample.score, ..*sample })
            .collect();
        let sum = auroc(&samples).expect("an area") + auroc(&negated).expect("an area");
        prop_assert!((sum - 1.0).abs() <= 1e-15, "{}", sum);
    }

    #[test]
    fn the_area_is_that_of_all_pairs(samples in any_samples()) {
        let (members, others): (Vec<LabelledScore>, Vec<LabelledScore>) =
            samples.iter().partition(|sample| sample.member);
        let wins: f64 = members
            .iter()
            .flat_map(|member| others.iter().map(|other| {
                if member.score > other.score { 1.0 }
                else if member.score == other.score { 0.5 }
                else { 0.0 }
            }))
            .sum();
        let expected = wins / (members.len() * others.len()) as f64;
        let area = auroc(&samples).expect("an area");
        prop_assert!((area - expected).abs() <= 1e-12);
    }

    #[test]
    fn an_operating_point_is_the_best_of_the_curve(samples in any_samples(), fpr in 0.0..=1.0) {
        let roc = Roc::new(&samples).expect("both classes");
        let best = roc.points().into_iter().filter(|point| point.fpr <= fpr).map(|point| point.tpr);
        prop_assert_eq!(roc.tpr_at_fpr(fpr).tpr, best.fold(0.0, f64::max));
    }

    #[test]
    fn an_interval_holds_its_share(trials in 1_usize..2000, share in 0.0..=1.0) {
        let successes = (share * trials as f64) as usize;
        let [low, high] = clopper_pearson(successes, trials, 0.95).expect("an interval");
        let observed = successes as f64 / trials as f64;
        prop_assert!(0.0 <= low && low <= observed && observed <= high && high <= 1.0);
    }
}
