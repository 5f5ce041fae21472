//! Greedy continuations by vLLM: `POST /v1/completions` with token ids in and out.

use super::prompt_stats::by_index;
use lm::models::{Continuation, Ending, GreedyPrompt};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Maximum number of bytes of an answer per id: of the prompt, which is repeated, and of what is written, with its text.
const BYTES_PER_ID: usize = 1 << 8;

/// A request for continuations of one length. Settings of generation that a model's files may have are undone by name: a penalty
/// on repetition would keep a memorized text from being repeated.
#[derive(Serialize)]
pub struct GreedyRequest<'a> {
    model: &'a str,
    prompt: Vec<&'a [u32]>,
    max_tokens: usize,
    temperature: f64,
    top_p: f64,
    top_k: i32,
    min_p: f64,
    repetition_penalty: f64,
    frequency_penalty: f64,
    presence_penalty: f64,
    min_tokens: usize,
    /// Beside those that the server knows itself.
    stop_token_ids: &'a [u32],
    return_token_ids: bool,
}

impl<'a> GreedyRequest<'a> {
    /// The requests for these prompts, each with the places of its prompts: the number of ids is one for a request, and so is
    /// what ends a text.
    pub fn for_prompts(model: &'a str, prompts: &'a [GreedyPrompt]) -> Vec<(Vec<usize>, Self)> {
        let mut alike: BTreeMap<(usize, &[u32]), Vec<usize>> = BTreeMap::new();
        for (place, prompt) in prompts.iter().enumerate() {
            alike.entry((prompt.most, &prompt.ends)).or_default().push(place);
        }
        let request = |((max_tokens, stop_token_ids), places): ((usize, &'a [u32]), Vec<usize>)| {
            let request = Self {
                model,
                prompt: places.iter().map(|&place| &*prompts[place].ids).collect(),
                max_tokens,
                temperature: 0.0,
                top_p: 1.0,
                top_k: -1,
                min_p: 0.0,
                repetition_penalty: 1.0,
                frequency_penalty: 0.0,
                presence_penalty: 0.0,
                min_tokens: 0,
                stop_token_ids,
                return_token_ids: true,
            };
            (places, request)
        };
        alike.into_iter().map(request).collect()
    }

    /// The number of prompts.
    pub fn count(&self) -> usize {
        self.prompt.len()
    }

    /// Maximum number of bytes of the answer beside what does not depend on the prompts.
    pub fn answer_bytes(&self) -> usize {
        self.prompt.iter().map(|ids| (ids.len() + self.max_tokens) * BYTES_PER_ID).sum()
    }
}

/// The answer, as far as it is read.
#[derive(Deserialize)]
pub struct GreedyAnswer {
    choices: Vec<GreedyChoice>,
}

#[derive(Deserialize)]
struct GreedyChoice {
    index: usize,
    prompt_token_ids: Option<Vec<u32>>,
    /// The ids that were written; versions before 0.10.2 do not give them.
    token_ids: Option<Vec<u32>>,
    /// `stop` behind an id that ends texts, `length` otherwise.
    finish_reason: Option<String>,
}

impl GreedyAnswer {
    /// The continuations in the order of the request's prompts.
    pub fn continuations(self, request: &GreedyRequest) -> Result<Vec<Continuation>, String> {
        let read = |choice: GreedyChoice, prompt: &&[u32]| choice.continuation(prompt, request);
        by_index(self.choices, &request.prompt, |choice| choice.index, read)
    }
}

impl GreedyChoice {
    fn continuation(self, prompt: &[u32], request: &GreedyRequest) -> Result<Continuation, String> {
        if self.prompt_token_ids.is_some_and(|ids| ids != prompt) {
            return Err("it is about other token ids than were sent".to_owned());
        }
        let ids = self.token_ids.ok_or("it has no `token_ids`; vLLM has them from version 0.10.2 on")?;
        let ended = match self.finish_reason.as_deref() {
            Some("stop") => Ending::EndToken,
            Some("length") => Ending::Length,
            reason => return Err(format!("its `finish_reason` is {reason:?}, neither `stop` nor `length`")),
        };
        let is_whole = ended == Ending::EndToken || ids.len() == request.max_tokens;
        if !is_whole || ids.is_empty() || ids.len() > request.max_tokens {
            return Err(format!("{} token ids where {} were wanted", ids.len(), request.max_tokens));
        }
        let behind_end = ids.iter().rev().skip(1).any(|id| request.stop_token_ids.contains(id));
        if behind_end {
            return Err("it goes on behind a token that ends texts".to_owned());
        }
        Ok(Continuation { ids, ended })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    fn prompt(ids: &[u32], most: usize) -> GreedyPrompt {
        GreedyPrompt { ids: ids.into(), draft: [8].into(), most, ends: [2, 3].into() }
    }

    fn read(answer: &Value) -> Result<Vec<Continuation>, String> {
        let prompts = [prompt(&[5, 6], 3), prompt(&[7], 3)];
        let [(_, request)] = &GreedyRequest::for_prompts("m", &prompts)[..] else { panic!("one request") };
        let answer: GreedyAnswer = serde_json::from_value(answer.clone()).map_err(|error| error.to_string())?;
        answer.continuations(request)
    }

    fn answer() -> Value {
        json!({ "choices": [
            { "index": 1, "token_ids": [9, 2], "finish_reason": "stop", "stop_reason": 2, "text": "a" },
            { "index": 0, "token_ids": [8, 9, 8], "finish_reason": "length", "prompt_token_ids": [5, 6] },
        ] })
    }

    #[test]
    fn prompts_that_want_the_same_are_one_request() {
        let prompts = [prompt(&[5], 3), prompt(&[6], 7), prompt(&[7, 8], 3)];
        let requests = GreedyRequest::for_prompts("m", &prompts);
        let places: Vec<&[usize]> = requests.iter().map(|(places, _)| places.as_slice()).collect();
        assert_eq!(places, [&[0, 2][..], &[1]]);
        let sent = serde_json::to_value(&requests[0].1).unwrap();
        for (key, value) in [
            ("prompt", json!([[5], [7, 8]])),
            ("max_tokens", json!(3)),
            ("temperature", json!(0.0)),
            ("repetition_penalty", json!(1.0)),
            ("stop_token_ids", json!([2, 3])),
            ("return_token_ids", json!(true)),
        ] {
            assert_eq!(sent[key], value, "{key}");
        }
    }

    #[test]
    fn continuations_are_read_by_index() {
        let expected = [
            Continuation { ids: vec![8, 9, 8], ended: Ending::Length },
            Continuation { ids: vec![9, 2], ended: Ending::EndToken },
        ];
        assert_eq!(read(&answer()).unwrap(), expected);
    }

    #[test]
    fn what_does_not_make_sense_is_refused_with_its_place() {
        let wrong = |change: fn(&mut Value), reason: &str| {
            let mut answer = answer();
            change(&mut answer["choices"]);
            let said = read(&answer).expect_err(reason);
            assert!(said.contains(reason), "{said}, not {reason}");
        };
        wrong(|choices| drop(choices.as_array_mut().unwrap().pop()), "1 choices for 2 prompts");
        wrong(|choices| choices[0]["index"] = json!(7), "there is no choice 1");
        wrong(|choices| choices[1]["prompt_token_ids"] = json!([5, 7]), "choice 0: it is about other token ids");
        wrong(|choices| choices[1]["token_ids"] = Value::Null, "choice 0: it has no `token_ids`");
        wrong(|choices| choices[1]["token_ids"] = json!([8, 9]), "choice 0: 2 token ids where 3 were wanted");
        wrong(|choices| choices[0]["token_ids"] = json!([8, 9, 9, 2]), "choice 1: 4 token ids where 3 were wanted");
        wrong(|choices| choices[1]["token_ids"] = json!([8, 3, 8]), "choice 0: it goes on behind a token");
        wrong(|choices| choices[0]["finish_reason"] = json!("abort"), "neither `stop` nor `length`");
        wrong(|choices| choices[0]["token_ids"] = json!(["a"]), "invalid type");
    }
}
