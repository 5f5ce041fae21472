//! Two lists of texts that are told apart without the model. Copies of a text count as one.

use super::clusters::strata;
use super::evidence::PERMUTATION_SEED;
use super::findings::{BlindFindings, LengthFindings};
use super::results::{AuditResults, SampleScores};
use crate::datasets::Sample;
use mia::methods::zlib_bytes;
use mia::statistics::{
    CharacterNgrams, CharacterTable, ClusteredTexts, Comparability, ComparabilityFit, ComparedTexts, LabelledScore,
    TextFacts, WordPairTable, WordTable, auroc, words_baseline,
};
use mia::texts::TextDigest;
use rayon::prelude::*;
use std::collections::HashMap;

/// Features of labelled texts without a model, where copies of a text are left out; empty for texts without labels.
pub struct SampleTexts {
    /// True if the texts may be quoted in a report.
    retained: bool,
    words: WordTable,
    characters: CharacterTable,
    word_pairs: WordPairTable,
    /// The bytes of each distinct text, and those that zlib makes of them.
    bytes: Vec<[usize; 2]>,
    /// The first row of each distinct text.
    rows: Vec<usize>,
    /// The place of each row's text among the distinct ones.
    places: Vec<usize>,
    /// The number of rows that were added.
    added: usize,
}

impl SampleTexts {
    /// Creates empty tables for rows whose texts have these digests.
    pub fn new(digests: impl Iterator<Item = TextDigest>, retained: bool) -> Self {
        let (mut rows, mut known) = (Vec::new(), HashMap::new());
        let place = |(row, digest)| {
            *known.entry(digest).or_insert_with(|| {
                rows.push(row);
                rows.len() - 1
            })
        };
        let places = (0..).zip(digests).map(place).collect();
        Self {
            retained,
            words: WordTable::new(rows.len()),
            characters: CharacterTable::new(rows.len()),
            word_pairs: WordPairTable::new(rows.len()),
            bytes: Vec::new(),
            rows,
            places,
            added: 0,
        }
    }

    /// Adds the texts of the next rows, which are the samples whose number `is_row`.
    pub fn with(mut self, samples: &[(usize, Sample)], is_row: impl Fn(usize) -> bool) -> Self {
        let is_first = |row: usize| self.rows[self.places[row]] == row;
        let texts = samples.iter().filter(|(number, _)| is_row(*number)).map(|(_, sample)| &*sample.text);
        let texts: Vec<(usize, &str)> = (self.added..).zip(texts).collect();
        self.added += texts.len();
        let new: Vec<&str> = texts.into_iter().filter(|(row, _)| is_first(*row)).map(|(_, text)| text).collect();
        let read: Vec<(CharacterNgrams, usize)> =
            new.par_iter().map(|text| (self.characters.ngrams(text), zlib_bytes(text))).collect();
        for (text, (characters, zlib_bytes)) in new.iter().zip(read) {
            self.words.add(text);
            self.word_pairs.add(text);
            self.characters.add(&characters);
            self.bytes.push([text.len(), zlib_bytes]);
        }
        self
    }
}

/// Facts about the distinct texts of two lists, in their order.
pub struct TextLists {
    labels: Vec<bool>,
    clusters: Vec<usize>,
    strata: Vec<usize>,
    facts: Vec<TextFacts>,
    digests: Vec<TextDigest>,
}

impl TextLists {
    /// Selects the distinct texts of `rows`, which have the given labels, clusters and groups in the same order. The control's
    /// measures count if both lists have them.
    pub fn new(
        rows: &[&SampleScores],
        labels: &[bool],
        clusters: &[usize],
        strata: &[usize],
        texts: &SampleTexts,
    ) -> Self {
        let is_measured = |label: bool| {
            labels.iter().zip(rows).any(|(&member, row)| member == label && row.control_measures.is_some())
        };
        let with_control = is_measured(true) && is_measured(false);
        let fact = |(&row, &[bytes, zlib_bytes]): (&usize, &[usize; 2])| TextFacts {
            bytes,
            zlib_bytes,
            scored_tokens: rows[row].scored_tokens,
            control: rows[row].control_measures.filter(|_| with_control).unwrap_or_default(),
        };
        let distinct = &texts.rows;
        Self {
            labels: distinct.iter().map(|&row| labels[row]).collect(),
            clusters: distinct.iter().map(|&row| clusters[row]).collect(),
            strata: distinct.iter().map(|&row| strata[row]).collect(),
            facts: distinct.iter().zip(&texts.bytes).map(fact).collect(),
            digests: distinct.iter().map(|&row| rows[row].text).collect(),
        }
    }

    /// Fits the classifier; `None` if a list has too few clusters, or once it is not `wanted`.
    pub fn fit(&self, texts: &SampleTexts, wanted: &dyn Fn() -> bool) -> Option<ComparabilityFit> {
        ComparabilityFit::new(&self.compared(texts), wanted)
    }

    /// Computes the separation of the lists over the rows that `is_compared`.
    pub fn comparability(
        &self,
        fit: &ComparabilityFit,
        texts: &SampleTexts,
        is_compared: impl Fn(usize) -> bool,
    ) -> Option<Comparability> {
        let clustered = ClusteredTexts::new(&self.labels, &self.clusters, &self.strata, &self.digests);
        let is_compared = |text: usize| is_compared(texts.rows[text]);
        fit.comparability(&self.compared(texts), &clustered, is_compared, texts.retained)
    }

    fn blind_findings(&self, texts: &SampleTexts, wanted: &dyn Fn() -> bool) -> BlindFindings {
        let mut words = words_baseline(&texts.words, &self.labels, &self.clusters, PERMUTATION_SEED, wanted);
        if let Some(words) = words.as_mut().filter(|_| !texts.retained) {
            words.top_words = None;
        }
        // `None` if a class is missing.
        let feature_auroc = |feature: fn(&TextFacts) -> f64| {
            let sample = |(facts, &member): (&TextFacts, &bool)| LabelledScore { score: feature(facts), member };
            auroc(&self.facts.iter().zip(&self.labels).map(sample).collect::<Vec<_>>()).ok()
        };
        let lengths = LengthFindings {
            scored_tokens: feature_auroc(|facts| facts.scored_tokens as f64),
            bytes_per_zlib_byte: feature_auroc(|facts| facts.bytes as f64 / facts.zlib_bytes as f64),
        };
        BlindFindings { words, lengths }
    }

    fn compared<'a>(&'a self, texts: &'a SampleTexts) -> ComparedTexts<'a> {
        ComparedTexts {
            labels: &self.labels,
            clusters: &self.clusters,
            strata: &self.strata,
            words: &texts.words,
            characters: &texts.characters,
            word_pairs: &texts.word_pairs,
            facts: &self.facts,
        }
    }
}

/// Adds what the texts of labelled samples show without the model. Of the rows that `is_counted`, those with a score in the
/// column `primary` are compared. Words of texts that are not retained are not shown.
pub fn add_blind_findings(
    results: &mut AuditResults,
    primary: Option<usize>,
    texts: &SampleTexts,
    clusters: &[usize],
    is_counted: impl Fn(usize) -> bool,
    wanted: &dyn Fn() -> bool,
) {
    let Some(labels) = results.labels() else { return };
    let rows: Vec<&SampleScores> = results.rows.iter().collect();
    let lists = TextLists::new(&rows, &labels, clusters, &strata(&results.rows), texts);
    results.blind = Some(lists.blind_findings(texts, wanted));
    let Some(fit) = lists.fit(texts, wanted) else { return };
    let is_scored = |row: usize| primary.is_none_or(|place| results.rows[row].scores[place].is_some());
    results.comparability = lists.comparability(&fit, texts, |row| is_counted(row) && is_scored(row));
    for (row, &place) in results.rows.iter_mut().zip(&texts.places) {
        row.log_odds = Some(fit.log_odds[place]);
    }
}
