//! The tokens of a GGUF file, and the merges that make them up.

use super::error::GgufError;
use super::metadata::Metadata;
use serde_json::{Value, json};
use std::cmp::Ordering;
use std::collections::BTreeMap;

/// What helps with a tokenizer that a file does not state exactly.
pub const ADVICE: &str = "name the tokenizer of the original model by the setting `tokenizer`";

/// The character that stands for a space in SentencePiece's tokens.
pub const SPACE: &str = "\u{2581}";

pub const TOKENS: &str = "tokenizer.ggml.tokens";
pub const MERGES: &str = "tokenizer.ggml.merges";

/// Bytes of the longest token whose halves are looked for, to derive merges; those of vocabularies have less than 200.
const LONGEST_TOKEN: usize = 512;

/// How many times the bytes of the tokens derived merges may have; those of vocabularies have three times as many.
const MOST_MERGES: usize = 16;

/// The kinds of tokens by their numbers in ggml.
const UNKNOWN: i128 = 2;
const CONTROL: i128 = 3;
const USER_DEFINED: i128 = 4;

/// The tokens of a file.
pub struct Vocabulary<'a> {
    pub tokens: Vec<&'a str>,
    /// Those of Gemma with spaces as SentencePiece writes them.
    spelled: Vec<String>,
    kinds: Vec<i128>,
    pub ids: BTreeMap<String, usize>,
}

impl<'a> Vocabulary<'a> {
    /// Reads the tokens. Their number is that of their kinds, and no two are spelled alike.
    pub fn read(metadata: &Metadata<'a>, is_gemma: bool) -> Result<Self, GgufError> {
        const KINDS: &str = "tokenizer.ggml.token_type";
        let tokens = metadata.texts(TOKENS)?.ok_or_else(|| GgufError::key(TOKENS, format!("missing; {ADVICE}")))?;
        let kinds = match metadata.array(KINDS)? {
            Some(kinds) => kinds.integers().map_err(|reason| GgufError::key(KINDS, reason))?,
            None => vec![1; tokens.len()],
        };
        if kinds.len() != tokens.len() {
            return Err(GgufError::key(KINDS, format!("has {} entries for {} tokens", kinds.len(), tokens.len())));
        }
        // Gemma's runs of spaces are tokens of their own, and files have them as they are.
        let is_run = |token: &str| is_gemma && !token.is_empty() && token.bytes().all(|byte| byte == b' ');
        let spell = |token: &&str| if is_run(token) { token.replace(' ', SPACE) } else { (*token).to_owned() };
        let spelled: Vec<String> = tokens.iter().map(spell).collect();
        let mut ids = BTreeMap::new();
        for (id, token) in spelled.iter().enumerate() {
            if let Some(other) = ids.insert(token.clone(), id) {
                return Err(GgufError::key(
                    TOKENS,
                    format!("{token:?} is listed twice, as {other} and {id}; {ADVICE}"),
                ));
            }
        }
        Ok(Self { tokens, spelled, kinds, ids })
    }

    /// The tokens that texts are searched for before anything else is done with them.
    pub fn added(&self) -> Vec<Value> {
        let added = |(id, kind): (usize, &i128)| {
            let special = match *kind {
                UNKNOWN | CONTROL => true,
                USER_DEFINED => false,
                _ => return None,
            };
            Some(json!({
                "id": id, "content": self.spelled[id], "single_word": false, "lstrip": false, "rstrip": false,
                "normalized": false, "special": special,
            }))
        };
        self.kinds.iter().enumerate().filter_map(added).collect()
    }

    /// The merges that the file states, each two tokens with a space between them.
    pub fn stated_merges(&self, metadata: &Metadata<'a>) -> Result<Option<Vec<(String, String)>>, GgufError> {
        let Some(merges) = metadata.texts(MERGES)? else { return Ok(None) };
        let pair = |merge: &str| {
            let error = |reason: &str| GgufError::key(MERGES, format!("{merge:?} {reason}"));
            let (left, right) = merge.split_once(' ').ok_or_else(|| error("is not two tokens"))?;
            let is_token = |token: &str| self.ids.contains_key(token);
            if is_token(left) && is_token(right) && is_token(&[left, right].concat()) {
                Ok((left.to_owned(), right.to_owned()))
            } else {
                Err(error("has a part that is no token"))
            }
        };
        merges.into_iter().map(pair).collect::<Result<_, _>>().map(Some)
    }

    /// The rank of each token: what has a higher one is merged first. Of Gemma, whose scores do not follow its merges, it is
    /// the order of the tokens.
    pub fn ranks(&self, metadata: &Metadata<'a>, is_gemma: bool) -> Result<Vec<f32>, GgufError> {
        const SCORES: &str = "tokenizer.ggml.scores";
        if is_gemma {
            return Ok((0..self.tokens.len()).map(|id| -(id as f32)).collect());
        }
        let scores = metadata.array(SCORES)?.ok_or_else(|| GgufError::key(SCORES, format!("missing; {ADVICE}")))?;
        let scores = scores.floats().map_err(|reason| GgufError::key(SCORES, reason))?;
        if scores.len() != self.tokens.len() {
            let reason = format!("has {} entries for {} tokens", scores.len(), self.tokens.len());
            return Err(GgufError::key(SCORES, reason));
        }
        if scores.iter().any(|score| score.is_nan()) {
            return Err(GgufError::key(SCORES, "has an entry that is not a number"));
        }
        Ok(scores)
    }

    /// Every pair of tokens that makes up a token, as transformers derives merges: by the rank of what they make up, then by
    /// the lengths of left and right, the largest first, and then by the ids of both.
    pub fn derived_merges(&self, ranks: &[f32]) -> Result<Vec<(String, String)>, GgufError> {
        let most = self.spelled.iter().map(String::len).sum::<usize>().saturating_mul(MOST_MERGES);
        let (mut merges, mut bytes) = (Vec::new(), 0);
        for (id, token) in self.spelled.iter().enumerate() {
            if token.len() > LONGEST_TOKEN {
                return Err(GgufError::key(TOKENS, format!("token {id} has {} bytes; {ADVICE}", token.len())));
            }
            for (at, _) in token.char_indices().skip(1) {
                let (left, right) = token.split_at(at);
                let (Some(&one), Some(&other)) = (self.ids.get(left), self.ids.get(right)) else { continue };
                bytes += token.len();
                if bytes > most {
                    return Err(GgufError::key(TOKENS, format!("make up each other in too many ways; {ADVICE}")));
                }
                merges.push((ranks[id], left.chars().count(), right.chars().count(), id, (one, other)));
            }
        }
        merges.sort_by(|a, b| {
            let by_rank = b.0.partial_cmp(&a.0).unwrap_or(Ordering::Equal);
            by_rank.then((b.1, b.2).cmp(&(a.1, a.2))).then((a.3, a.4).cmp(&(b.3, b.4)))
        });
        let texts = |id: usize| self.spelled[id].clone();
        Ok(merges.into_iter().map(|(.., (left, right))| (texts(left), texts(right))).collect())
    }
}
