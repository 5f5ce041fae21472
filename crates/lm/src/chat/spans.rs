//! Places of contents in a rendered text.
//!
//! A content can occur in the text before it, as `a` does in `assistant`, so it is not searched for. The conversation is rendered a
//! second time with marks in place of the contents; what stands between the marks must stand between the contents, too.

use super::error::ChatError;
use super::python::{trim, trim_end, trim_start};
use std::ops::Range;

/// A turn whose content is scored.
pub struct MarkedTurn<'m> {
    /// Its index among the messages.
    pub index: usize,
    /// The word that stands in its place.
    pub mark: String,
    pub content: &'m str,
}

/// The places of the contents in bytes of the text, without white space at their edges; `marked` is the text with the marks.
pub fn locate(text: &str, marked: &str, turns: &[MarkedTurn<'_>]) -> Result<Vec<Range<usize>>, ChatError> {
    let mut literals = Vec::with_capacity(turns.len() + 1);
    let mut rest = marked;
    for turn in turns {
        let (literal, after) = rest.split_once(&turn.mark).ok_or(ChatError::Changed { turn: turn.index })?;
        literals.push(literal);
        rest = after;
    }
    literals.push(rest);
    let mut places = Vec::with_capacity(turns.len());
    let mut position = 0;
    for (index, turn) in turns.iter().enumerate() {
        let changed = ChatError::Changed { turn: turn.index };
        let (before, after) = (literals[index], literals[index + 1]);
        let is_last = index + 1 == turns.len();
        let Some(rest) = text[position..].strip_prefix(before) else { return Err(changed) };
        let follows = |form: &&&str| {
            let rest = rest.strip_prefix(**form);
            rest.is_some_and(|rest| if is_last { rest == after } else { rest.starts_with(after) })
        };
        let content = turn.content;
        let forms = [content, trim_end(content), trim_start(content), trim(content)];
        let Some(form) = forms.iter().find(follows) else { return Err(changed) };
        let start = position + before.len() + (form.len() - trim_start(form).len());
        places.push(start..start + trim(content).len());
        position += before.len() + form.len();
    }
    Ok(places)
}
