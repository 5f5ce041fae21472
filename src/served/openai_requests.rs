//! Requests to servers of the kind `openai`, in each of the forms that they take.

use super::dialect::{EchoDialect, LeadingToken, PromptForm};
use super::openai_answer::{EchoAnswer, EchoChoice, SentPrompt};
use super::probed::PromptQuestion;
use super::prompt_stats::by_index;
use super::server::{MEDIA, ModelServer, Patience, unavailable};
use lm::models::{BatchStats, ModelError};
use lm::tokenizer::Tokenizer;
use mia::TokenStats;
use serde::Serialize;

const COMPLETIONS: &str = "/v1/completions";
/// Maximum number of bytes of an answer per token: its text, and the most probable tokens with theirs.
const BYTES_PER_TOKEN: usize = 1 << 10;
/// Maximum number of bytes beside that, for all prompts of a request and for the description of the answer.
const REST: usize = 256 << 10;

/// A server that runs the model under a name.
pub struct OpenAiServer {
    pub server: ModelServer,
    /// Maximum number of tokens of a sequence, if the settings say so.
    pub context: Option<usize>,
    /// False if it reports no most probable tokens.
    pub top_logprobs: bool,
}

/// The prompts of a request.
#[derive(Serialize)]
#[serde(untagged)]
pub enum Prompts<'a> {
    IdLists(&'a [&'a [u32]]),
    Ids(&'a [u32]),
    Text(&'a str),
}

#[derive(Serialize)]
pub struct EchoRequest<'a> {
    pub model: &'a str,
    pub prompt: Prompts<'a>,
    pub max_tokens: usize,
    pub temperature: f64,
    pub logprobs: usize,
    pub echo: bool,
    /// For vLLM: the ids in the answer.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub return_token_ids: bool,
    /// For vLLM: ids in place of the texts of tokens, of which two may be the same.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub return_tokens_as_token_ids: bool,
}

impl OpenAiServer {
    /// Asks for completions of prompts with this number of tokens together.
    pub fn ask(&self, request: &EchoRequest, tokens: usize, patience: Patience) -> Result<EchoAnswer, ModelError> {
        let json = serde_json::to_vec(request).map_err(|error| ModelError::Forward(error.to_string()))?;
        let most = tokens * BYTES_PER_TOKEN + REST;
        let answer = self.server.post(COMPLETIONS, &json, MEDIA, most as u64, patience)?;
        self.server.parsed(&answer)
    }

    /// Asks for the log-probabilities of prompts.
    pub fn echo(
        &self,
        prompt: Prompts,
        tokens: usize,
        dialect: EchoDialect,
        best: usize,
        patience: Patience,
    ) -> Result<EchoAnswer, ModelError> {
        let has_extensions = dialect.prompts == PromptForm::IdLists;
        let request = EchoRequest {
            model: &self.server.name,
            prompt,
            max_tokens: dialect.max_tokens,
            temperature: 0.0,
            logprobs: best.min(dialect.best),
            echo: true,
            return_token_ids: has_extensions,
            return_tokens_as_token_ids: has_extensions,
        };
        self.ask(&request, tokens + dialect.max_tokens, patience)
    }

    /// The statistics of prompts; those of servers that take one prompt at a time are asked for one after another.
    pub fn prompt_stats(&self, mut question: PromptQuestion, dialect: EchoDialect) -> Result<BatchStats, ModelError> {
        if dialect.prompts == PromptForm::IdLists {
            return self.id_list_stats(question, dialect);
        }
        question.patience = self.server.shared(question.patience);
        let stats = |ids: &Vec<u32>| match dialect.prompts {
            PromptForm::Text => self.text_stats(ids, question, dialect),
            PromptForm::Ids | PromptForm::IdLists => self.ids_stats(ids, question, dialect),
        };
        question.prompts.iter().map(stats).collect()
    }

    fn id_list_stats(&self, question: PromptQuestion, dialect: EchoDialect) -> Result<BatchStats, ModelError> {
        let PromptQuestion { prompts, tokenizer, best, patience, .. } = question;
        let lists: Vec<&[u32]> = prompts.iter().map(Vec::as_slice).collect();
        let tokens = prompts.iter().map(|ids| ids.len() + dialect.max_tokens).sum();
        let answer = self.echo(Prompts::IdLists(&lists), tokens, dialect, best, patience)?;
        let stats =
            |choice: EchoChoice, ids: &&[u32]| self.choice_stats(&choice, &self.sent(ids, None, tokenizer, dialect));
        by_index(answer.choices, &lists, |choice| choice.index, stats).map_err(wrong)
    }

    fn ids_stats(
        &self,
        ids: &[u32],
        question: PromptQuestion,
        dialect: EchoDialect,
    ) -> Result<Vec<TokenStats>, ModelError> {
        let answer = self.echo(Prompts::Ids(ids), ids.len(), dialect, question.best, question.patience)?;
        let tokens = answer.prompt_tokens();
        let sent = self.sent(ids, None, question.tokenizer, dialect);
        let stats = self.choice_stats(&only_choice(answer).map_err(wrong)?, &sent).map_err(wrong)?;
        match tokens.filter(|tokens| *tokens != ids.len()) {
            Some(tokens) => Err(wrong(format!("it read {tokens} tokens, and {} were sent", ids.len()))),
            None => Ok(stats),
        }
    }

    fn text_stats(
        &self,
        ids: &[u32],
        question: PromptQuestion,
        dialect: EchoDialect,
    ) -> Result<Vec<TokenStats>, ModelError> {
        let text = text_of(ids, question.tokenizer, dialect.leading)?;
        let answer = self.echo(Prompts::Text(&text), ids.len(), dialect, question.best, question.patience)?;
        let tokens = answer.prompt_tokens();
        let sent = self.sent(ids, Some(&text), question.tokenizer, dialect);
        let choice = only_choice(answer).map_err(wrong)?;
        // That the server reads the text otherwise is no fault of the server.
        if let Some(parting) = choice.parting(&sent) {
            return Err(ModelError::Forward(format!("the server reads the text in other tokens: {parting}")));
        }
        let expected = ids.len() + usize::from(dialect.leading == LeadingToken::LeftOut);
        if let Some(tokens) = tokens.filter(|tokens| *tokens != expected) {
            let reason = format!("the server reads the text in {tokens} tokens, which is in {expected} here");
            return Err(ModelError::Forward(reason));
        }
        choice.stats(&sent).map_err(wrong)
    }

    /// A prompt as it was sent.
    pub fn sent<'a>(
        &self,
        ids: &'a [u32],
        text: Option<&'a str>,
        tokenizer: &'a Tokenizer,
        dialect: EchoDialect,
    ) -> SentPrompt<'a> {
        SentPrompt { ids, text, tokenizer, generated: dialect.max_tokens, with_best: self.top_logprobs }
    }

    fn choice_stats(&self, choice: &EchoChoice, sent: &SentPrompt) -> Result<Vec<TokenStats>, String> {
        match choice.parting(sent) {
            Some(parting) => Err(parting),
            None => choice.stats(sent),
        }
    }
}

/// The text to send for ids, which are a text's with the token for the beginning of texts where the server reports one.
///
/// # Errors
/// Where the ids are not those that the tokenizer has for a text.
pub fn text_of(ids: &[u32], tokenizer: &Tokenizer, leading: LeadingToken) -> Result<String, ModelError> {
    let fault = |reason: String| ModelError::Forward(format!("the server takes texts alone, and {reason}"));
    let text = tokenizer.decode(ids).map_err(|error| fault(error.to_string()))?;
    let read = match leading {
        LeadingToken::Reported => tokenizer.encode(&text).map(|encoded| encoded.ids.to_vec()),
        LeadingToken::Absent | LeadingToken::LeftOut => tokenizer.plain_ids(&text),
    };
    match read.map_err(|error| fault(error.to_string()))? {
        read if read == ids => Ok(text),
        read => {
            let place = read.iter().zip(ids).position(|(read, sent)| read != sent).unwrap_or(read.len().min(ids.len()));
            Err(fault(format!("these ids are not those of a text: its tokens differ from them at index {place}")))
        }
    }
}

/// The answer for the only prompt.
pub fn only_choice(mut answer: EchoAnswer) -> Result<EchoChoice, String> {
    match (answer.choices.pop(), answer.choices.len()) {
        (Some(choice), 0) => Ok(choice),
        (choice, rest) => Err(format!("{} choices for 1 prompt", rest + usize::from(choice.is_some()))),
    }
}

/// The error of an answer that does not make sense.
pub fn wrong(reason: String) -> ModelError {
    unavailable(format!("its answer is wrong: {reason}"))
}
