//! Text that known works share with the works tested: other editions, quotations, the same book with another cut.
//!
//! A calibration keeps a sample of the n-grams of each passage of a work. The works tested are read once, and each of their
//! n-grams is looked up. The rule looks at texts alone, at no score: a known work that shares much is left out; of one that shares
//! little the passages with the shared text are, and so are those of the works tested, so that both lists lose the same text.

use super::error::AuditFailure;
use super::findings::{SharedTextFindings, SharedTextState, SharedWork};
use super::results::{AuditResults, MAX_NAMED, SampleScores};
use super::sample_index::fold_samples;
use crate::datasets::{Sample, SampleBlocks, SampleId};
use crate::scorer::Workers;
use indexmap::IndexMap;
use mia::texts::{NGRAM_WORDS, NgramSamples, ngram_hashes, word_hashes, words_of_run};
use rayon::prelude::*;
use std::collections::{HashMap, HashSet};

/// The share of its n-grams, or of those of a work tested, from which on a known work is left out.
const SHARE: f64 = 0.1;

/// The number of words in a row of a work tested from which on a known work is left out.
const RUN: usize = 100;

/// The place of an n-gram that no work tested has.
const NOWHERE: u32 = u32::MAX;

/// Keeps a sample of the n-grams of each text that is part of a document in its row.
pub async fn add_ngrams(
    results: &mut AuditResults,
    samples: &SampleBlocks,
    workers: &Workers,
) -> Result<(), AuditFailure> {
    let add = |mut kept: NgramSamples, chunk: Vec<(usize, Sample)>| {
        let words =
            |(_, sample): &(usize, Sample)| sample.document.as_ref().map_or(Vec::new(), |_| word_hashes(&sample.text));
        let words: Vec<Vec<u64>> = chunk.par_iter().map(words).collect();
        words.iter().for_each(|words| kept.add(words));
        Ok(kept)
    };
    let (step, texts) = fold_samples(samples, workers, NgramSamples::default(), add, |_| {}).await?.finish();
    results.ngram_step = Some(step);
    results.rows.iter_mut().zip(texts).for_each(|(row, ngrams)| row.ngrams = ngrams);
    Ok(())
}

/// The texts that are left out of the comparison, and why.
#[derive(Clone, Debug, Default)]
pub struct SharedText {
    pub findings: SharedTextFindings,
    /// Rows of the calibration.
    pub known: HashSet<usize>,
    /// Rows of the audit.
    pub tested: HashSet<usize>,
}

impl SharedText {
    /// Compares the samples of an audit with the known works of its calibration, of whose rows the n-grams have this distance;
    /// `None` where that has no works.
    pub async fn find(
        samples: &SampleBlocks,
        known: &[SampleScores],
        step: Option<usize>,
        workers: &Workers,
    ) -> Result<Option<Self>, AuditFailure> {
        let works = known_works(known);
        if works.is_empty() {
            return Ok(None);
        }
        let Some(step) = step else { return Ok(Some(Self::default())) };
        let search = Search::new(known);
        let search = fold_samples(samples, workers, search, |search, chunk| Ok(search.with(&chunk)), |_| {}).await?;
        Ok(Some(search.finish(&works, known, step)))
    }
}

/// The rows of each known document.
fn known_works(rows: &[SampleScores]) -> Vec<(SampleId, Vec<usize>)> {
    let mut works: IndexMap<String, (SampleId, Vec<usize>)> = IndexMap::new();
    for (place, row) in rows.iter().enumerate() {
        if let Some(document) = &row.document {
            works.entry(document.to_string()).or_insert_with(|| (document.clone(), Vec::new())).1.push(place);
        }
    }
    works.into_values().collect()
}

/// A search of the works tested for the n-grams of known works.
struct Search {
    /// By the hash of each known n-gram: the first work tested that has it.
    holders: HashMap<u64, u32>,
    /// The others that have it, where several do.
    more_holders: HashMap<u64, Vec<u32>>,
    works: IndexMap<String, TestedWork>,
    /// The work of the text before and its last words, which the next text continues if it is of the same work.
    last: (u32, Vec<u64>),
    /// The known n-grams in each text, each once.
    rows: Vec<Vec<u64>>,
}

/// The words of a text behind the end of the text before it, so that they have the n-grams across the two; and the number of their
/// n-grams that the text before has as well. Where cuts overlap, a text begins with the last words of the one before.
fn continued(before: &[u64], words: &[u64]) -> (Vec<u64>, usize) {
    let longest = before.len().min(words.len());
    let repeated = (0..=longest).rev().find(|&count| before.ends_with(&words[..count])).unwrap_or(0);
    let tail = before.len().min(repeated.max(NGRAM_WORDS - 1));
    let text = [&before[before.len() - tail..], &words[repeated..]].concat();
    (text, (tail + 1).saturating_sub(NGRAM_WORDS))
}

/// A work whose texts are tested.
struct TestedWork {
    name: Option<SampleId>,
    ngrams: usize,
}

impl Search {
    fn new(known: &[SampleScores]) -> Self {
        let holders = known.iter().flat_map(|row| row.ngrams.iter().map(|&hash| (hash, NOWHERE))).collect();
        let (works, last) = (IndexMap::new(), (NOWHERE, Vec::new()));
        Self { holders, more_holders: HashMap::new(), works, last, rows: Vec::new() }
    }

    /// Looks up the n-grams of the next texts.
    fn with(mut self, samples: &[(usize, Sample)]) -> Self {
        let words: Vec<Vec<u64>> = samples.par_iter().map(|(_, sample)| word_hashes(&sample.text)).collect();
        for ((_, sample), words) in samples.iter().zip(words) {
            let row = self.rows.len();
            let work = self.work(row, sample);
            let (work_before, before) = std::mem::take(&mut self.last);
            let (text, counted_before) = if work_before == work { continued(&before, &words) } else { (words, 0) };
            let mut shared = Vec::new();
            let mut ngrams = 0;
            for hash in ngram_hashes(&text) {
                ngrams += 1;
                if let Some(holder) = self.holders.get_mut(&hash) {
                    shared.push(hash);
                    if *holder == NOWHERE {
                        *holder = work;
                    } else if *holder != work {
                        let others = self.more_holders.entry(hash).or_default();
                        if !others.contains(&work) {
                            others.push(work);
                        }
                    }
                }
            }
            if let Some((_, tested)) = self.works.get_index_mut(work as usize) {
                tested.ngrams += ngrams - counted_before;
            }
            shared.sort_unstable();
            shared.dedup();
            self.rows.push(shared);
            self.last = (work, text);
        }
        self
    }

    /// The number of the work that a text is of: its document, or the text alone.
    fn work(&mut self, row: usize, sample: &Sample) -> u32 {
        let key = match &sample.document {
            Some(document) => format!("document {document}"),
            None => format!("text {row}"),
        };
        let name = || sample.document.as_ref().or(sample.id.as_ref()).cloned();
        let entry = self.works.entry(key);
        let place = entry.index();
        entry.or_insert_with(|| TestedWork { name: name(), ngrams: 0 });
        u32::try_from(place).unwrap_or(NOWHERE)
    }

    /// Decides what is left out. `step` is the distance of the known n-grams that are kept.
    fn finish(self, works: &[(SampleId, Vec<usize>)], known: &[SampleScores], step: usize) -> SharedText {
        let mut shared = SharedText::default();
        let mut quoted: HashSet<u64> = HashSet::new();
        let is_held = |hash: &u64| self.holders.get(hash).is_some_and(|&holder| holder != NOWHERE);
        let mut left_out = Vec::new();
        for (document, rows) in works {
            let ngrams = || rows.iter().flat_map(|&row| known[row].ngrams.iter().copied());
            match self.shared_work(document, ngrams(), step) {
                Some(work) => {
                    shared.known.extend(rows);
                    left_out.push(work);
                }
                None => {
                    let held = rows.iter().filter(|&&row| known[row].ngrams.iter().any(is_held));
                    shared.known.extend(held.clone());
                    shared.findings.known_passages += held.count();
                    quoted.extend(ngrams().filter(is_held));
                }
            }
        }
        let is_quoting = |(_, hashes): &(usize, &Vec<u64>)| hashes.iter().any(|hash| quoted.contains(hash));
        shared.tested = self.rows.iter().enumerate().filter(is_quoting).map(|(row, _)| row).collect();
        shared.findings = SharedTextFindings {
            state: SharedTextState::Checked,
            shortest_run: Some(step - 1 + NGRAM_WORDS),
            works: left_out.len(),
            tested_passages: shared.tested.len(),
            known_passages: shared.findings.known_passages,
            left_out: left_out.into_iter().take(MAX_NAMED).collect(),
        };
        shared
    }

    /// All works tested that have a known n-gram.
    fn holders(&self, hash: u64) -> impl Iterator<Item = u32> {
        let first = self.holders.get(&hash).copied().filter(|holder| *holder != NOWHERE);
        first.into_iter().chain(self.more_holders.get(&hash).into_iter().flatten().copied())
    }

    /// The largest number of n-grams of a known work, one after another, that one work tested has.
    fn longest(&self, ngrams: impl Iterator<Item = u64>) -> usize {
        let (mut runs, mut longest): (HashMap<u32, usize>, usize) = (HashMap::new(), 0);
        for hash in ngrams {
            runs = self.holders(hash).map(|work| (work, runs.get(&work).map_or(1, |run| run + 1))).collect();
            longest = runs.values().copied().fold(longest, usize::max);
        }
        longest
    }

    /// A known work with these n-grams, in order of its passages, as it is left out; `None` if it shares too little for that. An n-gram that it
    /// repeats counts once: a refrain is a quotation, however often it comes.
    fn shared_work(
        &self,
        document: &SampleId,
        ngrams: impl Iterator<Item = u64> + Clone,
        step: usize,
    ) -> Option<SharedWork> {
        let longest = self.longest(ngrams.clone());
        let distinct: HashSet<u64> = ngrams.collect();
        let mut by_work: IndexMap<u32, usize> = IndexMap::new();
        let mut held = 0;
        for &hash in &distinct {
            let mut is_held = false;
            for holder in self.holders(hash) {
                *by_work.entry(holder).or_default() += 1;
                is_held = true;
            }
            held += usize::from(is_held);
        }
        let all = held as f64 / distinct.len().max(1) as f64;
        let tested = |work: u32| self.works.get_index(work as usize).map(|(_, tested)| tested);
        let of_tested = by_work.iter().filter_map(|(&work, &count)| {
            let share = (count * step) as f64 / tested(work)?.ngrams.max(1) as f64;
            Some(share.min(1.0))
        });
        let share = of_tested.fold(all, f64::max);
        let longest_run = words_of_run(longest, step);
        if longest == 0 || (share < SHARE && longest_run < RUN) {
            return None;
        }
        // The one with the largest share of its own; of several the first, whatever the order of the map.
        let size = |work: u32| tested(work).map_or(1, |tested| tested.ngrams.max(1));
        let most = by_work.iter().max_by(|(one, count), (other, others)| {
            let shares = (**count * size(**other)).cmp(&(**others * size(**one)));
            shares.then(other.cmp(one))
        });
        let with = most.and_then(|(&work, _)| tested(work)?.name.clone());
        Some(SharedWork { document: document.clone(), with, share, longest_run })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Words that no other range of numbers has.
    fn words(numbers: std::ops::Range<usize>) -> Vec<String> {
        numbers.map(|number| format!("w{number}")).collect()
    }

    /// The passages of a work, each of `cut` words.
    fn work(document: &str, words: &[String], cut: usize) -> Vec<Sample> {
        let document = Some(SampleId::Text(document.to_owned()));
        words
            .chunks(cut)
            .map(|text| Sample { text: text.join(" "), document: document.clone(), ..Sample::default() })
            .collect()
    }

    /// The texts that are left out where the second list is tested.
    fn shared(known: &[Sample], tested: &[Sample]) -> SharedText {
        let mut ngrams = NgramSamples::default();
        known.iter().for_each(|sample| ngrams.add(&word_hashes(&sample.text)));
        let (step, ngrams) = ngrams.finish();
        let row = |(sample, ngrams)| SampleScores { ngrams, ..SampleScores::unknown(sample, 0) };
        let rows: Vec<SampleScores> = known.iter().zip(ngrams).map(row).collect();
        let numbered: Vec<(usize, Sample)> = tested.iter().cloned().enumerate().collect();
        // In two parts, as samples are read.
        let (first, second) = numbered.split_at(numbered.len() / 2);
        Search::new(&rows).with(first).with(second).finish(&known_works(&rows), &rows, step)
    }

    fn rows(left_out: &HashSet<usize>) -> Vec<usize> {
        let mut rows: Vec<usize> = left_out.iter().copied().collect();
        rows.sort_unstable();
        rows
    }

    #[test]
    fn another_cut_of_a_work_is_recognised() {
        let book = words(0..2_000);
        let known: Vec<Sample> = work("other.txt", &words(5_000..7_000), 128)
            .into_iter()
            .chain(work("edition.txt", &book[50..], 100))
            .collect();
        for cut in [64, 128, 2_000] {
            let shared = shared(&known, &work("book.txt", &book, cut));
            let findings = &shared.findings;
            assert_eq!((findings.works, findings.known_passages, findings.tested_passages), (1, 0, 0), "{cut}");
            let left_out = &findings.left_out[0];
            assert_eq!((left_out.document.to_string(), &left_out.share), ("edition.txt".to_owned(), &1.0));
            assert!(left_out.longest_run > 1_500 && findings.shortest_run == Some(20), "{left_out:?}");
            assert_eq!(left_out.with, Some(SampleId::Text("book.txt".to_owned())));
            assert_eq!(rows(&shared.known), (16..16 + 20).collect::<Vec<_>>());
        }
    }

    #[test]
    fn both_sides_lose_the_passages_of_a_quotation() {
        // 30 words, in the second passage of the known work and in the third of the one tested.
        let quotation = words(0..30);
        let with = |before, after| [words(before), quotation.clone(), words(after)].concat();
        let known = work("known.txt", &with(1_000..1_140, 1_140..1_630), 128);
        let tested = work("book.txt", &with(2_000..2_270, 2_270..2_600), 128);
        let shared = shared(&known, &tested);
        assert_eq!((rows(&shared.known), rows(&shared.tested)), (vec![1], vec![2]));
        let findings = &shared.findings;
        assert_eq!((findings.works, findings.known_passages, findings.tested_passages), (0, 1, 1));
        let sentence = findings.sentence().unwrap();
        assert_eq!(
            sentence,
            "1 passage of other known works and 1 of the works tested are left out, which hold shorter text that both have"
        );
        // A hundred words in a row are no quotation.
        let known = work("known.txt", &[words(0..120), words(3_000..9_000)].concat(), 128);
        let shared = self::shared(&known, &work("book.txt", &[words(0..120), words(10_000..16_000)].concat(), 128));
        assert_eq!((shared.findings.works, shared.known.len()), (1, known.len()));
        assert!((100..=120).contains(&shared.findings.left_out[0].longest_run), "{:?}", shared.findings);
    }

    #[test]
    fn overlapping_passages_count_their_ngrams_once() {
        let (book, known) = (words(0..2_000), work("edition.txt", &words(1_600..4_000), 128));
        let passages: Vec<String> =
            (0..2_000).step_by(64).map(|start| book[start..2_000.min(start + 128)].join(" ")).collect();
        let sample = |text| Sample { text, ..work("book.txt", &book[..1], 1).remove(0) };
        let overlapping: Vec<Sample> = passages.into_iter().map(sample).collect();
        let [once, twice] = [work("book.txt", &book, 128), overlapping].map(|tested| shared(&known, &tested).findings);
        assert_eq!(once.left_out, twice.left_out);
        // Both share 400 words: a fifth of the work tested, and a sixth of the known one.
        assert!((0.18..0.21).contains(&once.left_out[0].share), "{once:?}");
        for (before, words, text, counted) in [
            (0..20, 20..40, 8..40, 0),
            (0..20, 15..40, 8..40, 0),
            (0..20, 0..40, 0..40, 8),
            (0..5, 5..9, 0..9, 0),
            (0..0, 5..9, 5..9, 0),
        ] {
            let [before, words, text] = [before, words, text].map(Vec::<u64>::from_iter);
            assert_eq!(continued(&before, &words), (text, counted));
        }
    }

    #[test]
    fn a_phrase_is_not_shared_text() {
        let with = |numbers| [words(0..12), words(numbers)].concat();
        let shared = shared(&work("known.txt", &with(100..900), 128), &work("book.txt", &with(1_000..1_900), 128));
        assert_eq!(shared.findings.sentence(), None);
        assert!(shared.known.is_empty() && shared.tested.is_empty());
    }

    /// A refrain is a quotation, however often the known work repeats it.
    #[test]
    fn a_repeated_refrain_counts_once() {
        let (song, book) = (words(100..700), words(1_000..3_000));
        let verses: Vec<String> = song.chunks(20).flat_map(|verse| [verse, &words(0..24)].concat()).collect();
        let shared = shared(&work("song.txt", &verses, 128), &work("book.txt", &[book, words(0..24)].concat(), 128));
        assert_eq!(shared.findings.works, 0, "{:?}", shared.findings);
        assert!(!shared.known.is_empty() && shared.tested.len() == 1);
    }

    /// The order of the works tested decides nothing.
    #[test]
    fn a_work_that_another_one_holds_as_well_is_compared_with_known_works() {
        let poem = words(0..60);
        let known = work("anthology.txt", &[words(100..2_000), poem.clone()].concat(), 128);
        let [alone, within] =
            [work("poem.txt", &poem, 128), work("big.txt", &[words(3_000..5_000), poem].concat(), 128)];
        for tested in [[alone.clone(), within.clone()].concat(), [within, alone].concat()] {
            let findings = shared(&known, &tested).findings;
            assert_eq!(findings.works, 1, "{findings:?}");
            assert_eq!(findings.left_out[0].with, Some(SampleId::Text("poem.txt".to_owned())));
        }
    }

    /// A short work within a long one shares little of that, and all of its own.
    #[test]
    fn a_poem_in_an_anthology_is_recognised() {
        let poem = words(0..60);
        let known = work("anthology.txt", &[words(1_000..9_000), poem.clone()].concat(), 128);
        let alone = Sample { text: poem.join(" "), id: Some(SampleId::Text("poem".to_owned())), ..Sample::default() };
        let shared = shared(&known, &[alone]);
        let left_out = &shared.findings.left_out[0];
        assert!(left_out.share > 0.5 && left_out.longest_run < RUN, "{left_out:?}");
        assert_eq!(left_out.with, Some(SampleId::Text("poem".to_owned())));
        assert!(shared.tested.is_empty());
    }

    #[tokio::test]
    async fn a_calibration_without_ngrams_is_not_checked() {
        let [works, texts] = [Some("a.txt"), None].map(|document: Option<&str>| {
            let document = document.map(|name| SampleId::Text(name.to_owned()));
            vec![SampleScores::unknown(&Sample { document, ..Sample::default() }, 0)]
        });
        let (samples, workers) = (SampleBlocks::Memory(Vec::new().into()), Workers::new(1).unwrap());
        let find = async |rows: &[SampleScores]| SharedText::find(&samples, rows, None, &workers).await.unwrap();
        assert_eq!(find(&works).await.unwrap().findings, SharedTextFindings::default());
        assert!(find(&texts).await.is_none());
    }
}
