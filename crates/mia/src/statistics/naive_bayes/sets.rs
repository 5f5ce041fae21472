//! The n-grams of each text.

use super::columns::NgramColumns;

/// Sets of n-grams, each known by a number, one for each text.
#[derive(Clone, Debug, Default)]
pub struct NgramSets {
    /// The n-grams of all texts, one text after the other.
    ngrams: Vec<u32>,
    /// Where each text ends.
    ends: Vec<usize>,
}

impl NgramSets {
    /// Adds an n-gram, which must not be there yet, to the text that [`Self::finish`] ends.
    pub fn add(&mut self, ngram: u32) {
        self.ngrams.push(ngram);
    }

    /// The number of n-grams that were added since the last text.
    pub fn unfinished(&self) -> usize {
        self.ngrams.len() - self.ends.last().unwrap_or(&0)
    }

    /// Ends a text.
    pub fn finish(&mut self) {
        self.ends.push(self.ngrams.len());
    }

    /// The number of texts.
    pub fn texts(&self) -> usize {
        self.ends.len()
    }

    /// The n-grams of each text.
    pub fn iter(&self) -> impl Iterator<Item = &[u32]> + Clone {
        let starts = std::iter::once(0).chain(self.ends.iter().copied());
        starts.zip(&self.ends).map(|(start, &end)| &self.ngrams[start..end])
    }

    /// The share of each text's n-grams that no other text has, of those that `counts` accepts; `None` for a text without any.
    pub fn unique_shares(&self, vocabulary: usize, counts: impl Fn(u32) -> bool) -> impl Iterator<Item = Option<f64>> {
        let mut texts = vec![0_u32; vocabulary];
        self.ngrams.iter().for_each(|&ngram| texts[ngram as usize] += 1);
        self.iter().map(move |set| {
            let counted = set.iter().filter(|&&ngram| counts(ngram));
            let (unique, all) = counted
                .fold((0, 0), |(unique, all), &ngram| (unique + usize::from(texts[ngram as usize] == 1), all + 1));
            (all > 0).then(|| unique as f64 / all as f64)
        })
    }

    /// The sets by n-gram; n-grams are numbers below `vocabulary`.
    pub fn columns(&self, vocabulary: usize) -> NgramColumns {
        NgramColumns::new(vocabulary, self.iter())
    }
}
