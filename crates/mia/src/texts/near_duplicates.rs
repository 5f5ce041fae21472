//! Which texts are one cluster: those of the same document, those that are equal but for case and white space, and
//! those that share most of their runs of five words (`methods.md`, "Unit: the cluster").
//!
//! A search reads the texts twice. From the first pass it keeps a [`TextSketch`] of 144 bytes for each text, and tells
//! from the sketches which texts may be similar to another one; from the second pass it keeps the [`Shingles`] of those
//! alone, and decides each pair by them.

use super::digest::TextDigest;
use super::shingles::{BANDS, Shingles, TextSketch};
use rayon::prelude::*;
use std::collections::HashMap;

/// The cluster of each of `texts`, from 0 by first appearance: [`NearDuplicateSearch`] for texts that are in memory.
#[must_use]
pub fn clusters(texts: &[&str]) -> Vec<usize> {
    let sketches = texts.par_iter().map(|text| TextSketch::new(text)).collect();
    let mut search = NearDuplicateSearch::new(sketches, &[], &|| true);
    for (row, text) in texts.iter().enumerate() {
        if search.needs(row) {
            search.add(row, Shingles::new(text));
        }
    }
    search.clusters(&|| true)
}

/// In each bucket, a text is compared with this many texts on either side of it.
const NEIGHBOURS: usize = 16;

/// Finds the clusters of texts: texts are one cluster if they are of the same document, if their digests are equal, or
/// if they are [similar](Shingles::similar), joined transitively. [`clusters`] shows how it is used.
///
/// Texts with an equal band are in one bucket; each text is in 32 buckets. All pairs of a bucket of up to 17 texts
/// are compared. In a larger one, a text is compared with the 16 texts before it and the 16 after it, in the
/// order of the next band, so that pairs with two equal bands in succession are close; pairs that are joined already
/// are not compared at all. A text is therefore compared with at most 32 * 32 others, whatever the texts are.
#[derive(Debug)]
pub struct NearDuplicateSearch {
    sketches: Vec<TextSketch>,
    components: Components,
    /// True for each row that may be similar to another one that it is not joined with.
    candidates: Vec<bool>,
    /// Empty for rows that are no candidates.
    shingles: Vec<Shingles>,
}

impl NearDuplicateSearch {
    /// Prepares the search among the texts of these sketches, in order. `documents` has the digest of the name of each
    /// text's document, where there is one; it may be shorter. O(n log n). Returns early, with fewer candidates, once
    /// `keep_going` returns false.
    #[must_use]
    pub fn new(sketches: Vec<TextSketch>, documents: &[Option<TextDigest>], keep_going: &dyn Fn() -> bool) -> Self {
        let rows = sketches.len();
        let mut components = Components::new(rows);
        join_equal(&mut components, documents.iter().take(rows).copied());
        // Texts with the same digest have the same shingles: the first one stands for all.
        let distinct = join_equal(&mut components, sketches.iter().map(|sketch| Some(sketch.digest)));
        let mut candidates = vec![false; rows];
        for band in (0..BANDS).take_while(|_| keep_going()) {
            let ordered = in_buckets(&sketches, &distinct, band);
            for bucket in ordered.chunk_by(same_bucket) {
                if bucket.windows(2).any(|pair| !components.joined(pair[0].row, pair[1].row)) {
                    bucket.iter().for_each(|place| candidates[place.row] = true);
                }
            }
        }
        Self { sketches, components, candidates, shingles: vec![Shingles::default(); rows] }
    }

    /// Returns true if the shingles of a row are needed to tell its cluster.
    #[must_use]
    pub fn needs(&self, row: usize) -> bool {
        self.candidates.get(row).is_some_and(|candidate| *candidate)
    }

    /// Adds the shingles of a row, which may come in any order. Those of rows that are not needed are dropped.
    pub fn add(&mut self, row: usize, shingles: Shingles) {
        if self.needs(row) {
            self.shingles[row] = shingles;
        }
    }

    /// The cluster of each text, numbered from 0 by first appearance. A needed row without shingles is similar to no
    /// other. Returns early, with too many clusters, once `keep_going` returns false. Runs on rayon's pool, with the
    /// same result on any number of threads.
    #[must_use]
    pub fn clusters(mut self, keep_going: &dyn Fn() -> bool) -> Vec<usize> {
        let rows: Vec<usize> = (0..self.sketches.len()).filter(|&row| self.candidates[row]).collect();
        for band in (0..BANDS).take_while(|_| keep_going()) {
            let ordered = in_buckets(&self.sketches, &rows, band);
            for distance in (1..=NEIGHBOURS).take_while(|_| keep_going()) {
                self.compare(&ordered, distance);
            }
        }
        self.components.numbers()
    }

    /// Joins the similar rows that are in one bucket, this far apart.
    fn compare(&mut self, ordered: &[BucketPlace], distance: usize) {
        let pairs = ordered.iter().zip(ordered.iter().skip(distance)).filter(|(one, other)| same_bucket(one, other));
        let open: Vec<(usize, usize)> = pairs
            .map(|(one, other)| (one.row, other.row))
            .filter(|&(one, other)| !self.components.joined(one, other))
            .collect();
        let similar = |&(one, other): &(usize, usize)| self.shingles[one].similar(&self.shingles[other]);
        let similar: Vec<(usize, usize)> = open.into_par_iter().filter(similar).collect();
        for (one, other) in similar {
            self.components.join(one, other);
        }
    }
}

/// Where a row is among the buckets of a band.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct BucketPlace {
    /// The hash of the band.
    bucket: u32,
    /// The hash of the next band.
    next: u32,
    row: usize,
}

fn same_bucket(one: &BucketPlace, other: &BucketPlace) -> bool {
    one.bucket == other.bucket
}

/// The rows in the order of their buckets in a band.
fn in_buckets(sketches: &[TextSketch], rows: &[usize], band: usize) -> Vec<BucketPlace> {
    let place = |&row: &usize| {
        let bands = &sketches[row].bands;
        BucketPlace { bucket: bands[band], next: bands[(band + 1) % BANDS], row }
    };
    let mut ordered: Vec<BucketPlace> = rows.iter().map(place).collect();
    ordered.par_sort_unstable();
    ordered
}

/// Joins the rows with the same key, and returns the first row of each key.
fn join_equal(components: &mut Components, keys: impl Iterator<Item = Option<TextDigest>>) -> Vec<usize> {
    let mut firsts: HashMap<TextDigest, usize> = HashMap::new();
    let mut distinct = Vec::new();
    for (row, key) in keys.enumerate() {
        let Some(key) = key else { continue };
        let first = *firsts.entry(key).or_insert(row);
        if first == row {
            distinct.push(row);
        }
        components.join(first, row);
    }
    distinct
}

/// The connected components of rows, by union and find (Tarjan 1975). Rows beyond the last one are not joined.
#[derive(Debug)]
struct Components {
    /// A row that is its own parent is the first one of its component.
    parents: Vec<usize>,
}

impl Components {
    /// Every row alone.
    pub fn new(rows: usize) -> Self {
        Self { parents: (0..rows).collect() }
    }

    /// The first row of the component.
    fn first(&mut self, mut row: usize) -> usize {
        while let Some(&parent) = self.parents.get(row) {
            if parent == row {
                break;
            }
            // Halves the path on the way.
            self.parents[row] = self.parents[parent];
            row = self.parents[row];
        }
        row
    }

    fn joined(&mut self, one: usize, other: usize) -> bool {
        self.first(one) == self.first(other)
    }

    fn join(&mut self, one: usize, other: usize) {
        let (one, other) = (self.first(one), self.first(other));
        if let Some(parent) = self.parents.get_mut(one.max(other)) {
            *parent = one.min(other);
        }
    }

    /// The component of each row, numbered from 0 by first appearance.
    fn numbers(mut self) -> Vec<usize> {
        let mut numbers = Vec::with_capacity(self.parents.len());
        let mut components = 0;
        for row in 0..self.parents.len() {
            let first = self.first(row);
            // The first row of a component comes before the others, so it has its number.
            let number = numbers.get(first).copied().unwrap_or(components);
            components += usize::from(first == row);
            numbers.push(number);
        }
        numbers
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::{shuffle, stream};
    use proptest::prelude::*;

    fn join(words: &[u32]) -> String {
        words.iter().map(u32::to_string).collect::<Vec<_>>().join(" ")
    }

    /// The clusters by all pairs.
    fn by_definition(texts: &[&str]) -> Vec<usize> {
        let shingles: Vec<Shingles> = texts.iter().map(|text| Shingles::new(text)).collect();
        let digests: Vec<TextDigest> = texts.iter().map(|text| crate::texts::cluster_digest(text)).collect();
        let mut components = Components::new(texts.len());
        for one in 0..texts.len() {
            for other in 0..one {
                if digests[one] == digests[other] || shingles[one].similar(&shingles[other]) {
                    components.join(one, other);
                }
            }
        }
        components.numbers()
    }

    #[test]
    fn equal_similar_and_other_texts() {
        let words: Vec<u32> = (0..60).collect();
        let (whole, most, half) = (join(&words), join(&words[8..]), join(&words[30..]));
        // The cut of the cut shares too little with the whole, but enough with the cut.
        let less = join(&words[16..]);
        let upper = format!("  {}", whole.replace(' ', "\n"));
        let texts = ["", "other", &whole, &half, &less, &most, " ", &upper, "Other"];
        assert_eq!(clusters(&texts), [0, 1, 2, 3, 2, 2, 0, 2, 1]);
        assert!(!Shingles::new(&whole).similar(&Shingles::new(&less)));
        assert!(clusters(&[]).is_empty());
    }

    #[test]
    fn only_candidates_are_read_again() {
        let words: Vec<u32> = (0..60).collect();
        let texts = [join(&words), join(&words), join(&words[2..]), "alone".to_owned(), join(&words[3..])];
        let sketches = || texts.iter().map(|text| TextSketch::new(text)).collect::<Vec<_>>();
        let book = Some(TextDigest::new("a book"));
        let search = |documents: &[Option<TextDigest>]| NearDuplicateSearch::new(sketches(), documents, &|| true);
        let needed = |search: &NearDuplicateSearch| (0..6).filter(|&row| search.needs(row)).collect::<Vec<_>>();
        // The second text is the first one again.
        assert_eq!(needed(&search(&[])), [0, 2, 4]);
        // Nothing is left to decide.
        let search_in_book = search(&[None, book, book, None, book, book]);
        assert!(needed(&search_in_book).is_empty());
        assert_eq!(search_in_book.clusters(&|| true), [0, 0, 0, 1, 0]);
        // Without the shingles of a text it stays alone, and those of others are ignored.
        let mut incomplete = search(&[]);
        for row in [2, 1, 0, 9] {
            incomplete.add(row, Shingles::new(&texts[0]));
        }
        assert_eq!(incomplete.clusters(&|| true), [0, 0, 0, 1, 2]);
        assert_eq!(search(&[None, None, None, book, book]).clusters(&|| false), [0, 0, 1, 2, 2]);
    }

    /// A thousand texts that all share much, with 500 similar pairs: buckets are too large to compare all pairs.
    #[test]
    fn pairs_are_met_in_large_buckets() {
        let shared: Vec<u32> = (0..60).collect();
        let mut texts: Vec<(u32, String)> = Vec::new();
        for pair in 0..500 {
            let unique: Vec<u32> = (0..40).map(|word| 1000 + 100 * pair + word).collect();
            texts.push((pair, join(&[&shared[..], &unique].concat())));
            texts.push((pair, join(&[&shared[..], &unique[..36]].concat())));
        }
        shuffle(&mut texts, &mut stream(1, "order"));
        let numbers = clusters(&texts.iter().map(|(_, text)| &**text).collect::<Vec<_>>());
        let mut of_pairs: HashMap<u32, Vec<usize>> = HashMap::new();
        for ((pair, _), number) in texts.iter().zip(&numbers) {
            of_pairs.entry(*pair).or_default().push(*number);
        }
        let together = of_pairs.values().filter(|numbers| numbers[0] == numbers[1]).count();
        assert!(together >= 495, "{together}");
        assert_eq!(numbers.iter().max(), Some(&(1000 - together - 1)));
    }

    #[test]
    fn components_are_numbered_by_first_appearance() {
        let mut components = Components::new(7);
        for (one, other) in [(5, 3), (6, 1), (3, 6)] {
            components.join(one, other);
        }
        assert!(components.joined(1, 5) && !components.joined(0, 5));
        components.join(2, 2);
        assert_eq!(components.numbers(), [0, 1, 2, 1, 3, 1, 1]);
        assert!(Components::new(0).numbers().is_empty());
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]

        #[test]
        fn clusters_are_those_of_all_pairs(
            texts in prop::collection::vec((0_usize..3, 0_usize..40, 40_usize..90, any::<bool>()), 0..17)
        ) {
            let text = |&(base, start, end, upper): &(usize, usize, usize, bool)| {
                let words: Vec<String> = (start..end).map(|word| format!("w{}", (word * word + base) % 53)).collect();
                let text = words.join(" ");
                if upper { text.to_uppercase() } else { text }
            };
            let texts: Vec<String> = texts.iter().map(text).collect();
            let texts: Vec<&str> = texts.iter().map(|text| &**text).collect();
            prop_assert_eq!(clusters(&texts), by_definition(&texts));
        }
    }
}
