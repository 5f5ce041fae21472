//! The corpus as token ids, split at random.

use crate::corpus::{Drawn, Generator};
use crate::vocabulary;
use anyhow::{Result, anyhow};
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use std::collections::HashMap;
use std::path::Path;
use tokenizers::Tokenizer;

/// Texts that the tokenizer and both models are trained on.
const BACKGROUND: usize = 7_000;
/// Texts per class.
const CLASS: usize = 500;
/// Maximum difference between the lengths of a pair, in tokens.
const ALIKE: usize = 16;
/// Lengths of a labelled text, in tokens.
const LENGTHS: std::ops::RangeInclusive<usize> = 32..=128;

/// A text and its token ids, terminated by the end-of-text token.
pub struct Text {
    pub text: String,
    pub ids: Vec<u32>,
}

/// Texts by purpose.
pub struct Split {
    pub background: Vec<Text>,
    pub members: Vec<Text>,
    pub non_members: Vec<Text>,
}

impl Split {
    /// Draws the corpus and trains the tokenizer on its background. Of every two later texts of the same kind and about
    /// the same length, a coin makes one a member: a random split in which neither kind nor length is informative.
    pub fn draw() -> Result<(Self, Tokenizer)> {
        let mut generator = Generator::new(20_260_101);
        let background: Vec<String> = (0..BACKGROUND).map(|_| generator.next_text().text).collect();
        let tokenizer = vocabulary::train(&background)?;
        let background = background.into_iter().map(|text| Text::new(text, &tokenizer)).collect::<Result<_>>()?;
        let mut split = Self { background, members: Vec::new(), non_members: Vec::new() };
        let (mut coin, mut waiting) = (ChaCha8Rng::seed_from_u64(3), HashMap::new());
        while split.members.len() < CLASS {
            let Drawn { kind, text } = generator.next_text();
            let text = Text::new(text, &tokenizer)?;
            let tokens = text.ids.len() - 1;
            if !LENGTHS.contains(&tokens) {
                continue;
            }
            match waiting.remove(&(kind, tokens / ALIKE)) {
                None => {
                    waiting.insert((kind, tokens / ALIKE), text);
                }
                Some(other) => {
                    let (member, non_member) = if coin.random_bool(0.5) { (text, other) } else { (other, text) };
                    split.members.push(member);
                    split.non_members.push(non_member);
                }
            }
        }
        Ok((split, tokenizer))
    }
}

impl Text {
    fn new(text: String, tokenizer: &Tokenizer) -> Result<Self> {
        let mut ids = tokenizer.encode(text.as_str(), false).map_err(|e| anyhow!("{e}"))?.get_ids().to_vec();
        ids.push(vocabulary::END_OF_TEXT_ID);
        Ok(Self { text, ids })
    }
}

/// The number of tokens of all texts.
pub fn count(texts: &[Text]) -> usize {
    texts.iter().map(|t| t.ids.len()).sum()
}

/// Reads the texts of a file of JSON objects, one a line.
pub fn read_texts(file: &Path, tokenizer: &Tokenizer) -> Result<Vec<Text>> {
    let text = |line: &str| {
        let value: serde_json::Value = serde_json::from_str(line)?;
        let text = value["text"].as_str().ok_or_else(|| anyhow!("{}: a line without `text`", file.display()))?;
        Text::new(text.to_owned(), tokenizer)
    };
    std::fs::read_to_string(file)?.lines().map(text).collect()
}

/// Writes the labelled texts to `audit.jsonl`, members and non-members alternately, one JSON object per line.
pub fn save_audit(directory: &Path, split: &Split) -> Result<()> {
    let mut lines = String::new();
    for (i, (member, other)) in split.members.iter().zip(&split.non_members).enumerate() {
        for (class, text, label) in [("m", member, 1), ("n", other, 0)] {
            let sample = serde_json::json!({ "id": format!("{class}{i:03}"), "text": text.text, "label": label });
            lines.push_str(&sample.to_string());
            lines.push('\n');
        }
    }
    std::fs::create_dir_all(directory)?;
    Ok(std::fs::write(directory.join("audit.jsonl"), lines)?)
}
