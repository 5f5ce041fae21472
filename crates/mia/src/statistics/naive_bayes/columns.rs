//! The texts of each n-gram.

/// Sets of n-grams by n-gram instead of by text, so that all counts of an n-gram are done at once.
pub struct NgramColumns {
    /// The n-grams in two texts or more. The others say nothing about a text: where one is scored, its n-gram is in no text
    /// that the model is fitted on.
    ngrams: Vec<u32>,
    /// Where each n-gram ends in `texts`.
    ends: Vec<usize>,
    /// The texts of each n-gram in ascending order, one n-gram after the other.
    texts: Vec<u32>,
    /// The number of distinct n-grams of each text, of whatever frequency.
    pub lengths: Vec<u32>,
    /// The number of distinct n-grams of all texts.
    pub vocabulary: usize,
    /// The natural logarithm of 1 more than each number of texts.
    pub logarithms: Vec<f64>,
}

impl NgramColumns {
    /// Inverts the sets of n-grams, one for each text, which are numbers below `vocabulary`. O(n-grams of all texts).
    pub fn new<'a>(vocabulary: usize, sets: impl Iterator<Item = &'a [u32]> + Clone) -> Self {
        let mut counts = vec![0_u32; vocabulary];
        sets.clone().flatten().for_each(|&ngram| counts[ngram as usize] += 1);
        let mut ngrams = Vec::new();
        let mut ends = Vec::new();
        // Where the next text of each n-gram goes.
        let mut places = vec![None; vocabulary];
        let mut end = 0;
        for ((ngram, count), place) in (0..).zip(counts).zip(&mut places) {
            if count >= 2 {
                *place = Some(end);
                end += count as usize;
                ngrams.push(ngram);
                ends.push(end);
            }
        }
        let mut texts = vec![0; end];
        let mut lengths = Vec::new();
        for (text, set) in (0..).zip(sets) {
            for &ngram in set {
                if let Some(place) = &mut places[ngram as usize] {
                    texts[*place] = text;
                    *place += 1;
                }
            }
            lengths.push(set.len() as u32);
        }
        let logarithms = (0..=lengths.len()).map(|count| (count as f64 + 1.0).ln()).collect();
        Self { ngrams, ends, texts, lengths, vocabulary, logarithms }
    }

    /// Each n-gram with its texts.
    pub fn iter(&self) -> impl Iterator<Item = (u32, &[u32])> {
        let starts = std::iter::once(0).chain(self.ends.iter().copied());
        let texts = starts.zip(&self.ends).map(|(start, &end)| &self.texts[start..end]);
        self.ngrams.iter().copied().zip(texts)
    }
}
