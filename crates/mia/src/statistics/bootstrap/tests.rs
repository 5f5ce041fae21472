//! An example worked by hand, and properties that hold for all samples.

use super::draws::Units;
use super::*;
use crate::statistics::{LabelledScore, Roc};
use proptest::prelude::*;

mod clusters;

/// The example's numbers have 15 digits; sums of a few of them have a smaller rounding error.
const TOLERANCE: f64 = 1e-12;

#[track_caller]
fn assert_close(actual: f64, expected: f64) {
    let error = (actual - expected).abs();
    assert!(error <= TOLERANCE, "{actual} is not {expected}: off by {error}");
}

const LABELS: [bool; 10] = [false, false, true, true, true, true, true, true, false, false];
const TIED: [f64; 10] = [0.5, 0.625, 0.0, 0.75, 0.875, 0.125, 0.875, 0.625, 0.0, 0.75];
const UNTIED: [f64; 10] = [0.5, 0.3, 0.6, 0.8, 0.9, 0.4, 0.7, 0.65, 0.1, 0.55];

fn listed() -> [Vec<u32>; 5] {
    [
        vec![0, 1, 2, 3, 4, 5, 6, 7, 8, 9],
        vec![0, 0, 2, 3, 3, 5, 6, 7, 8, 9],
        vec![9, 9, 9, 1, 2, 5, 5, 5, 6, 7],
        vec![2, 3, 4, 5, 6, 7, 2, 3, 4, 5],
        vec![8, 8, 0, 1, 3, 3, 4, 6, 7, 2],
    ]
}

fn all(scores: &[f64]) -> Vec<Option<f64>> {
    scores.iter().copied().map(Some).collect()
}

fn alone(scores: &[Option<f64>]) -> BootstrapColumn<'_> {
    BootstrapColumn { scores, baseline: None }
}

/// The summary of the only column.
fn only(labels: &[bool], scores: &[Option<f64>], settings: &Bootstrap) -> BootstrapSummary {
    bootstrap(labels, &[], &[alone(scores)], &[0.1, 0.5], settings, &|| true).remove(0).summary
}

#[test]
fn each_replicate_of_the_example() {
    let (tied, untied) = (all(&TIED), all(&UNTIED));
    let expected = [
        Some((0.645833333333333, 0.916666666666667)),
        Some((0.645833333333333, 0.875)),
        Some((0.1875, 0.625)),
        None,
        Some((0.854166666666667, 1.0)),
    ];
    for (list, expected) in listed().iter().zip(expected) {
        let columns = [alone(&tied), alone(&untied)];
        let results = bootstrap_listed(&LABELS, &columns, &[], 0.95, std::slice::from_ref(list));
        let [first, second] = [&results[0], &results[1]].map(|column| column.summary.auroc.map(|auroc| auroc.mean));
        assert_eq!((first.is_some(), second.is_some()), (expected.is_some(), expected.is_some()));
        if let (Some(first), Some(second), Some(expected)) = (first, second, expected) {
            assert_close(first, expected.0);
            assert_close(second, expected.1);
        }
    }
}

#[test]
fn the_replicates_of_the_example_together() {
    let (tied, untied) = (all(&TIED), all(&UNTIED));
    let columns = [alone(&tied), BootstrapColumn { scores: &untied, baseline: Some(0) }];
    let results = bootstrap_listed(&LABELS, &columns, &[], 0.95, &listed());
    let auroc = results[0].summary.auroc.expect("both classes");
    assert_close(auroc.mean, 0.583333333333333);
    assert_close(auroc.standard_deviation, 0.243847914806659);
    assert_close(auroc.interval[0], 0.221875);
    assert_close(auroc.interval[1], 0.838541666666667);
    assert_eq!(results[0].summary.discarded, 1);
    assert_eq!(results[0].versus_baseline, None);

    let paired = results[1].versus_baseline.expect("both classes");
    assert_close(paired.delta, 0.270833333333333);
    assert_eq!((paired.p_value_raw, paired.p_value, paired.discarded), (Some(0.0), Some(0.2), 1));
    // Percentiles of the differences .145833, .229167, .270833 and .4375 at positions 0.075 and 2.925.
    let [low, high] = paired.interval.expect("both classes");
    assert_close(low, 0.145833333333333 + 0.075 * 0.083333333333333);
    assert_close(high, 0.270833333333333 + 0.925 * 0.166666666666667);
}

#[test]
fn a_method_that_is_never_better_has_the_p_value_one() {
    let (tied, untied) = (all(&TIED), all(&UNTIED));
    for worse in [&tied, &untied] {
        let columns = [alone(&untied), BootstrapColumn { scores: worse, baseline: Some(0) }];
        let paired = bootstrap_listed(&LABELS, &columns, &[], 0.95, &listed())[1].versus_baseline;
        let paired = paired.expect("both classes");
        assert_eq!((paired.p_value_raw, paired.p_value), (Some(1.0), Some(1.0)));
    }
}

#[test]
fn a_pair_is_compared_on_the_samples_that_both_score() {
    let (mut tied, mut untied) = (all(&TIED), all(&UNTIED));
    (tied[4], untied[8]) = (None, Some(f64::NAN));
    let columns = [alone(&tied), BootstrapColumn { scores: &untied, baseline: Some(0) }];
    let results = bootstrap_listed(&LABELS, &columns, &[], 0.95, &listed());
    let shared = |scores: &[f64]| -> Vec<LabelledScore> {
        let both = (0..10).filter(|place| ![4, 8].contains(place));
        both.map(|place| LabelledScore { score: scores[place], member: LABELS[place] }).collect()
    };
    let [base, better] = [&TIED, &UNTIED].map(|scores| Roc::new(&shared(scores)).expect("both classes").auroc());
    assert_close(results[1].versus_baseline.expect("both classes").delta, better - base);
    // The same as for a column of 9 samples with the same draws.
    let kept: Vec<usize> = (0..10).filter(|&place| place != 4).collect();
    let labels: Vec<bool> = kept.iter().map(|&place| LABELS[place]).collect();
    let scores: Vec<Option<f64>> = kept.iter().map(|&place| tied[place]).collect();
    let renamed = |place: &u32| kept.iter().position(|kept| kept == &(*place as usize)).map(|place| place as u32);
    let lists: Vec<Vec<u32>> = listed().iter().map(|list| list.iter().filter_map(renamed).collect()).collect();
    let shorter = bootstrap_listed(&labels, &[alone(&scores)], &[], 0.95, &lists);
    assert_eq!(results[0].summary, shorter[0].summary);
}

#[test]
fn missing_comparisons_are_null_and_never_nan() {
    let scores = all(&[1.0, 2.0, 3.0]);
    let settings = Bootstrap { replicates: 7, ..Bootstrap::default() };
    let unscored = vec![None; 3];
    for (labels, scores) in [
        (vec![true; 3], &scores),
        (vec![false; 3], &scores),
        (vec![true, false, true], &unscored),
        (vec![], &scores),
        (vec![true, true, true, false], &scores),
    ] {
        let columns = [alone(scores), BootstrapColumn { scores, baseline: Some(0) }];
        for column in bootstrap(&labels, &[], &columns, &[0.05], &settings, &|| true) {
            let expected = BootstrapSummary { discarded: 7, ..BootstrapSummary::default() };
            assert_eq!(column, ColumnBootstrap { summary: expected, versus_baseline: None });
        }
    }
    assert_eq!(bootstrap(&[true, false], &[], &[], &[], &settings, &|| true), []);
    let dangling = BootstrapColumn { scores: &scores, baseline: Some(1) };
    assert_eq!(bootstrap(&[true, false, true], &[], &[dangling], &[], &settings, &|| true)[0].versus_baseline, None);
}

#[test]
fn a_difference_without_replicates_has_no_p_value() {
    let (scores, reversed) = (all(&[1.0, 2.0]), all(&[2.0, 1.0]));
    let columns = [alone(&scores), BootstrapColumn { scores: &reversed, baseline: Some(0) }];
    let paired = bootstrap_listed(&[true, false], &columns, &[], 0.95, &[vec![0, 0]])[1].versus_baseline;
    let expected = PairedBootstrap { delta: 1.0, p_value: None, p_value_raw: None, interval: None, discarded: 1 };
    assert_eq!(paired, Some(expected));
}

#[test]
fn one_replicate_does_not_vary() {
    let settings = Bootstrap { replicates: 1, ..Bootstrap::default() };
    let auroc = only(&LABELS, &all(&TIED), &settings).auroc.expect("this seed draws both classes");
    assert_eq!((auroc.standard_deviation, auroc.interval), (0.0, [auroc.mean; 2]));
}

#[test]
fn without_a_usable_confidence_the_interval_is_everything() {
    for confidence in [1.0, 2.0, f64::NAN] {
        let settings = Bootstrap { confidence, ..Bootstrap::default() };
        let auroc = only(&[true, false, true, false], &all(&[1.0, 2.0, 3.0, 4.0]), &settings).auroc;
        assert_eq!(auroc.map(|auroc| auroc.interval), Some([0.0, 1.0]));
    }
}

#[test]
fn discarded_replicates_occur_as_often_as_expected() {
    // With two samples, half of the replicates draw one of them twice; 20,000 replicates vary by 71, and this is five
    // times that.
    let settings = Bootstrap { replicates: 20_000, ..Bootstrap::default() };
    let summary = only(&[true, false], &all(&[2.0, 1.0]), &settings);
    assert!(summary.discarded.abs_diff(10_000) < 354, "{}", summary.discarded);
    assert_eq!(summary.auroc.map(|auroc| auroc.mean), Some(1.0));
}

#[test]
fn the_deviation_is_near_the_standard_error() {
    // DeLong's estimate and the bootstrap's agree within a few percent at 400 samples; 10 % is far from a wrong divisor
    // of n.
    let scores: Vec<f64> = (0..400).map(|i| f64::from(i * 7919 % 401) + 80.0 * f64::from(i % 2)).collect();
    let labels: Vec<bool> = (0..400).map(|i| i % 2 == 1).collect();
    let samples: Vec<LabelledScore> =
        scores.iter().zip(&labels).map(|(&score, &member)| LabelledScore { score, member }).collect();
    let roc = Roc::new(&samples).expect("both classes");
    let error = roc.auroc_standard_error().expect("two of each class");
    let auroc = only(&labels, &all(&scores), &Bootstrap::default()).auroc.expect("both classes");
    assert!((auroc.standard_deviation / error - 1.0).abs() < 0.1, "{} {error}", auroc.standard_deviation);
    assert!((auroc.mean - roc.auroc()).abs() < 5.0 * error / 1000_f64.sqrt());
    // Five standard errors of a 2.5 % quantile of a thousand, each 2.7 times the deviation over sqrt(1000).
    for (end, expected) in auroc.interval.into_iter().zip([-1.96, 1.96]) {
        assert!((end - roc.auroc() - expected * error).abs() < 0.43 * error, "{end}");
    }
}

#[test]
fn threads_do_not_matter() {
    let labels: Vec<bool> = (0..101).map(|i| i % 3 == 0).collect();
    let scores: Vec<Option<f64>> = (0..101).map(|i| (i % 7 != 0).then_some(f64::from(i * 31 % 50))).collect();
    let complete = all(&(0..101).map(f64::from).collect::<Vec<f64>>());
    let columns = [alone(&complete), BootstrapColumn { scores: &scores, baseline: Some(0) }];
    let on = |threads: usize| {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().expect("threads");
        pool.install(|| bootstrap(&labels, &[], &columns, &[0.005, 0.5], &Bootstrap::default(), &|| true))
    };
    let one = on(1);
    assert!(one[1].versus_baseline.is_some());
    for threads in [2, 4] {
        assert_eq!(on(threads), one);
    }
}

#[test]
fn what_draws_depend_on() {
    let scores = all(&TIED);
    let mut fewer = scores.clone();
    fewer[1] = None;
    let draw = |scores: &[Option<f64>], seed| only(&LABELS, scores, &Bootstrap { seed, ..Bootstrap::default() });
    assert_eq!(draw(&scores, 1), draw(&scores, 1));
    assert_ne!(draw(&scores, 1), draw(&scores, 2));
    assert_ne!(draw(&scores, 1), draw(&fewer, 1));
    // They do not depend on the order of the columns, or on which other columns there are.
    let forward = bootstrap(&LABELS, &[], &[alone(&scores), alone(&fewer)], &[], &Bootstrap::default(), &|| true);
    let backward = bootstrap(&LABELS, &[], &[alone(&fewer), alone(&scores)], &[], &Bootstrap::default(), &|| true);
    assert_eq!([&forward[0], &forward[1]], [&backward[1], &backward[0]]);
    assert_eq!(forward[1], bootstrap(&LABELS, &[], &[alone(&fewer)], &[], &Bootstrap::default(), &|| true)[0]);
}

#[test]
fn draws_are_those_of_chacha() {
    // Computed with ChaCha with 8 rounds and SHA-256 in Python: the key is the hash of the seed in 8 bytes and a byte
    // per sample; the replicate is the stream.
    let scored: Vec<bool> = (0..25).map(|place| place != 20).collect();
    let places: Vec<u32> = (0..25).filter(|place| *place != 20).collect();
    let draws = Draws::Seeded { replicates: 1000, seed: 42 };
    let mut counts = vec![9; 25];
    for (replicate, expected) in [
        (0, [0, 1, 2, 1, 3, 1, 0, 1, 0, 2, 1, 2, 1, 1, 1, 1, 0, 0, 1, 2, 0, 0, 3, 0, 0]),
        (999, [0, 2, 0, 1, 0, 1, 1, 1, 0, 0, 1, 3, 0, 0, 5, 0, 2, 1, 2, 0, 0, 0, 2, 1, 1]),
    ] {
        draws.count(replicate, draws.key(&scored), &Units::new(&[], &places), &mut counts);
        assert_eq!(counts, expected);
    }
}

#[test]
fn summaries_as_clients_see_them() {
    let json = serde_json::to_value(only(&LABELS, &all(&TIED), &Bootstrap::default())).expect("JSON");
    assert!(json["discarded"].is_u64());
    assert!(json["auroc"]["standard_deviation"].is_f64() && json["auroc"]["interval"][1].is_f64());
    assert_eq!(json["tpr_at_fpr"][1]["fpr"], 0.5);
    assert!(json["tpr_at_fpr"][1]["mean"].is_f64());
    let json = serde_json::to_value(BootstrapSummary::default()).expect("JSON");
    assert_eq!(json.to_string(), r#"{"auroc":null,"tpr_at_fpr":[],"discarded":0}"#);
}

/// Labels, scores with many ties and some missing, and a replicate.
fn any_replicate() -> impl Strategy<Value = (Vec<bool>, Vec<Option<f64>>, Vec<u32>)> {
    let sample = (any::<bool>(), prop::option::weighted(0.9, -8_i32..8));
    prop::collection::vec(sample, 1..50).prop_flat_map(|samples| {
        let (labels, scores): (Vec<bool>, Vec<Option<i32>>) = samples.into_iter().unzip();
        let scores = scores.into_iter().map(|score| score.map(f64::from)).collect();
        let places = prop::collection::vec(0..labels.len() as u32, 0..80);
        (Just(labels), Just(scores), places)
    })
}

proptest! {
    #[test]
    fn a_replicate_is_the_curve_of_its_samples((labels, scores, list) in any_replicate(), fpr in 0.0..=1.0) {
        let drawn = list.iter().map(|&place| place as usize);
        let samples: Vec<LabelledScore> =
            drawn.filter_map(|place| Some(LabelledScore { score: scores[place]?, member: labels[place] })).collect();
        let targets = [fpr, 0.5, 0.0, 1.0, fpr / 2.0, f64::NAN];
        let summary = bootstrap_listed(&labels, &[alone(&scores)], &targets, 0.95, &[list]).remove(0).summary;
        match Roc::new(&samples) {
            Err(_) => prop_assert_eq!(summary, BootstrapSummary { discarded: 1, ..BootstrapSummary::default() }),
            Ok(roc) => {
                prop_assert_eq!(summary.auroc.map(|auroc| auroc.mean), Some(roc.auroc()));
                let rates: Vec<f64> = summary.tpr_at_fpr.iter().map(|rate| rate.summary.mean).collect();
                let expected: Vec<f64> = targets.iter().map(|&fpr| roc.tpr_at_fpr(fpr, 0.95).tpr).collect();
                prop_assert_eq!(rates, expected);
            }
        }
    }

    #[test]
    fn negated_scores_have_the_rest_of_the_area((labels, scores, _) in any_replicate(), seed: u64) {
        let negated: Vec<Option<f64>> = scores.iter().map(|score| score.map(|score| -score)).collect();
        let settings = Bootstrap { replicates: 50, seed, ..Bootstrap::default() };
        let [plus, minus] = [&scores, &negated].map(|scores| only(&labels, scores, &settings));
        prop_assert_eq!(plus.discarded, minus.discarded);
        if let (Some(plus), Some(minus)) = (plus.auroc, minus.auroc) {
            prop_assert!((plus.mean + minus.mean - 1.0).abs() <= 1e-14);
            prop_assert!((plus.standard_deviation - minus.standard_deviation).abs() <= 1e-14);
            prop_assert!((plus.interval[0] + minus.interval[1] - 1.0).abs() <= 1e-14);
            prop_assert!(0.0 <= plus.interval[0] && plus.interval[0] <= plus.interval[1] && plus.interval[1] <= 1.0);
        }
    }
}

#[test]
fn a_cancelled_bootstrap_stops() {
    let scores: Vec<Option<f64>> = LABELS.iter().enumerate().map(|(index, _)| Some(index as f64)).collect();
    let settings = Bootstrap { replicates: 100_000, ..Bootstrap::default() };
    let calls = std::cell::Cell::new(0);
    let once = || calls.replace(calls.get() + 1) == 0;
    // Called before the first block and before the second, and then at most once for each kind of result.
    assert_eq!(bootstrap(&LABELS, &[], &[alone(&scores)], &[], &settings, &once)[0], ColumnBootstrap::default());
    assert!((2..=4).contains(&calls.get()), "called {} times", calls.get());
}
