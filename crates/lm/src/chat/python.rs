//! Methods of Python's texts and dicts, with the bounds that a template of a stranger needs.

use minijinja::value::{Rest, ValueKind};
use minijinja::{Error, ErrorKind, State, Value};
use minijinja_contrib::pycompat::unknown_method_callback;

/// Bytes that one unit of fuel pays for, as minijinja has it.
pub const BYTES_PER_FUEL: usize = 64;

/// White space for Python, which also counts the separators U+001C to U+001F.
fn is_space(character: char) -> bool {
    character.is_whitespace() || ('\u{1c}'..='\u{1f}').contains(&character)
}

/// The text without white space at its edges, as `str.strip` has it.
#[must_use]
pub fn trim(text: &str) -> &str {
    text.trim_matches(is_space)
}

/// The text without white space at its beginning, as `str.lstrip` has it.
#[must_use]
pub fn trim_start(text: &str) -> &str {
    text.trim_start_matches(is_space)
}

/// The text without white space at its end, as `str.rstrip` has it.
#[must_use]
pub fn trim_end(text: &str) -> &str {
    text.trim_end_matches(is_space)
}

/// The filter `trim`.
pub fn trim_filter(text: &str, characters: Option<&str>) -> String {
    match characters {
        None => trim(text).to_owned(),
        Some(characters) => text.trim_matches(|character| characters.contains(character)).to_owned(),
    }
}

/// Calls a method that minijinja does not know. A method pays for what it reads, since the engine counts only what it returns.
pub fn call_method(state: &mut State, value: &Value, name: &str, args: &[Value]) -> Result<Value, Error> {
    let size = |value: &Value| value.as_str().map_or_else(|| value.len().unwrap_or(0), str::len);
    let bytes: usize = std::iter::once(value).chain(args).map(size).sum();
    state.consume_fuel((bytes / BYTES_PER_FUEL) as u64)?;
    match (value.kind(), name) {
        (ValueKind::String, _) => call_text_method(state, value, name, args),
        // A method of a list compares it with whatever it is given.
        (ValueKind::Seq, _) => Err(Error::from(ErrorKind::UnknownMethod)),
        _ => unknown_method_callback(state, value, name, args),
    }
}

fn call_text_method(state: &mut State, value: &Value, name: &str, args: &[Value]) -> Result<Value, Error> {
    let text = value.as_str().unwrap_or_default();
    match (name, args) {
        ("strip", []) => Ok(trim(text).into()),
        ("lstrip", []) => Ok(trim_start(text).into()),
        ("rstrip", []) => Ok(trim_end(text).into()),
        ("split", []) => Ok(text.split(is_space).filter(|word| !word.is_empty()).collect()),
        ("splitlines", []) => Ok(lines(text).collect()),
        // Its widths are not bounded.
        ("format", _) => Err(Error::new(ErrorKind::UnknownMethod, "`str.format` is not supported; use `~` or `+`")),
        ("join", [list]) if list.try_iter()?.any(|item| item.as_str().is_none()) => {
            Err(Error::new(ErrorKind::InvalidOperation, "`str.join` takes a list of texts"))
        }
        _ => unknown_method_callback(state, value, name, args),
    }
}

/// The lines of a text, as `str.splitlines` has them.
fn lines(text: &str) -> impl Iterator<Item = &str> {
    let is_end = |character: char| {
        matches!(character, '\n' | '\r' | '\u{b}' | '\u{c}' | '\u{1c}'..='\u{1e}' | '\u{85}' | '\u{2028}' | '\u{2029}')
    };
    let mut rest = text;
    std::iter::from_fn(move || {
        if rest.is_empty() {
            return None;
        }
        let (line, after) = match rest.find(is_end) {
            None => (rest, ""),
            Some(end) => {
                let (line, after) = rest.split_at(end);
                let skipped =
                    if after.starts_with("\r\n") { 2 } else { after.chars().next().map_or(0, char::len_utf8) };
                (line, &after[skipped..])
            }
        };
        rest = after;
        Some(line)
    })
}

/// The function by which templates refuse a conversation.
pub fn raise_exception(message: Rest<String>) -> Result<Value, Error> {
    let message = message.join(" ");
    Err(Error::new(ErrorKind::InvalidOperation, message.clone()).with_source(RaisedException(message)))
}

/// Message that a template raised.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct RaisedException(pub String);
