use super::*;
use crate::statistics::fixtures::{TEXT_LABELS, TEXTS, assert_all_within, assert_close, assert_same_on_any_threads};
use proptest::prelude::*;

fn table(texts: &[String]) -> WordTable {
    let mut table = WordTable::new(texts.len());
    texts.iter().for_each(|text| table.add(text));
    table
}

/// The baseline with the log-odds that it is the AUROC of.
#[derive(Debug, PartialEq)]
struct Fit {
    baseline: WordsBaseline,
    log_odds: Vec<f64>,
}

fn fit(texts: &[String], labels: &[bool], clusters: &[usize]) -> Option<Fit> {
    let table = table(texts);
    let baseline = words_baseline(&table, labels, clusters, 7, &|| true);
    let columns = NgramColumns::new(&table.sets);
    let clusters = columns.fitted_clusters(labels, clusters, 2);
    assert_eq!(baseline.is_some(), clusters.is_some());
    Some(Fit { baseline: baseline?, log_odds: columns.log_odds(labels, &clusters?) })
}

/// Worked example 10.
#[test]
fn ten_texts_as_scikit_learn_scores_them() {
    let texts = TEXTS.map(str::to_owned);
    let clusters: Vec<usize> = (0..10).collect();
    assert_eq!(table(&texts).sets.vocabulary(), 17);
    let fit = fit(&texts, &TEXT_LABELS, &clusters).expect("five texts of each class");
    let expected = [
        2.74543407353,
        2.88385133023,
        -1.18557489929,
        -2.43258657743,
        3.57699851079,
        -2.72026864988,
        3.11238679583,
        -2.78613975562,
        2.13686114183,
        -2.83295215775,
    ];
    assert_all_within(&fit.log_odds, &expected, 1e-9);
    let baseline = fit.baseline;
    assert_eq!((baseline.auroc, baseline.standard_error, baseline.interval), (1.0, 0.0, None));
    assert_eq!(baseline.shift, Shift::Total);
    let top = baseline.top_words.expect("words");
    assert_eq!(
        (top.members, top.non_members),
        (words(&["in", "court", "trial", "a", "march"]), words(&["boat", "cold", "the"]))
    );
}

fn words(listed: &[&str]) -> Vec<String> {
    listed.iter().copied().map(str::to_owned).collect()
}

/// Two hundred texts of 186 words, every tenth in the cluster of the fifth before it; some clusters have both labels.
fn corpus() -> (Vec<String>, Vec<bool>, Vec<usize>) {
    let member = |i: usize| i * 7919 % 5 < 2;
    let word = |i: usize, j: usize| {
        let x = (i * 7919 + j * 104_729 + i * j * 13) % 211;
        let x = if member(i) && j.is_multiple_of(3) { x / 2 } else { x };
        format!("W{}", x * x / 97)
    };
    let text = |i: usize| (0..5 + i * 37 % 40).map(|j| word(i, j)).collect::<Vec<_>>().join(" ");
    let clusters = (0..200).map(|i| if i % 10 == 9 { i - 4 } else { i }).collect();
    ((0..200).map(text).collect(), (0..200).map(member).collect(), clusters)
}

/// scikit-learn 1.9: `MultinomialNB(alpha=1.0)` over `CountVectorizer(binary=True, token_pattern=r"\w+")`, fitted on
/// the texts outside each fold; the interval from Obuchowski's components by cluster, as loops over the other class. The words by
/// `feature_log_prob_` of a model of all texts, among words in at least three clusters.
#[test]
fn two_hundred_texts_as_scikit_learn_scores_them() {
    let (texts, labels, clusters) = corpus();
    let fit = fit(&texts, &labels, &clusters).expect("both classes");
    for (row, expected) in
        [(0, -1.2039700915326534), (9, -1.3066333242203854), (57, -3.247290956426326), (199, 1.6675944309108672)]
    {
        assert_close(fit.log_odds[row], expected);
    }
    assert_close(fit.log_odds.iter().sum(), -209.93571033469107);
    assert_close(fit.log_odds.iter().map(|odds| odds.abs()).sum(), 449.35434688968814);
    let baseline = fit.baseline;
    assert_close(baseline.auroc, 0.7895833333333334);
    assert_close(baseline.standard_error, 0.031222510322001625);
    let [low, high] = baseline.interval.expect("a standard error");
    assert_close(low, 0.7283883375952801);
    assert_close(high, 0.8507783290713867);
    assert_eq!((baseline.p_value, baseline.shift), (0.005, Shift::Some));
    let top = baseline.top_words.expect("words");
    assert_eq!(top.members, words(&["w49", "w17", "w43", "w18", "w37", "w83", "w34", "w57", "w33", "w51"]));
    let non_members = ["w148", "w380", "w247", "w196", "w294", "w204", "w322", "w185", "w122", "w241"];
    assert_eq!(top.non_members, words(&non_members));
}

#[test]
fn the_seed_and_not_the_threads_decide() {
    let (texts, _, clusters) = corpus();
    let labels: Vec<bool> = (0..200_u32).map(|i| (i * 2_654_435 % 1009) % 2 == 0).collect();
    let table = table(&texts);
    let fit = |seed| words_baseline(&table, &labels, &clusters, seed, &|| true).expect("both classes");
    let one = assert_same_on_any_threads(|| fit(3));
    assert_eq!(one.shift, Shift::None);
    assert!((4..9).any(|seed| fit(seed).p_value != one.p_value));
    assert_eq!(words_baseline(&table, &labels, &clusters, 3, &|| false), None);
}

/// Labels by chance: p is at most 0.2 in one of five draws, 40 of 200 within 4 standard errors.
#[test]
fn chance_gives_small_p_values_as_often_as_it_should() {
    let texts: Vec<String> = corpus().0.into_iter().take(40).collect();
    let table = table(&texts);
    let clusters: Vec<usize> = (0..40).collect();
    let small = |draw: &u64| {
        let mut labels: Vec<bool> = (0..40).map(|row| row % 2 == 0).collect();
        shuffle(&mut labels, &mut stream(*draw, "labels of a test"));
        let fit = words_baseline(&table, &labels, &clusters, 0, &|| true).expect("both classes");
        fit.p_value <= 0.2
    };
    let small = (0..200).filter(small).count();
    assert!((18..=62).contains(&small), "{small}");
}

#[test]
fn what_has_no_baseline() {
    let texts: Vec<String> = (0..4).map(|text| format!("word{text} and")).collect();
    let labels = [true, true, false, false];
    assert!(fit(&texts, &labels, &[0, 1, 2, 3]).is_some());
    // One cluster of members; one of non-members, whose other text is in a cluster of members.
    assert_eq!(fit(&texts, &labels, &[0, 0, 2, 3]), None);
    assert_eq!(fit(&texts, &labels, &[0, 1, 1, 3]), None);
    assert_eq!(fit(&texts, &[true; 4], &[0, 1, 2, 3]), None);
    assert_eq!(fit(&texts, &labels[..3], &[0, 1, 2, 3]), None);
    assert_eq!(fit(&texts, &labels, &[0, 1, 2]), None);
    assert_eq!(fit(&[], &[], &[]), None);
    assert_eq!(fit(&["?", "", " ", "-"].map(str::to_owned), &labels, &[0, 1, 2, 3]), None);
}

#[test]
fn a_report_says_what_it_knows() {
    let baseline = WordsBaseline {
        auroc: 0.5,
        standard_error: 0.0,
        interval: None,
        p_value: 0.06,
        shift: Shift::new(0.95, 0.06),
        truncated_texts: None,
        top_words: None,
    };
    let json = serde_json::to_string(&baseline).expect("JSON");
    assert_eq!(json, r#"{"auroc":0.5,"standard_error":0.0,"p_value":0.06,"shift":"none"}"#);
    assert_eq!(serde_json::from_str::<WordsBaseline>(&json).expect("the same"), baseline);
    assert_eq!((Shift::new(0.9, 0.05), Shift::new(0.899, 0.05)), (Shift::Total, Shift::Some));
}

/// As the definition says it, text by text: counts of words among the texts of the other folds.
fn by_definition(texts: &[Vec<u8>], labels: &[bool], clusters: &[usize]) -> Vec<f64> {
    let folds = crate::statistics::folds(labels, clusters);
    let sets: Vec<std::collections::BTreeSet<u8>> = texts.iter().map(|text| text.iter().copied().collect()).collect();
    let vocabulary = sets.iter().flatten().collect::<std::collections::BTreeSet<_>>().len();
    let log_probability = |row: usize, class: bool| {
        let fitted = || (0..texts.len()).filter(|&other| folds[other] != folds[row] && labels[other] == class);
        let total = fitted().map(|other| sets[other].len()).sum::<usize>() + vocabulary;
        let with = |word: &u8| fitted().filter(|&other| sets[other].contains(word)).count() + 1;
        let words: f64 = sets[row].iter().map(|word| (with(word) as f64 / total as f64).ln()).sum();
        words + (fitted().count() as f64).ln()
    };
    (0..texts.len()).map(|row| log_probability(row, true) - log_probability(row, false)).collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn log_odds_are_those_of_the_definition(
        samples in prop::collection::vec((any::<bool>(), 0_usize..20, prop::collection::vec(0_u8..30, 0..8)), 0..30)
    ) {
        let labels: Vec<bool> = samples.iter().map(|sample| sample.0).collect();
        let clusters: Vec<usize> = samples.iter().map(|sample| sample.1).collect();
        let texts: Vec<Vec<u8>> = samples.into_iter().map(|sample| sample.2).collect();
        let spelled: Vec<String> =
            texts.iter().map(|text| text.iter().map(|word| format!("{word} ")).collect()).collect();
        if let Some(fit) = fit(&spelled, &labels, &clusters) {
            for (actual, expected) in fit.log_odds.iter().zip(by_definition(&texts, &labels, &clusters)) {
                prop_assert!((actual - expected).abs() < 1e-9, "{} is not {}", actual, expected);
            }
            let WordsBaseline { auroc, p_value, interval, .. } = fit.baseline;
            prop_assert!((0.0..=1.0).contains(&auroc) && (0.005..=1.0).contains(&p_value));
            prop_assert!(interval.is_none_or(|[low, high]| 0.0 <= low && low <= auroc && auroc <= high && high <= 1.0));
        }
    }
}
