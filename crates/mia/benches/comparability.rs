//! Times the classifier that compares two lists of texts, and the permutation tests beside it:
//!
//!     cargo bench --bench comparability -- [--texts 100000] [--words 100]
//!
//! Prints one JSON object: seconds to read the texts and to fit and score by all measures, the bytes of memory that takes at its peak
//! beside the texts (Linux), and the seconds of 9,999 permutations of two AUROCs of 800 clusters and of their difference, the best of five.

use mia::methods::zlib_bytes;
use mia::statistics::{
    CharacterTable, ClusteredTexts, ComparabilityFit, ComparedTexts, RankColumn, TextFacts, WordPairTable, WordTable,
    max_t,
};
use mia::texts::TextDigest;
use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::{Rng, SeedableRng};
use rayon::prelude::*;
use std::time::Instant;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).filter(|argument| argument != "--bench").collect();
    let option = |name: &str, default: usize| -> Result<usize, std::num::ParseIntError> {
        let value = arguments.iter().skip_while(|argument| *argument != name).nth(1);
        value.map_or(Ok(default), |value| value.parse())
    };
    let texts = corpus(option("--texts", 100_000)?, option("--words", 100)?);
    let before = memory("VmRSS").unwrap_or(0);
    let start = Instant::now();
    let mut words = WordTable::new(texts.len());
    let mut characters = CharacterTable::new(texts.len());
    let mut word_pairs = WordPairTable::new(texts.len());
    let mut facts = Vec::new();
    for chunk in texts.chunks(512) {
        let ngrams: Vec<_> = chunk.par_iter().map(|text| (characters.ngrams(text), zlib_bytes(text))).collect();
        for (text, (ngrams, zlib_bytes)) in chunk.iter().zip(ngrams) {
            words.add(text);
            word_pairs.add(text);
            characters.add(&ngrams);
            let scored_tokens = text.len() / 4;
            facts.push(TextFacts {
                bytes: text.len(),
                zlib_bytes,
                scored_tokens,
                control: [Some(zlib_bytes as f64); 4],
            });
        }
    }
    let read = start.elapsed().as_secs_f64();
    let labels: Vec<bool> = (0..texts.len()).map(|place| place % 2 == 0).collect();
    let (clusters, strata): (Vec<usize>, Vec<usize>) = ((0..texts.len()).collect(), vec![0; texts.len()]);
    let compared = ComparedTexts {
        labels: &labels,
        clusters: &clusters,
        strata: &strata,
        words: &words,
        characters: &characters,
        word_pairs: &word_pairs,
        facts: &facts,
    };
    let fit = ComparabilityFit::new(&compared, &|| true).ok_or("the texts cannot be compared")?;
    let digests: Vec<TextDigest> = texts.iter().map(|text| TextDigest::new(text)).collect();
    let clustered = ClusteredTexts::new(&labels, &clusters, &strata, &digests);
    let found = fit.comparability(&compared, &clustered, |_| true, true).ok_or("there is no pair to compare")?;
    let (fitted, peak) = (start.elapsed().as_secs_f64(), memory("VmHWM").unwrap_or(0));
    println!(
        "{}",
        serde_json::json!({
            "texts": texts.len(),
            "seconds_read": read,
            "seconds": fitted,
            "peak_bytes": peak.saturating_sub(before),
            "auroc": found.auroc,
            "seconds_permutations": permutations(),
        })
    );
    Ok(())
}

/// `texts` texts of `words` words from a vocabulary of 100,000 with Zipf frequencies.
fn corpus(texts: usize, words: usize) -> Vec<String> {
    let mut random = ChaCha8Rng::seed_from_u64(1);
    let mut word = || format!("w{}", 100_000_f64.powf(random.next_u32() as f64 / 2_f64.powi(32)) as usize);
    (0..texts).map(|_| (0..words).map(|_| word()).collect::<Vec<_>>().join(" ")).collect()
}

fn permutations() -> f64 {
    let mut random = ChaCha8Rng::seed_from_u64(2);
    let mut scores = || -> Vec<Option<f64>> { (0..800).map(|_| Some(f64::from(random.next_u32()))).collect() };
    let (target, control, strata) = (scores(), scores(), vec![0; 800]);
    let labels: Vec<bool> = (0..800).map(|place| place < 400).collect();
    let once = |_| {
        let start = Instant::now();
        let columns = [
            RankColumn::new(&target, &strata),
            RankColumn::new(&control, &strata),
            RankColumn::difference(&target, &control, &strata),
        ];
        max_t(&labels, &strata, &columns, 9_999, 0, &|| true);
        start.elapsed().as_secs_f64()
    };
    (0..5).map(once).fold(f64::INFINITY, f64::min)
}

/// A line of this process's status in bytes; `None` where there is no such file.
fn memory(line: &str) -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let kilobytes = status.lines().find_map(|known| known.strip_prefix(line)?.strip_prefix(':'))?;
    Some(1024 * kilobytes.trim().trim_end_matches(" kB").parse::<u64>().ok()?)
}
