//! Neighbours of a text: the same text with one word replaced by what a masked model finds most likely in its place.
//!
//! Each whole word of the text is masked in turn, in a copy of its own; what the model would put there becomes a list of
//! substitutions, and the best of them make the neighbours. The same model, text and count always give the same ones.

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

/// The best substitutions of a text.
#[derive(Debug)]
pub struct Substitutions {
    pub substitutions: Vec<Substitution>,
    /// The masked copies that it took.
    pub passes: usize,
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

/// Ranking and replacing, with the tokenizer and the probabilities of the goldens. The numbers of the models are compared in
/// `tests/it/neighbors.rs`.
#[cfg(test)]
mod tests {
    use super::*;
    use lm::tokenizer::Tokenizer;
    use serde_json::{Value, json};
    use std::path::Path;

    fn golden(name: &str, file: &str) -> Vec<u8> {
        std::fs::read(Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/goldens").join(name).join(file))
            .unwrap()
    }

    fn wordpiece() -> (Tokenizer, Words) {
        let tokenizer = Tokenizer::from_json(&golden("bert-mlm", "tokenizer.json")).unwrap();
        let words = tokenizer.words().unwrap();
        (tokenizer, words)
    }

    fn sites_of(text: &str) -> Vec<Site> {
        let (tokenizer, words) = wordpiece();
        sites(text, &tokenizer.encode(text).unwrap(), &words)
    }

    fn filled(p_original: f64, best: &[(u32, f64)]) -> Filled {
        Filled { p_original, best: best.to_vec() }
    }

    /// From the golden's own probabilities its own neighbours, to the last bit.
    #[test]
    fn the_goldens_probabilities_rank_as_they_do_there() {
        let (_, words) = wordpiece();
        for name in ["bert-mlm", "modernbert-mlm"] {
            let expected: Value = serde_json::from_slice(&golden(name, "expected.json")).unwrap();
            for case in expected["texts"].as_array().unwrap() {
                let text = case["text"].as_str().unwrap();
                let filled: Vec<Filled> = case["masked"]
                    .as_array()
                    .unwrap()
                    .iter()
                    .map(|masked| {
                        let top = masked["top"].as_array().unwrap().iter();
                        let best: Vec<(u32, f64)> =
                            top.map(|entry| (entry[0].as_u64().unwrap() as u32, entry[2].as_f64().unwrap())).collect();
                        Filled { p_original: masked["p_original"].as_f64().unwrap(), best }
                    })
                    .collect();
                let substitutions = rank(text, &sites_of(text), &filled, &words, 25);
                let neighbors = substitutions.iter().map(|substitution| {
                    let text = replaced(text, &substitution.bytes, &words.text(substitution.id));
                    json!({ "score": substitution.score, "position": substitution.position, "id": substitution.id, "text": text })
                });
                assert_eq!(Value::Array(neighbors.collect()), case["neighbors"], "{name}: {text}");
            }
        }
    }

    #[test]
    fn sites_are_bytes_of_the_text() {
        // Characters of two to four bytes stand before and among the words; 🚀 has a token, é is an e to the tokenizer.
        let text = "都—thé 😀 “the” 🚀.";
        let words: Vec<&str> = sites_of(text).into_iter().map(|site| &text[site.bytes]).collect();
        assert_eq!(words, ["都", "—", "thé", "😀", "“", "the", "”", "🚀", "."]);
        assert!(sites_of("").is_empty());
        assert!(sites_of("[SEP] [MASK]").is_empty());
    }

    /// Tokens that hold the space before their word leave it in the text.
    #[test]
    fn white_space_stays() {
        let file = json!({
            "version": "1.0",
            "added_tokens": [],
            "normalizer": { "type": "Replace", "pattern": { "String": " " }, "content": "▁" },
            "model": { "type": "BPE", "vocab": { "<mask>": 0, "<unk>": 1, "▁": 2, "a": 3, "é": 4, "▁a": 5, "▁é": 6 },
                       "merges": [["▁", "a"], ["▁", "é"]], "unk_token": "<unk>" },
        });
        let tokenizer = Tokenizer::from_json(file.to_string().as_bytes()).unwrap();
        let words = tokenizer.words().unwrap();
        let text = "é a  é";
        let sites = sites(text, &tokenizer.encode(text).unwrap(), &words);
        let places: Vec<_> = sites.iter().map(|site| (site.position, &text[site.bytes.clone()])).collect();
        assert_eq!(places, [(0, "é"), (1, "a"), (3, "é")]);
        let neighbors: Vec<String> = sites.iter().map(|site| replaced(text, &site.bytes, &words.text(5))).collect();
        assert_eq!(neighbors, ["a a  é", "é a  é", "é a  a"]);
        // The same letter with and without a space before it is the same word: no neighbour comes of it.
        let substitutions = rank(text, &sites, &[filled(0.0, &[(6, 0.5), (5, 0.1)])], &words, 25);
        assert_eq!(substitutions.iter().map(|substitution| substitution.id).collect::<Vec<_>>(), [5]);
    }

    #[test]
    fn swaps_are_ordered_by_score_position_and_id() {
        let (_, words) = wordpiece();
        let text = "the the the";
        let sites = sites_of(text);
        let places = |substitutions: Vec<Substitution>| {
            substitutions.into_iter().map(|substitution| (substitution.position, substitution.id)).collect::<Vec<_>>()
        };
        let all =
            [filled(0.5, &[(30, 0.25), (31, 0.125)]), filled(0.0, &[(33, 0.5), (32, 0.5)]), filled(0.0, &[(34, 0.9)])];
        let ranked = rank(text, &sites, &all, &words, 25);
        assert_eq!(
            ranked.iter().map(|substitution| substitution.score).collect::<Vec<_>>(),
            [0.9, 0.5, 0.5, 0.5, 0.25]
        );
        assert_eq!(places(ranked), [(3, 34), (1, 30), (2, 32), (2, 33), (1, 31)]);
        assert_eq!(places(rank(text, &sites, &all, &words, 2)), [(3, 34), (1, 30)]);
        assert!(rank(text, &sites, &all, &words, 0).is_empty());
        assert!(rank("", &[], &[], &words, 25).is_empty());
    }

    #[test]
    fn no_more_than_six_at_a_word() {
        let (_, words) = wordpiece();
        let best: Vec<(u32, f64)> = (30..37).map(|id| (id, f64::from(id) / 1e3)).collect();
        assert_eq!(rank("the", &sites_of("the"), &[filled(0.0, &best)], &words, 25).len(), 6);
    }

    #[test]
    fn what_is_no_number_is_left_out() {
        let (_, words) = wordpiece();
        let text = "the the the";
        let all =
            [filled(1.0, &[(30, 0.0), (31, 1e-9)]), filled(f64::NAN, &[(30, 0.5)]), filled(0.0, &[(30, f64::NAN)])];
        assert!(rank(text, &sites_of(text), &all, &words, 25).is_empty());
    }
}
