//! vLLM: `POST /v1/completions` with `prompt_logprobs`. It answers with log-probabilities, of the token and of the most probable
//! one, and with the moments of the distribution only where the plugin in `deploy/vllm` adds them.
//!
//! The prompt is token ids, so no text is sent and nothing depends on vLLM's tokenizer. vLLM says neither what weights it runs nor
//! how exact they are: its identity is what it says of itself, and how much its numbers depend on what else runs is measured.

use super::description::check_version;
use super::model_cards::{ModelCards, ServerVersion};
use super::probed::{PromptQuestion, PromptServer, ServerIdentity};
use super::prompt_stats::{Reported, by_index, by_position};
use super::server::{MAX_SAID, MEDIA, ModelServer, Patience, unavailable, unreached};
use super::vllm_continuation::{GreedyAnswer, GreedyRequest};
use crate::config::ServedKind;
use lm::models::files::digest;
use lm::models::{BatchStats, Continuation, GreedyPrompt, ModelError};
use mia::TokenStats;
use serde::{Deserialize, Serialize};
use std::collections::HashMap;

const COMPLETIONS: &str = "/v1/completions";
/// Maximum number of bytes of an answer per token: up to four entries, each with an id, names, and the token as text.
const BYTES_PER_TOKEN: usize = 1 << 10;
/// Maximum number of bytes beside that: per sequence a token that is generated, and for all the description of the server.
const BYTES_PER_SEQUENCE: usize = 4 << 10;
const REST: usize = 64 << 10;

/// A vLLM that runs the model under a name.
pub struct VllmServer {
    pub server: ModelServer,
    pub moments: bool,
}

#[derive(Serialize)]
struct CompletionRequest<'a> {
    model: &'a str,
    prompt: &'a [Vec<u32>],
    /// Fewer are refused.
    max_tokens: usize,
    temperature: f64,
    /// Number of the most probable tokens reported beside the one that came.
    prompt_logprobs: usize,
    return_token_ids: bool,
}

impl VllmServer {
    /// The statistics of prompts of at least one id each.
    fn complete(&self, prompt: &[Vec<u32>], patience: Patience) -> Result<BatchStats, ModelError> {
        let request = CompletionRequest {
            model: &self.server.name,
            prompt,
            max_tokens: 1,
            temperature: 0.0,
            prompt_logprobs: if self.moments { WITH_MOMENTS } else { 1 },
            return_token_ids: true,
        };
        let request = serde_json::to_vec(&request).map_err(|error| ModelError::Forward(error.to_string()))?;
        let tokens: usize = prompt.iter().map(Vec::len).sum();
        let most = tokens * BYTES_PER_TOKEN + prompt.len() * BYTES_PER_SEQUENCE + REST;
        let answer = self.server.post(COMPLETIONS, &request, MEDIA, most as u64, patience)?;
        let answer: Completion = self.server.parsed(&answer)?;
        stats(answer, prompt, self.moments).map_err(|reason| unavailable(format!("its answer is wrong: {reason}")))
    }

    fn continue_alike(&self, request: &GreedyRequest) -> Result<Vec<Continuation>, ModelError> {
        let json = serde_json::to_vec(request).map_err(|error| ModelError::Forward(error.to_string()))?;
        let most = request.answer_bytes() + request.count() * BYTES_PER_SEQUENCE + REST;
        let answer = self.server.post(COMPLETIONS, &json, MEDIA, most as u64, Patience::Batch)?;
        let answer: GreedyAnswer = self.server.parsed(&answer)?;
        answer.continuations(request).map_err(|reason| unavailable(format!("its answer is wrong: {reason}")))
    }
}

impl PromptServer for VllmServer {
    const KIND: ServedKind = ServedKind::Vllm;

    fn server(&self) -> &ModelServer {
        &self.server
    }

    fn identify(&self) -> Result<ServerIdentity, ModelError> {
        let said = self.server.get_if_there("/version", MAX_SAID)?;
        let said = said.ok_or_else(|| unreached("it is no vLLM: it has no `/version`"))?;
        let version: ServerVersion = self.server.parsed(&said)?;
        let version = check_version(version.version)?;
        let cards: ModelCards = self.server.parsed(&self.server.get("/v1/models", MAX_SAID)?)?;
        let card = cards.find(&self.server.name)?;
        let root = card.root.unwrap_or_default();
        let length = card.max_model_len.ok_or_else(|| unreached("it does not tell the length of its context"))?;
        let text = format!("vllm {version} {} {root} {length}", self.server.name);
        let digest = digest(text.as_bytes());
        // Entries kept without moments are not enough for a server that has them.
        let text = if self.moments { format!("{text} moments") } else { text };
        // One token is always generated, and counts.
        Ok(ServerIdentity { text, digest, version, context: Some(length.saturating_sub(1)) })
    }

    fn prompt_stats(&self, question: PromptQuestion) -> Result<BatchStats, ModelError> {
        self.complete(question.prompts, question.patience)
    }

    fn continue_greedily(&self, prompts: &[GreedyPrompt]) -> Result<Vec<Continuation>, ModelError> {
        let mut continuations = vec![Continuation::default(); prompts.len()];
        for (places, request) in GreedyRequest::for_prompts(&self.server.name, prompts) {
            for (place, continuation) in places.into_iter().zip(self.continue_alike(&request)?) {
                continuations[place] = continuation;
            }
        }
        Ok(continuations)
    }
}

/// Number of log-probabilities requested beside that of the token if the plugin adds moments. It gives them the ranks that the
/// second and the third choice have otherwise: the mean, and minus the variance.
const WITH_MOMENTS: usize = 3;
const MEAN_RANK: u64 = 2;
const VARIANCE_RANK: u64 = 3;
/// The plugin gives moments the ids of tokens below this; both would be among a model's first choices everywhere only by it.
const MOMENT_IDS: u32 = 4;

/// The answer of `POST /v1/completions`, as far as it is read.
#[derive(Deserialize)]
struct Completion {
    choices: Vec<CompletionChoice>,
}

#[derive(Deserialize)]
struct CompletionChoice {
    index: usize,
    /// Of each id of the prompt, by its token, the token that came and the most probable one. The first has none before it.
    prompt_logprobs: Option<Vec<Option<HashMap<String, CandidateToken>>>>,
    /// The prompt; versions before 0.10 do not repeat it.
    prompt_token_ids: Option<Vec<u32>>,
}

#[derive(Deserialize)]
struct CandidateToken {
    logprob: f64,
    rank: Option<u64>,
}

/// The statistics of the prompts, in their order. Without `moments` these are NaN. Every field that is read is checked.
fn stats(answer: Completion, prompts: &[Vec<u32>], moments: bool) -> Result<Vec<Vec<TokenStats>>, String> {
    by_index(answer.choices, prompts, |choice| choice.index, |choice, prompt| of_choice(&choice, prompt, moments))
}

fn of_choice(choice: &CompletionChoice, prompt: &[u32], with_moments: bool) -> Result<Vec<TokenStats>, String> {
    if choice.prompt_token_ids.as_ref().is_some_and(|ids| ids != prompt) {
        return Err("it is about other token ids than were sent".to_owned());
    }
    let positions = choice.prompt_logprobs.as_ref().ok_or("it has no `prompt_logprobs`")?;
    by_position(positions, prompt, Option::is_none, |candidates, id| of_position(candidates.as_ref(), id, with_moments))
}

fn of_position(
    candidates: Option<&HashMap<String, CandidateToken>>,
    id: u32,
    with_moments: bool,
) -> Result<TokenStats, String> {
    let candidates = candidates.ok_or("it has no log-probability")?;
    let came = candidates.get(&id.to_string()).ok_or_else(|| format!("it is not about the token {id}"))?;
    let first = candidates.values().find(|candidate| candidate.rank == Some(1));
    let first = first.ok_or("it lacks the most probable token")?.logprob;
    let is_listed = came.rank == Some(1);
    let stats = Reported { lp: Some(came.logprob), best: Some(&[first]), is_listed }.stats()?;
    let (mu, var) = if with_moments { moments(candidates, id)? } else { (f64::NAN, f64::NAN) };
    Ok(TokenStats { mu, var, ..stats })
}

fn moments(candidates: &HashMap<String, CandidateToken>, id: u32) -> Result<(f64, f64), String> {
    let with_rank = |rank: u64| {
        let mut others = (0..MOMENT_IDS).filter(|other| *other != id).filter_map(|id| candidates.get(&id.to_string()));
        others.find(|candidate| candidate.rank == Some(rank)).map(|candidate| candidate.logprob)
    };
    let (mean, variance) =
        with_rank(MEAN_RANK).zip(with_rank(VARIANCE_RANK)).ok_or("it has no moments; is the plugin there?")?;
    Ok((mean, -variance))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    /// One of several tokens: -0.25 and -0.5 are those of the most probable ones.
    fn entry(logprob: f64) -> Value {
        let rank = if logprob > -0.6 { 1 } else { 7 };
        json!({ "logprob": logprob, "rank": rank, "decoded_token": "x" })
    }

    fn answer() -> Value {
        json!({ "id": "cmpl-1", "choices": [
            { "index": 1, "text": "b", "prompt_token_ids": [5], "prompt_logprobs": [null] },
            { "index": 0, "text": "a", "prompt_token_ids": [5, 6, 7], "prompt_logprobs": [
                null,
                { "6": entry(-2.5), "9": entry(-0.25) },
                { "7": entry(-9999.0), "9": entry(-0.5) },
            ] },
        ] })
    }

    fn read_stats(answer: &Value) -> Result<Vec<Vec<TokenStats>>, String> {
        let completion: Completion = serde_json::from_value(answer.clone()).map_err(|error| error.to_string())?;
        stats(completion, &[vec![5, 6, 7], vec![5]], false)
    }

    #[test]
    fn moments_are_read_by_rank_and_id() {
        let entry = |logprob: f64, rank: u64| json!({ "logprob": logprob, "rank": rank });
        let position = json!({ "1": entry(-2.5, 2), "9": entry(-0.25, 1), "0": entry(-3.5, 2), "2": entry(-1.5, 3) });
        let answer = json!({ "choices": [{ "index": 0, "prompt_logprobs": [null, position] }] });
        let completion: Completion = serde_json::from_value(answer).unwrap();
        let got = stats(completion, &[vec![7, 1]], true).unwrap()[0][0];
        assert_eq!((got.lp, got.mu, got.var, got.max_lp), (-2.5, -3.5, 1.5, -0.25));
        let without = json!({ "choices": [{ "index": 0, "prompt_logprobs": [null, { "8": entry(-2.5, 2), "9": entry(-0.25, 1), "7": entry(-3.0, 3) }] }] });
        let without: Completion = serde_json::from_value(without).unwrap();
        let said = stats(without, &[vec![7, 8]], true).unwrap_err();
        assert!(said.contains("it has no moments"), "{said}");
    }

    #[test]
    fn log_probabilities_are_read_by_index_and_id() {
        let stats = read_stats(&answer()).unwrap();
        assert_eq!(stats.iter().map(Vec::len).collect::<Vec<_>>(), [2, 0]);
        let numbers: Vec<(f64, f64)> = stats[0].iter().map(|stats| (stats.lp, stats.max_lp)).collect();
        assert_eq!(numbers, [(-2.5, -0.25), (f64::NEG_INFINITY, -0.5)]);
        assert!(stats[0].iter().all(|stats| stats.mu.is_nan() && stats.var.is_nan()));
    }

    #[test]
    fn what_does_not_make_sense_is_refused_with_its_place() {
        let wrong = |change: fn(&mut Value), reason: &str| {
            let mut answer = answer();
            change(&mut answer["choices"]);
            let said = read_stats(&answer).expect_err(reason);
            assert!(said.contains(reason), "{said}, not {reason}");
        };
        wrong(|choices| drop(choices.as_array_mut().unwrap().pop()), "1 choices for 2 prompts");
        wrong(|choices| choices[0]["index"] = json!(7), "there is no choice 1");
        wrong(|choices| choices[1]["prompt_token_ids"] = json!([5, 6, 8]), "choice 0: it is about other token ids");
        wrong(|choices| choices[1]["prompt_logprobs"] = Value::Null, "choice 0: it has no `prompt_logprobs`");
        wrong(|choices| choices[0]["prompt_logprobs"] = json!([null, null]), "choice 1: 2 positions for 1 token ids");
        wrong(|choices| choices[0]["prompt_logprobs"] = json!([{ "5": entry(-1.0) }]), "the first token");
        wrong(|choices| choices[1]["prompt_logprobs"][2] = Value::Null, "choice 0: position 2: it has no");
        wrong(|choices| choices[1]["prompt_logprobs"][1] = json!({ "9": entry(-1.0) }), "not about the token 6");
        wrong(|choices| choices[1]["prompt_logprobs"][1]["6"] = entry(0.1), "0.1 is no log-probability");
        wrong(|choices| choices[1]["prompt_logprobs"][1]["9"] = entry(-3.0), "it lacks the most probable token");
        wrong(
            |choices| choices[1]["prompt_logprobs"][1]["9"]["rank"] = Value::Null,
            "it lacks the most probable token",
        );
        wrong(|choices| choices[1]["prompt_logprobs"][1]["6"]["logprob"] = json!(-0.1), "more probable than the most");
        wrong(|choices| choices[1]["prompt_logprobs"][1]["6"]["logprob"] = Value::Null, "invalid type: null");
    }
}
