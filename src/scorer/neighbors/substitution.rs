//! Substitutions of a single word: where they can be made, which are the best, and the text with one of them made.

use lm::models::masked::Filled;
use lm::tokenizer::{Encoded, Words};
use std::ops::Range;

/// Number of replacements considered at each word.
pub const CANDIDATES: usize = 6;

/// A word of a text that may be replaced.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Site {
    /// The position of its token.
    pub position: usize,
    /// Its bytes in the text.
    pub bytes: Range<usize>,
}

/// A word and what replaces it.
#[derive(Clone, Debug, PartialEq)]
pub struct Substitution {
    pub score: f64,
    /// The position of the token that is replaced.
    pub position: usize,
    /// The token that replaces it.
    pub id: u32,
    /// Range that is replaced, in bytes of the text.
    pub bytes: Range<usize>,
}

/// A text with one word replaced.
#[derive(Clone, Debug, PartialEq)]
pub struct GeneratedNeighbor {
    /// `p / (1 - p_original)`, with the probabilities of the replacement and of the original in its place.
    pub score: f64,
    /// The position of the token that was replaced, of the mask model's tokenizer.
    pub position: usize,
    /// The id of the token that replaces it, of the same.
    pub id: u32,
    pub text: String,
}

/// The whole words of a text, without the white space that may be part of their tokens.
pub fn sites(text: &str, encoded: &Encoded, words: &Words) -> Vec<Site> {
    // The first byte of every character, and the end.
    let starts: Vec<usize> = text.char_indices().map(|(at, _)| at).chain([text.len()]).collect();
    let site = |position: usize| {
        let (start, end) = encoded.offsets.get(position)?;
        let (start, end) = (*starts.get(*start)?, *starts.get(*end)?);
        let token = text.get(start..end)?;
        let start = start + (token.len() - token.trim_start().len());
        let word = token.trim();
        (!word.is_empty()).then(|| Site { position, bytes: start..start + word.len() })
    };
    words.whole(&encoded.ids, &encoded.offsets).into_iter().filter_map(site).collect()
}

/// The `count` best substitutions, ties by position, then by id. A word that the model is certain of has no score to compare and is
/// left out; so is a replacement that is written as the original is, and what is not a number.
pub fn rank(text: &str, sites: &[Site], filled: &[Filled], words: &Words, count: usize) -> Vec<Substitution> {
    let at_site = |(site, filled): (&Site, &Filled)| -> Vec<Substitution> {
        let original = &text[site.bytes.clone()];
        let changes = filled.best.iter().filter(|(id, _)| words.text(*id) != original).take(CANDIDATES);
        let substitution = |(id, p): &(u32, f64)| {
            let (score, bytes) = (p / (1.0 - filled.p_original), site.bytes.clone());
            Substitution { score, position: site.position, id: *id, bytes }
        };
        changes.map(substitution).collect()
    };
    let mut substitutions: Vec<Substitution> = sites.iter().zip(filled).flat_map(at_site).collect();
    substitutions.retain(|substitution| substitution.score.is_finite());
    substitutions.sort_by(|a, b| b.score.total_cmp(&a.score).then_with(|| (a.position, a.id).cmp(&(b.position, b.id))));
    substitutions.truncate(count);
    substitutions
}

/// The text with some of its bytes replaced.
pub fn replaced(text: &str, bytes: &Range<usize>, replacement: &str) -> String {
    [&text[..bytes.start], replacement, &text[bytes.end..]].concat()
}
