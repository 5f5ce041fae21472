//! Two lists of texts that are told apart without the model. Copies of a text count as one.

use super::results::SampleScores;
use mia::methods::zlib_bytes;
use mia::statistics::{
    CharacterNgrams, CharacterTable, ClusteredTexts, Comparability, ComparabilityFit, ComparedTexts, TextFacts,
    WordPairTable, WordTable,
};
use mia::texts::TextDigest;
use rayon::prelude::*;
use std::collections::HashMap;

/// Features of labelled texts without a model, where copies of a text are left out; empty for texts without labels.
pub struct SampleTexts {
    /// True if the texts may be quoted in a report.
    pub retained: bool,
    pub words: WordTable,
    pub characters: CharacterTable,
    pub word_pairs: WordPairTable,
    /// The bytes of each distinct text, and those that zlib makes of them.
    pub bytes: Vec<[usize; 2]>,
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

    /// Adds the texts of the next rows.
    pub fn extend(&mut self, texts: &[&str]) {
        let is_first = |row: usize| self.rows[self.places[row]] == row;
        let new: Vec<&str> =
            (self.added..).zip(texts).filter(|(row, _)| is_first(*row)).map(|(_, text)| *text).collect();
        self.added += texts.len();
        let read: Vec<(CharacterNgrams, usize)> =
            new.par_iter().map(|text| (self.characters.ngrams(text), zlib_bytes(text))).collect();
        for (text, (characters, zlib_bytes)) in new.iter().zip(read) {
            self.words.add(text);
            self.word_pairs.add(text);
            self.characters.add(&characters);
            self.bytes.push([text.len(), zlib_bytes]);
        }
    }

    /// The first row of each distinct text.
    pub fn rows(&self) -> &[usize] {
        &self.rows
    }

    /// The place of each row's text among the distinct ones.
    pub fn places(&self) -> &[usize] {
        &self.places
    }
}

/// Facts about the distinct texts of two lists, in the order of [`SampleTexts::rows`].
pub struct TextLists {
    pub labels: Vec<bool>,
    pub clusters: Vec<usize>,
    strata: Vec<usize>,
    pub facts: Vec<TextFacts>,
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
        let distinct = texts.rows();
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
        let is_compared = |text: usize| is_compared(texts.rows()[text]);
        fit.comparability(&self.compared(texts), &clustered, is_compared, texts.retained)
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
