use super::*;
use crate::statistics::clusters::{ClusterIndex, folds};
use crate::statistics::fixtures::{TEXT_LABELS, TEXTS, assert_all_within, assert_same_on_any_threads};
use crate::statistics::naive_bayes::NgramColumns;
use crate::statistics::words::WordTable;
use crate::texts::TextDigest;
use std::collections::HashSet;

const ZLIB_BYTES: [usize; 10] = [32, 27, 22, 26, 29, 27, 25, 29, 26, 25];
const TOKENS: [usize; 10] = [6, 5, 4, 4, 6, 5, 5, 5, 0, 4];
const CONTROL: [Option<[f64; 4]>; 10] = [
    Some([-2.1, -1.0, -5.0, -4.0]),
    Some([-2.5, -1.2, -5.5, -4.1]),
    Some([-2.0, -0.9, -4.0, -3.5]),
    Some([-1.9, -0.8, -4.5, -3.6]),
    Some([-2.2, -1.1, -5.1, -4.2]),
    Some([-1.7, -0.7, -4.4, -3.3]),
    Some([-2.6, -1.3, -5.6, -4.4]),
    None,
    Some([-2.3, -1.05, -5.2, -4.3]),
    Some([-1.8, -0.75, -4.1, -3.2]),
];

struct Texts {
    labels: Vec<bool>,
    clusters: Vec<usize>,
    strata: Vec<usize>,
    words: WordTable,
    characters: CharacterTable,
    word_pairs: WordPairTable,
    facts: Vec<TextFacts>,
    digests: Vec<TextDigest>,
}

impl Texts {
    fn new(texts: &[String], labels: &[bool], facts: Vec<TextFacts>) -> Self {
        let (mut words, mut characters) = (WordTable::new(texts.len()), CharacterTable::new(texts.len()));
        let mut word_pairs = WordPairTable::new(texts.len());
        for text in texts {
            words.add(text);
            word_pairs.add(text);
            let ngrams = characters.ngrams(text);
            characters.add(&ngrams);
        }
        Self {
            labels: labels.to_vec(),
            clusters: (0..texts.len()).collect(),
            strata: vec![0; texts.len()],
            words,
            characters,
            word_pairs,
            facts,
            digests: texts.iter().map(|text| TextDigest::new(text)).collect(),
        }
    }

    fn ten() -> Self {
        let fact = |place: usize| TextFacts {
            bytes: TEXTS[place].len(),
            zlib_bytes: ZLIB_BYTES[place],
            scored_tokens: TOKENS[place],
            control: CONTROL[place].map_or([None; 4], |control| control.map(Some)),
        };
        Self::new(&TEXTS.map(str::to_owned), &TEXT_LABELS, (0..10).map(fact).collect())
    }

    fn compared(&self) -> ComparedTexts<'_> {
        let Self { labels, clusters, strata, words, characters, word_pairs, facts, .. } = self;
        ComparedTexts { labels, clusters, strata, words, characters, word_pairs, facts }
    }

    fn comparability(&self) -> Comparability {
        let fit = ComparabilityFit::new(&self.compared(), &|| true).unwrap();
        let clustered = ClusteredTexts::new(&self.labels, &self.clusters, &self.strata, &self.digests);
        fit.comparability(&self.compared(), &clustered, |_| true, true).unwrap()
    }
}

/// scikit-learn 1.9.1: `MultinomialNB()` on `CountVectorizer(binary=True, analyzer="char", ngram_range=(1, 3),
/// lowercase=False)`, over the same folds.
#[test]
fn log_odds_of_characters_are_those_of_scikit_learn() {
    let texts = Texts::ten();
    let columns = NgramColumns::new(&texts.characters.sets);
    let odds = columns.log_odds(&TEXT_LABELS, &ClusterIndex::labelled(&TEXT_LABELS, &texts.clusters));
    let expected = [
        16.5310976178,
        20.4473552103,
        -6.04600750579,
        -21.0802379703,
        19.3983295001,
        -18.8803336809,
        22.2397825188,
        -24.3593472243,
        13.5799576623,
        -18.0789744978,
    ];
    assert_all_within(&odds, &expected, 1e-9);
    // At the text's own fold.
    let nested = columns.nested_log_odds(&TEXT_LABELS, &texts.clusters).unwrap();
    let out_of_fold: Vec<f64> =
        nested.iter().zip(folds(&TEXT_LABELS, &texts.clusters)).map(|(odds, fold)| odds[fold]).collect();
    assert_all_within(&out_of_fold, &expected, 1e-9);
}

/// By hand: the model for a text of the first fold and the second one is that of all texts but those of both.
#[test]
fn nested_log_odds_are_those_of_the_other_texts() {
    let texts = Texts::ten();
    let nested = NgramColumns::new(&texts.words.sets).nested_log_odds(&TEXT_LABELS, &texts.clusters).unwrap();
    let folds = folds(&TEXT_LABELS, &texts.clusters);
    // The texts outside of the two folds by hand: words of texts 4, 6, 8 and 5, 7, 9.
    let words = |text: usize| TEXTS[text].to_lowercase().split(' ').map(str::to_owned).collect::<HashSet<_>>();
    let vocabulary = (0..10).flat_map(words).collect::<HashSet<_>>().len() as f64;
    let log_likelihood = |word: &String, fitted: &[usize]| {
        let with = fitted.iter().filter(|&&text| words(text).contains(word)).count() as f64;
        let all: usize = fitted.iter().map(|&text| words(text).len()).sum();
        ((with + 1.0) / (all as f64 + vocabulary)).ln()
    };
    assert_eq!((folds[0], folds[1]), (0, 1));
    let expected: f64 =
        words(0).iter().map(|word| log_likelihood(word, &[4, 6, 8]) - log_likelihood(word, &[5, 7, 9])).sum();
    assert_all_within(&[nested[0][1]], &[expected], 1e-12);
}

/// Labels of the texts that a fold scores have no part in their scores: with other ones there, the scores of the fold stay.
#[test]
fn a_text_is_scored_without_its_own_label() {
    let mut texts = alternating(&drawn(60, |_, words| words.join(" ")));
    let odds = |texts: &Texts| ComparabilityFit::new(&texts.compared(), &|| true).unwrap().log_odds;
    let before = odds(&texts);
    // Clusters 0 and 1 are the first of their labels, so both are in the first fold; exchanged labels leave the folds as they are.
    texts.labels.swap(0, 1);
    let after = odds(&texts);
    let folds = folds(&texts.labels, &texts.clusters);
    for text in 0..60 {
        assert_eq!(before[text] == after[text], folds[text] == 0, "{text}");
    }
}

/// scikit-learn 1.9.1: `LogisticRegression(C=1)` on all measures, some of them missing, without groups and within two, with the
/// log-odds of words and characters fitted anew for each fold and each fold that is left out with it. A fit ends when the norm of its
/// gradient is 1e-10 of that at the start, which leaves less than 1e-9 in log-odds.
#[test]
fn log_odds_of_all_measures_are_those_of_scikit_learn() {
    let mut texts = Texts::ten();
    let odds = |texts: &Texts| ComparabilityFit::new(&texts.compared(), &|| true).unwrap().log_odds;
    let one = [
        0.960114131288,
        3.23584954179,
        -1.9671821781,
        -3.07151720302,
        3.32158142798,
        -3.32196713048,
        3.4802255203,
        1.87480727574,
        1.70063888692,
        -3.6656909941,
    ];
    assert_all_within(&odds(&texts), &one, 1e-9);
    texts.strata = vec![0, 0, 0, 0, 0, 0, 1, 1, 1, 1];
    let two = [
        0.850939581696,
        2.83797156698,
        -4.46088934921,
        -3.36300330376,
        3.30869633273,
        -3.45951905679,
        4.30134832047,
        2.68090725673,
        0.645036462428,
        -7.08413885407,
    ];
    assert_all_within(&odds(&texts), &two, 1e-9);
}

/// Texts of words drawn from a list, with a text of its own kind for each place.
fn drawn(count: usize, write: impl Fn(usize, Vec<String>) -> String) -> Vec<String> {
    let mut random = crate::random::stream(3, "texts");
    let mut word = || format!("{:x}", 4096 + crate::random::index_below(&mut random, 500) * 7);
    (0..count).map(|place| write(place, (0..40).map(|_| word()).collect())).collect()
}

fn facts(texts: &[String]) -> Vec<TextFacts> {
    let fact = |text: &String| TextFacts {
        bytes: text.len(),
        zlib_bytes: text.len() / 2 + text.bytes().filter(|byte| *byte == b'a').count(),
        scored_tokens: text.split_whitespace().count(),
        control: [None; 4],
    };
    texts.iter().map(fact).collect()
}

fn alternating(texts: &[String]) -> Texts {
    let labels: Vec<bool> = (0..texts.len()).map(|place| place % 2 == 0).collect();
    Texts::new(texts, &labels, facts(texts))
}

#[test]
fn lists_of_one_kind_are_comparable_where_they_are_long_enough() {
    let long = alternating(&drawn(400, |_, words| words.join(" "))).comparability();
    assert_eq!(long.state, ComparabilityState::Comparable, "{long:?}");
    assert_eq!(long.measures.len(), 3);
    let short = alternating(&drawn(24, |_, words| words.join(" "))).comparability();
    assert!(short.upper_bound > 0.65 && short.state != ComparabilityState::Comparable, "{short:?}");
}

#[test]
fn white_space_alone_is_found_and_named() {
    let separator = |place: usize| if place.is_multiple_of(2) { " " } else { "  " };
    let spaced = alternating(&drawn(100, |place, words| words.join(separator(place)))).comparability();
    assert_eq!(spaced.state, ComparabilityState::ListsDiffer);
    let characters = spaced.measures.iter().find(|measure| measure.measure == Measure::Characters).unwrap();
    assert!(characters.auroc > 0.99, "{spaced:?}");
    let is_blank = |ngram: &SeparatingNgram| ngram.ngram == "  " && ngram.members == 0.0;
    assert!(characters.separating.iter().any(is_blank), "{spaced:?}");
}

#[test]
fn a_group_of_another_kind_on_one_side_shows_and_within_groups_it_does_not() {
    // Two kinds of texts, one of which is more frequent among members: 3 of 4 against 1 of 4.
    let kind = |place: usize| if place.is_multiple_of(2) { !place.is_multiple_of(8) } else { place % 8 == 1 };
    let write = |place: usize, words: Vec<String>| words.join(if kind(place) { " " } else { "; " });
    let mut texts = alternating(&drawn(400, write));
    assert_eq!(texts.comparability().state, ComparabilityState::ListsDiffer);
    texts.strata = (0..400).map(|place| usize::from(kind(place))).collect();
    let within = texts.comparability();
    assert_eq!(within.state, ComparabilityState::Comparable, "{within:?}");
}

#[test]
fn what_cannot_be_compared() {
    let one_label = Texts::new(&TEXTS.map(str::to_owned), &[true; 10], vec![TextFacts::default(); 10]);
    assert_eq!(ComparabilityFit::new(&one_label.compared(), &|| true), None);
    assert_eq!(ComparabilityFit::new(&Texts::ten().compared(), &|| false), None);
    // Two clusters of a label: without two folds there is none.
    let mut few = Texts::ten();
    few.clusters = vec![0, 1, 2, 3, 0, 5, 1, 7, 1, 9];
    assert_eq!(ComparabilityFit::new(&few.compared(), &|| true), None);
    let equal = alternating(&vec!["the same".to_owned(); 40]).comparability();
    assert_eq!((equal.auroc, equal.standard_error), (0.5, 0.0));
}

#[test]
fn threads_do_not_matter() {
    let texts = alternating(&drawn(60, |_, words| words.join(" ")));
    assert_same_on_any_threads(|| ComparabilityFit::new(&texts.compared(), &|| true).unwrap());
}
