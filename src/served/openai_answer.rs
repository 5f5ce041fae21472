//! The answer of `POST /v1/completions` with `echo` and `logprobs`, as far as it is read.

use super::prompt_stats::{Reported, by_position};
use lm::tokenizer::Tokenizer;
use mia::TokenStats;
use serde::Deserialize;
use std::collections::BTreeMap;

#[derive(Deserialize)]
pub struct EchoAnswer {
    pub choices: Vec<EchoChoice>,
    usage: Option<TokenUsage>,
}

#[derive(Deserialize)]
struct TokenUsage {
    prompt_tokens: Option<usize>,
}

#[derive(Deserialize)]
pub struct EchoChoice {
    #[serde(default)]
    pub index: usize,
    /// The prompt, and what was generated behind it.
    #[serde(default)]
    pub text: String,
    /// The ids of the prompt; vLLM repeats them.
    prompt_token_ids: Option<Vec<u32>>,
    logprobs: Option<EchoLogprobs>,
}

/// Columns of one entry per token; the last may be of tokens that were generated.
#[derive(Default, Deserialize)]
#[serde(default)]
struct EchoLogprobs {
    tokens: Option<Vec<String>>,
    token_logprobs: Option<Vec<Option<f64>>>,
    /// The most probable tokens, by their text or by `token_id:` and the id.
    top_logprobs: Option<Vec<Option<BTreeMap<String, f64>>>>,
    /// Where each token begins in the text, in characters.
    text_offset: Option<Vec<usize>>,
}

/// An entry: the log-probability of a token, the most probable tokens, and the token.
type EchoEntry<'a> = (Option<f64>, Option<&'a BTreeMap<String, f64>>, &'a str);

/// A prompt that was sent, and what is expected of its answer.
pub struct SentPrompt<'a> {
    pub ids: &'a [u32],
    /// The text that was sent in place of the ids.
    pub text: Option<&'a str>,
    pub tokenizer: &'a Tokenizer,
    /// Maximum number of tokens that are generated.
    pub generated: usize,
    /// False if the most probable tokens are not read.
    pub with_best: bool,
}

/// Maximum number of tokens that llama-cpp-python, which takes texts, generates beyond those that were asked for: the rest of a character
/// whose first byte is a token.
const REST_OF_CHARACTER: usize = 3;

/// Error for a server that gives no log-probabilities of prompts, with advice.
pub const WITHOUT_PROMPT: &str = "it answers without log-probabilities of the prompt, as the server of llama.cpp, Ollama and TGI do on this \
     route (TGI also with `--enable-prefill-logprobs`); serve the model with vLLM, SGLang (`kind = \"sglang\"`) or llama-cpp-python \
     (`--logits_all true`), or run it here";
/// The same for the most probable tokens.
const WITHOUT_BEST: &str = "it reports no most probable tokens (`top_logprobs`); set `served.top_logprobs = false` to do without methods that need them";

impl EchoAnswer {
    /// Number of tokens that the server read.
    pub fn prompt_tokens(&self) -> Option<usize> {
        self.usage.as_ref().and_then(|usage| usage.prompt_tokens)
    }
}

impl EchoChoice {
    /// Number of entries.
    fn entries(&self) -> Option<usize> {
        Some(self.logprobs.as_ref()?.token_logprobs.as_ref()?.len())
    }

    /// Returns true if its log-probabilities are at most those of tokens that were generated.
    fn is_without_prompt(&self, sent: &SentPrompt) -> bool {
        let generated = sent.generated.max(1);
        self.entries().is_none_or(|entries| entries <= generated && sent.ids.len() > generated)
    }

    /// Describes the first place where the server's tokens are not those that were sent; `None` if there is none.
    pub fn parting(&self, sent: &SentPrompt) -> Option<String> {
        if self.is_without_prompt(sent) {
            return None;
        }
        if self.prompt_token_ids.as_ref().is_some_and(|ids| ids != sent.ids) {
            return Some("it is about other token ids than were sent".to_owned());
        }
        if sent.text.is_some_and(|text| !self.text.starts_with(text)) {
            return Some("its text does not begin with the text that was sent".to_owned());
        }
        let (logprobs, count) = (self.logprobs.as_ref()?, sent.ids.len());
        let tokens = logprobs.tokens.as_deref().unwrap_or_default();
        if sent.text.is_some() && tokens.len() < count {
            return Some(format!("{} tokens are named, and the text has {count} here", tokens.len()));
        }
        let different = sent.ids.iter().zip(tokens).position(|(&id, theirs)| !is_token(sent.tokenizer, id, theirs));
        if let Some(index) = different {
            let offset = logprobs.text_offset.as_ref().and_then(|offsets| offsets.get(index));
            let place = offset.map_or(String::new(), |offset| format!(", at character {offset}"));
            let (ours, theirs) = (sent.tokenizer.piece(sent.ids[index]), shortened(&tokens[index]));
            return Some(format!("token {index}{place} is {ours:?} here and {theirs:?} at the server"));
        }
        let entries = self.entries()?;
        let beyond = if sent.text.is_some() && sent.generated > 0 { REST_OF_CHARACTER } else { 0 };
        let counts = count..=count + sent.generated + beyond;
        (!counts.contains(&entries)).then(|| format!("{entries} log-probabilities for {count} tokens"))
    }

    /// The statistics of the prompt, once its tokens are known to be those that were sent.
    pub fn stats(&self, sent: &SentPrompt) -> Result<Vec<TokenStats>, String> {
        if self.is_without_prompt(sent) {
            return Err(WITHOUT_PROMPT.to_owned());
        }
        let logprobs = self.logprobs.as_ref().ok_or(WITHOUT_PROMPT)?;
        let lps = logprobs.token_logprobs.as_deref().ok_or(WITHOUT_PROMPT)?;
        let lps = lps.get(..sent.ids.len()).ok_or("it has fewer log-probabilities than tokens")?;
        let best = match (&logprobs.top_logprobs, sent.with_best) {
            (None, true) => return Err(WITHOUT_BEST.to_owned()),
            (Some(best), true) => best.as_slice(),
            (_, false) => &[],
        };
        let entries: Vec<EchoEntry> = lps
            .iter()
            .enumerate()
            .map(|(index, &lp)| {
                let token = logprobs.tokens.as_ref().and_then(|tokens| tokens.get(index)).map_or("", String::as_str);
                (lp, best.get(index).and_then(Option::as_ref), token)
            })
            .collect();
        by_position(
            &entries,
            sent.ids,
            |(lp, ..)| lp.is_none(),
            |&(lp, best, token), _| {
                let Some(best) = best.filter(|best| !best.is_empty()) else {
                    return match sent.with_best && lp.is_some() {
                        true => Err(WITHOUT_BEST.to_owned()),
                        false => Reported { lp, best: None, is_listed: false }.stats(),
                    };
                };
                let is_listed = best.contains_key(token);
                let numbers: Vec<f64> = best.values().copied().collect();
                let stats = Reported { lp, best: Some(&numbers), is_listed }.stats()?;
                // Tokens that are no text alone have one name, under which the most probable one may be lost.
                let is_known = best.len() > 1 || !is_listed || !is_undecodable(token);
                Ok(TokenStats { max_lp: if is_known { stats.max_lp } else { f64::NAN }, ..stats })
            },
        )
    }

    /// The most probable token at a place, as the server names it, and its log-probability.
    pub fn first_choice(&self, index: usize) -> Option<(&str, f64)> {
        let best = self.logprobs.as_ref()?.top_logprobs.as_ref()?.get(index)?.as_ref()?;
        let first = best.iter().max_by(|(_, one), (_, other)| one.total_cmp(other));
        first.map(|(token, &lp)| (token.as_str(), lp))
    }
}

/// Returns true if the server's name of a token fits an id. Decoders of some tokenizers drop the space before a word.
fn is_token(tokenizer: &Tokenizer, id: u32, theirs: &str) -> bool {
    if let Some(their_id) = theirs.strip_prefix("token_id:") {
        return their_id.parse() == Ok(id);
    }
    let ours = tokenizer.piece(id);
    let is_same = ours == theirs || theirs.strip_prefix([' ', '\u{2581}']).is_some_and(|rest| rest == ours);
    is_same || is_undecodable(theirs) || is_undecodable(&ours)
}

/// Returns true if a token is not a text of its own: a part of a character, or a special token that servers do not name.
fn is_undecodable(token: &str) -> bool {
    token.is_empty() || token.contains('\u{fffd}') || token.starts_with("bytes:")
}

fn shortened(token: &str) -> String {
    token.chars().take(40).collect()
}
