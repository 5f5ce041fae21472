//! Answers of servers of OpenAI's kind: echoes of prompts with log-probabilities.

use super::fake_server::{FakeState, refused};
use axum::Json;
use axum::http::StatusCode;
use lm::tokenizer::Tokenizer;
use serde_json::{Map, Value, json};

/// Prompts that a server takes.
#[derive(Clone, Copy, PartialEq, PartialOrd)]
pub enum Takes {
    Text,
    Ids,
    IdLists,
}

/// The token for the beginning of texts in the answers for texts.
#[derive(Clone, Copy, PartialEq)]
pub enum Beginning {
    Absent,
    Reported,
    LeftOut,
}

/// Change made to a text before it is read.
pub type Reading = fn(&str) -> String;

/// How a server answers echoes.
#[derive(Clone, Copy)]
pub struct EchoManners {
    pub takes: Takes,
    /// True if it names tokens by their ids where that is asked for.
    pub names_ids: bool,
    /// True if 0 tokens may be generated.
    pub takes_zero: bool,
    /// Maximum number of most probable tokens; none are reported if it is 0.
    pub best: usize,
    pub beginning: Beginning,
    /// Number of tokens generated where one is asked for: a server may finish a character whose first byte is a token.
    pub generates: usize,
    /// True if it reports for each token the numbers of the next position, and no token that was generated.
    pub is_shifted: bool,
    /// Change made to the text of a prompt before it is read.
    pub reads: Reading,
}

impl Default for EchoManners {
    /// As vLLM.
    fn default() -> Self {
        Self {
            takes: Takes::IdLists,
            names_ids: true,
            takes_zero: true,
            best: 20,
            beginning: Beginning::Absent,
            generates: 1,
            is_shifted: false,
            reads: str::to_owned,
        }
    }
}

/// Answers like llama-cpp-python: it takes texts alone, generates the four bytes of a character, and has no number for the first token of
/// the text.
pub fn llama_cpp_python() -> EchoManners {
    EchoManners {
        takes: Takes::Text,
        names_ids: false,
        takes_zero: false,
        beginning: Beginning::LeftOut,
        generates: 4,
        ..EchoManners::default()
    }
}

/// A prompt as the server reads it.
struct ReadPrompt {
    ids: Vec<u32>,
    /// The text, where that was sent.
    text: Option<String>,
}

pub fn echo(state: &mut FakeState, request: Value) -> (StatusCode, Json<Value>) {
    let manners = state.echo;
    let prompt = &request["prompt"];
    let form = match (prompt.is_string(), prompt[0].is_array()) {
        (true, _) => Takes::Text,
        (false, true) => Takes::IdLists,
        (false, false) => Takes::Ids,
    };
    let is_taken =
        form == manners.takes || form == Takes::Text || (form == Takes::Ids && manners.takes == Takes::IdLists);
    if !is_taken {
        return (StatusCode::UNPROCESSABLE_ENTITY, Json(json!({ "detail": "prompt: Input should be a valid string" })));
    }
    let generated = request["max_tokens"].as_u64().unwrap() as usize;
    if generated == 0 && !manners.takes_zero {
        return refused("max_tokens must be at least 1");
    }
    if manners.best > 0 && request["logprobs"].as_u64().unwrap() as usize > manners.best {
        return refused("too many logprobs");
    }
    let prompts: Vec<ReadPrompt> = match form {
        Takes::Text => {
            let text = (manners.reads)(prompt.as_str().unwrap());
            let ids = match manners.beginning {
                Beginning::Absent => state.tokenizer.plain_ids(&text).unwrap(),
                Beginning::Reported | Beginning::LeftOut => state.tokenizer.encode(&text).unwrap().ids.to_vec(),
            };
            vec![ReadPrompt { ids, text: Some(text) }]
        }
        Takes::Ids => vec![ReadPrompt { ids: serde_json::from_value(prompt.clone()).unwrap(), text: None }],
        Takes::IdLists => {
            let lists: Vec<Vec<u32>> = serde_json::from_value(prompt.clone()).unwrap();
            lists.into_iter().map(|ids| ReadPrompt { ids, text: None }).collect()
        }
    };
    if prompts.iter().any(|prompt| prompt.ids.len() > state.context) {
        return refused("This model's maximum context length is exceeded");
    }
    state.batches.push(prompts.len());
    let choices: Vec<Value> =
        prompts.iter().enumerate().map(|(index, prompt)| choice(state, index, prompt, &request)).collect();
    let tokens: usize = prompts.iter().map(|prompt| prompt.ids.len()).sum();
    let usage = json!({ "prompt_tokens": tokens, "completion_tokens": generated, "total_tokens": tokens + generated });
    let mut answer =
        json!({ "id": "cmpl-1", "object": "text_completion", "model": state.name, "choices": choices, "usage": usage });
    state.asked.push(request);
    (state.spoil)(&mut answer);
    (StatusCode::OK, Json(answer))
}

/// One entry: the name of the token, its log-probability, and the most probable tokens.
type Entry = (String, Value, Value);

fn choice(state: &FakeState, index: usize, prompt: &ReadPrompt, request: &Value) -> Value {
    let (manners, ids) = (state.echo, &prompt.ids);
    let is_echo = request["echo"] == true;
    let name = |id: u32| match manners.names_ids && request["return_tokens_as_token_ids"] == true {
        true => format!("token_id:{id}"),
        false => state.tokenizer.piece(id),
    };
    let entry = |id: u32, lp: f64, first: u32, top: f64| -> Entry {
        let mut best = Map::new();
        best.insert(name(id), json!(lp));
        if lp != top {
            best.insert(name(first), json!(top));
        }
        (name(id), json!(lp), if manners.best > 0 { Value::Object(best) } else { Value::Null })
    };
    let [lp, top, ..] = state.columns(ids);
    let first_choice = |at: usize| if state.varied { state.first_choice(&ids[..at]).0 } else { ids[at] + 1 };
    let mut entries: Vec<Entry> = Vec::new();
    if is_echo {
        entries.push((name(ids[0]), Value::Null, Value::Null));
        entries.extend((1..ids.len()).map(|at| match manners.is_shifted {
            false => entry(ids[at], lp[at - 1], first_choice(at), top[at - 1]),
            true => {
                let [lp, top] = state.varied_numbers(&ids[..=at], ids[at]);
                entry(ids[at], lp, state.first_choice(&ids[..=at]).0, top)
            }
        }));
        if manners.beginning == Beginning::LeftOut && prompt.text.is_some() {
            entries.remove(0);
            entries[0] = (entries[0].0.clone(), Value::Null, Value::Null);
        }
    }
    if request["max_tokens"] == 1 && !(is_echo && manners.is_shifted) {
        let (id, top) = state.first_choice(ids);
        entries.extend((0..manners.generates).map(|_| entry(id, top, id, top)));
    }
    let ends = entries.iter().scan(0, |end, (name, ..)| {
        *end += name.chars().count();
        Some(*end)
    });
    let offsets: Vec<usize> = std::iter::once(0).chain(ends).take(entries.len()).collect();
    let column = |of: fn(&Entry) -> Value| entries.iter().map(of).collect::<Vec<Value>>();
    let logprobs = json!({
        "tokens": column(|(name, ..)| json!(name)),
        "token_logprobs": column(|(_, lp, _)| lp.clone()),
        "top_logprobs": if manners.best > 0 { json!(column(|(.., best)| best.clone())) } else { Value::Null },
        "text_offset": offsets,
    });
    let text = prompt.text.clone().unwrap_or_else(|| state.tokenizer.decode(ids).unwrap());
    let mut choice =
        json!({ "index": index, "text": format!("{text} x"), "logprobs": logprobs, "finish_reason": "length" });
    if request["return_token_ids"] == true && manners.names_ids {
        choice["prompt_token_ids"] = json!(ids);
    }
    choice
}

/// Returns the tokenizer's pieces of a text, for messages.
pub fn pieces(tokenizer: &Tokenizer, text: &str) -> Vec<String> {
    tokenizer.plain_ids(text).unwrap().into_iter().map(|id| tokenizer.piece(id)).collect()
}
