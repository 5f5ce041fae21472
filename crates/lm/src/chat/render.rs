//! Conversations to text, with the places of what the assistant says.

use super::error::{ChatError, shortened};
use super::message::{ChatMessage, ChatMessages};
use super::program::Program;
use super::python::RaisedException;
use super::spans::{MarkedTurn, locate};
use super::template::ChatTemplate;
use crate::panics::caught_on_large_stack;
use minijinja::{Environment, Error, ErrorKind, Value, context};
use std::collections::{BTreeMap, HashSet};
use std::error::Error as _;

/// Fuel of one rendering, beside what the bytes of the messages bring: 200,000 instructions, and 13 MB of output and values.
const FUEL: u64 = 200_000;
/// Bytes of messages that bring one more unit of fuel: each byte may be copied eight times.
const BYTES_PER_FUEL: usize = 8;

/// A conversation as text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RenderedChat {
    pub text: String,
    /// The contents of the assistant, `[start, end)` in Unicode code points of the text, in order, white space at their edges left out.
    pub spans: Vec<[usize; 2]>,
}

impl ChatTemplate {
    /// Renders a conversation to a text of at most `limit` bytes.
    ///
    /// # Errors
    /// Where the template refuses it or fails, or does not render turns one after another and contents as they are, or where the
    /// assistant says nothing.
    pub fn render(&self, messages: &ChatMessages, limit: u64) -> Result<RenderedChat, ChatError> {
        let panicked = |panic| ChatError::Internal(format!("the library that renders chat templates failed: {panic}"));
        caught_on_large_stack(|| self.render_unguarded(messages, limit)).map_err(panicked)?
    }

    fn render_unguarded(&self, messages: &ChatMessages, limit: u64) -> Result<RenderedChat, ChatError> {
        let (all, bytes) = (messages.as_slice(), messages.bytes());
        if bytes as u64 > limit {
            return Err(ChatError::TooLong { bytes, limit });
        }
        let mut environment = self.environment.clone();
        environment.set_fuel(Some(FUEL.saturating_add((messages.bytes() / BYTES_PER_FUEL) as u64)));
        let turns = marked_turns(all);
        if turns.is_empty() {
            return Err(ChatError::NothingToScore);
        }
        let program = Program::compile(&self.source).map_err(|error| failed(&error))?;
        let text_of = |messages: &[Value], generation| self.text(&program, &environment, messages, generation);
        let text = text_of(&values(all), false)?;
        if text.len() as u64 > limit {
            return Err(ChatError::TooLong { bytes: text.len(), limit });
        }
        let mut marked = values(all);
        for turn in &turns {
            marked[turn.index] = value(&all[turn.index].role, &turn.mark);
        }
        let marked = text_of(&marked, false)?;
        let places = locate(&text, &marked, &turns)?;
        for (turn, place) in turns.iter().zip(&places).filter(|(turn, _)| turn.index > 0) {
            // The model continues this text when it answers; a turn that reads otherwise in the whole is not what it said.
            let before = text_of(&values(&all[..turn.index]), true)?;
            if before.len() > place.start || !text.starts_with(&before) {
                return Err(ChatError::NotAppended { turn: turn.index });
            }
        }
        let (mut spans, mut bytes, mut characters) = (Vec::with_capacity(places.len()), 0, 0);
        for place in places {
            let start = characters + text[bytes..place.start].chars().count();
            characters = start + text[place.clone()].chars().count();
            bytes = place.end;
            spans.push([start, characters]);
        }
        Ok(RenderedChat { text, spans })
    }

    fn text<'s>(
        &self,
        program: &'s Program<'s>,
        environment: &'s Environment<'s>,
        messages: &[Value],
        generation: bool,
    ) -> Result<String, ChatError> {
        let variables = self.tokens.iter().map(|(role, token)| (*role, token.clone()));
        let variables = variables.chain([
            ("messages", Value::from(messages.to_vec())),
            ("add_generation_prompt", Value::from(generation)),
            ("tools", Value::from(())),
            ("documents", Value::from(())),
        ]);
        let variables: BTreeMap<&str, Value> = variables.collect();
        program.run(environment, Value::from(variables)).map_err(|error| failed(&error))
    }
}

/// The word that marks begin with, before a number.
const MARK: &str = "AssistantContent";

/// The turns of the assistant that have content, each with a mark that is no part of any message.
fn marked_turns(messages: &[ChatMessage]) -> Vec<MarkedTurn<'_>> {
    let numbers = |message: &'_ ChatMessage| -> Vec<usize> {
        let behind = message.content.match_indices(MARK).map(|(start, _)| &message.content[start + MARK.len()..]);
        let digits = behind.map(|rest| rest.split(|character: char| !character.is_ascii_digit()).next().unwrap_or(""));
        digits.filter_map(|digits| digits.parse().ok()).collect()
    };
    let used: HashSet<usize> = messages.iter().flat_map(numbers).collect();
    // The messages cannot use all of these numbers, which are one more than they use.
    let free = (0..=used.len()).find(|number| !used.contains(number)).unwrap_or_default();
    let scored = messages.iter().enumerate().filter(|(_, message)| message.is_scored());
    scored
        .map(|(index, message)| MarkedTurn {
            index,
            mark: format!("{MARK}{free}Turn{index}End"),
            content: &message.content,
        })
        .collect()
}

fn values(messages: &[ChatMessage]) -> Vec<Value> {
    messages.iter().map(|message| value(&message.role, &message.content)).collect()
}

fn value(role: &str, content: &str) -> Value {
    context! { role, content }
}

fn failed(error: &Error) -> ChatError {
    let raised = error.source().and_then(|source| source.downcast_ref::<RaisedException>());
    match (raised, error.kind()) {
        (Some(RaisedException(message)), _) => ChatError::Raised(shortened(message)),
        (None, ErrorKind::OutOfFuel) => ChatError::Exhausted,
        (None, ErrorKind::UnknownFunction) if error.detail().is_some_and(|detail| detail.contains("strftime_now")) => {
            ChatError::Date
        }
        _ => ChatError::Failed(shortened(&error.to_string())),
    }
}
