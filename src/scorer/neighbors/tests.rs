//! Ranking and replacing, with the tokenizer and the probabilities of the goldens. What the models say is compared in
//! `tests/it/neighbors.rs`.

use super::substitution::{Site, Substitution, rank, replaced, sites};
use lm::models::masked::Filled;
use lm::tokenizer::{Tokenizer, Words};
use serde_json::{Value, json};
use std::path::Path;
use std::sync::Arc;

fn golden(name: &str, file: &str) -> Vec<u8> {
    std::fs::read(Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/goldens").join(name).join(file)).unwrap()
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
    assert_eq!(ranked.iter().map(|substitution| substitution.score).collect::<Vec<_>>(), [0.9, 0.5, 0.5, 0.5, 0.25]);
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
    let all = [filled(1.0, &[(30, 0.0), (31, 1e-9)]), filled(f64::NAN, &[(30, 0.5)]), filled(0.0, &[(30, f64::NAN)])];
    assert!(rank(text, &sites_of(text), &all, &words, 25).is_empty());
}

#[test]
fn the_cache_is_bounded_in_bytes() {
    use super::cache::{SubstitutionCache, Substitutions};
    const MOST_BYTES: u64 = 32 << 20;
    let part = SubstitutionCache::new(MOST_BYTES).part("model");
    let texts: Vec<Arc<str>> = (0..100).map(|n| format!("{n} {}", "x".repeat(1 << 20)).into()).collect();
    for text in &texts {
        part.insert(text, Substitutions { substitutions: Vec::new(), passes: 1 });
    }
    part.settle();
    let kept = texts.iter().filter(|text| part.get(text).is_some()).count();
    assert!(kept > 0 && kept as u64 * (1 << 20) <= MOST_BYTES, "{kept} of 100 texts of 1 MiB");
}
