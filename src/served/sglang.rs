//! SGLang: `POST /generate` with token ids and `return_logprob`, which answers with the log-probabilities of the prompt's ids and of the
//! most probable ones, with their ids (<https://docs.sglang.io/basic_usage/native_api.html>).

use super::description::check_version;
use super::probed::{PromptQuestion, PromptServer, ServerIdentity};
use super::prompt_stats::{Reported, by_position};
use super::server::{MAX_SAID, MEDIA, ModelServer, unavailable, unreached};
use crate::config::ServedKind;
use lm::models::files::digest;
use lm::models::{BatchStats, ModelError};
use lm::tokenizer::Tokenizer;
use mia::TokenStats;
use serde::de::IgnoredAny;
use serde::{Deserialize, Serialize};

/// Maximum number of bytes of an answer per token, by most probable token, and beside that.
const BYTES_PER_ENTRY: usize = 1 << 8;
const BYTES_PER_SEQUENCE: usize = 8 << 10;
const REST: usize = 64 << 10;

/// An SGLang that runs the model under a name.
pub struct SglangServer {
    pub server: ModelServer,
    /// Maximum number of tokens of a sequence, if the settings say so.
    pub context: Option<usize>,
}

#[derive(Serialize)]
struct GenerateRequest<'a> {
    input_ids: &'a [Vec<u32>],
    sampling_params: Sampling,
    return_logprob: bool,
    /// The first id whose log-probability is wanted; it is not taken from the cache of prefixes.
    logprob_start_len: usize,
    top_logprobs_num: usize,
}

#[derive(Serialize)]
struct Sampling {
    max_new_tokens: usize,
    temperature: f64,
}

/// The answer for one prompt, as far as it is read.
#[derive(Deserialize)]
struct GenerateAnswer {
    meta_info: MetaInfo,
}

#[derive(Deserialize)]
struct MetaInfo {
    prompt_tokens: Option<usize>,
    /// Of each id: log-probability, id, text. The first has no log-probability.
    input_token_logprobs: Option<Vec<TokenEntry>>,
    /// Of each position the most probable ids, in the same form.
    input_top_logprobs: Option<Vec<Option<Vec<TokenEntry>>>>,
}

/// Log-probability, id and text of a token.
type TokenEntry = (Option<f64>, u32, IgnoredAny);

#[derive(Deserialize)]
struct ModelAnswer {
    model_path: String,
    served_model_name: Option<String>,
    weight_version: Option<String>,
}

#[derive(Deserialize)]
struct ServerAnswer {
    version: Option<String>,
    /// Among the settings of the server; earlier versions have it here alone.
    served_model_name: Option<String>,
    max_req_input_len: Option<usize>,
}

impl SglangServer {
    /// The answer of the first of these routes that the server has: a version may have both names.
    fn get_first(&self, paths: [&str; 2]) -> Result<Vec<u8>, ModelError> {
        for path in paths {
            if let Some(said) = self.server.get_if_there(path, MAX_SAID)? {
                return Ok(said);
            }
        }
        Err(unreached(format!("it is no SGLang: it has neither `{}` nor `{}`", paths[0], paths[1])))
    }

    fn generate(&self, question: PromptQuestion, max_new_tokens: usize) -> Result<BatchStats, ModelError> {
        let prompts = question.prompts;
        let request = GenerateRequest {
            input_ids: prompts,
            sampling_params: Sampling { max_new_tokens, temperature: 0.0 },
            return_logprob: true,
            logprob_start_len: 0,
            top_logprobs_num: question.best,
        };
        let request = serde_json::to_vec(&request).map_err(|error| ModelError::Forward(error.to_string()))?;
        let tokens: usize = prompts.iter().map(Vec::len).sum();
        let most = tokens * (question.best + 1) * BYTES_PER_ENTRY + prompts.len() * BYTES_PER_SEQUENCE + REST;
        let answer = self.server.post("/generate", &request, MEDIA, most as u64, question.patience)?;
        let answers: Vec<GenerateAnswer> = self.server.parsed(&answer)?;
        stats(&answers, question).map_err(|reason| unavailable(format!("its answer is wrong: {reason}")))
    }
}

impl PromptServer for SglangServer {
    const KIND: ServedKind = ServedKind::Sglang;

    fn server(&self) -> &ModelServer {
        &self.server
    }

    fn identify(&self) -> Result<ServerIdentity, ModelError> {
        let model: ModelAnswer = self.server.parsed(&self.get_first(["/model_info", "/get_model_info"])?)?;
        let server: ServerAnswer = self.server.parsed(&self.get_first(["/server_info", "/get_server_info"])?)?;
        let version = check_version(server.version.unwrap_or_else(|| "unstated".to_owned()))?;
        let name = &self.server.name;
        let served = model.served_model_name.or(server.served_model_name);
        if model.model_path != *name && served.as_ref() != Some(name) {
            let served = served.unwrap_or(model.model_path);
            return Err(unreached(format!("it does not serve `{name}`; it serves {served}")));
        }
        let context = self.context.into_iter().chain(server.max_req_input_len).min();
        let told = context.map_or("unstated".to_owned(), |context| context.to_string());
        let weights = model.weight_version.unwrap_or_default();
        let text = format!("sglang {version} {name} {} {weights} {told}", model.model_path);
        Ok(ServerIdentity { digest: digest(text.as_bytes()), text, version, context })
    }

    fn prompt_stats(&self, question: PromptQuestion) -> Result<BatchStats, ModelError> {
        match self.generate(question, 0) {
            // Some versions take no request without a token to generate; what else is refused is refused again.
            Err(ModelError::Forward(_)) => self.generate(question, 1),
            answered => answered,
        }
    }
}

/// The statistics of the prompts; the answers are in their order.
fn stats(answers: &[GenerateAnswer], question: PromptQuestion) -> Result<BatchStats, String> {
    let PromptQuestion { prompts, tokenizer, .. } = question;
    if answers.len() != prompts.len() {
        return Err(format!("{} answers for {} prompts", answers.len(), prompts.len()));
    }
    let indexed = answers.iter().zip(prompts).enumerate();
    indexed
        .map(|(index, (answer, ids))| {
            of_answer(&answer.meta_info, ids, tokenizer).map_err(|reason| format!("answer {index}: {reason}"))
        })
        .collect()
}

fn of_answer(answer: &MetaInfo, ids: &[u32], tokenizer: &Tokenizer) -> Result<Vec<TokenStats>, String> {
    if let Some(tokens) = answer.prompt_tokens.filter(|tokens| *tokens != ids.len()) {
        return Err(format!("it read {tokens} tokens, and {} were sent", ids.len()));
    }
    let came = answer.input_token_logprobs.as_ref().ok_or("it has no `input_token_logprobs`")?;
    let best = answer.input_top_logprobs.as_ref().ok_or("it has no `input_top_logprobs`")?;
    if best.len() != came.len() {
        return Err(format!("{} lists of most probable tokens for {} tokens", best.len(), came.len()));
    }
    let entries: Vec<(&TokenEntry, Option<&Vec<TokenEntry>>)> =
        came.iter().zip(best.iter().map(Option::as_ref)).collect();
    let is_other = |entry: &TokenEntry, id: u32| entry.1 != id && !(entry.1 == 0 && is_last_id(tokenizer, id));
    if let Some((place, _)) = came.iter().zip(ids).enumerate().find(|(_, (entry, id))| is_other(entry, **id)) {
        return Err(format!("position {place}: it is not about the token {}", ids[place]));
    }
    by_position(
        &entries,
        ids,
        |(entry, _)| entry.0.is_none(),
        |(entry, best), id| {
            let best = best.ok_or("it lacks the most probable token")?;
            let numbers: Option<Vec<f64>> = best.iter().map(|entry| entry.0).collect();
            let numbers = numbers.ok_or("one of the most probable tokens has no log-probability")?;
            let is_listed = best.iter().any(|entry| entry.1 == id);
            Reported { lp: entry.0, best: Some(&numbers), is_listed }.stats()
        },
    )
}

/// Returns true for the last id of a vocabulary, which SGLang reports as 0 (`_process_input_token_logprobs` of
/// <https://github.com/sgl-project/sglang/blob/main/python/sglang/srt/managers/scheduler_output_processor_mixin.py>).
fn is_last_id(tokenizer: &Tokenizer, id: u32) -> bool {
    id as usize + 1 == tokenizer.id_bound()
}
