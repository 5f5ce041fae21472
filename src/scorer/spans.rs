//! Parts of a text that are scored.

use lm::chat::{ChatError, ChatMessages, ChatTemplate, RenderedChat};
use mia::json::BoundedList;
use serde::{Deserialize, Serialize};
use utoipa::openapi::RefOr;
use utoipa::openapi::schema::{ArrayBuilder, ObjectBuilder, Schema, Type};
use utoipa::{PartialSchema, ToSchema};

/// Maximum number of spans of a text.
const MAX_SPANS: usize = 1_000;

/// Ranges of a text that are scored, `[start, end)` in Unicode code points: in order, none empty, none overlapping another.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "BoundedList<[usize; 2], MAX_SPANS>")]
pub struct Spans(Vec<[usize; 2]>);

impl TryFrom<BoundedList<[usize; 2], MAX_SPANS>> for Spans {
    type Error = String;

    fn try_from(BoundedList(spans): BoundedList<[usize; 2], MAX_SPANS>) -> Result<Self, String> {
        Self::new(spans)
    }
}

impl Spans {
    fn new(spans: Vec<[usize; 2]>) -> Result<Self, String> {
        if spans.is_empty() {
            return Err("the list of spans is empty; without spans, leave it out".to_owned());
        }
        if let Some([start, end]) = spans.iter().find(|[start, end]| start >= end) {
            return Err(format!("the span [{start}, {end}] is empty; its end must be greater than its start"));
        }
        if let Some([first, second]) = spans.array_windows().find(|[first, second]| first[1] > second[0]) {
            return Err(format!("the spans {first:?} and {second:?} overlap or are out of order"));
        }
        Ok(Self(spans))
    }
}

impl PartialSchema for Spans {
    fn schema() -> RefOr<Schema> {
        let place = ObjectBuilder::new().schema_type(Type::Integer).minimum(Some(0));
        let span = ArrayBuilder::new().items(place).min_items(Some(2)).max_items(Some(2));
        ArrayBuilder::new().items(span).min_items(Some(1)).max_items(Some(MAX_SPANS)).into()
    }
}

impl ToSchema for Spans {}

/// Renders a conversation to a text of at most `limit` bytes, with the places of what the assistant says.
///
/// # Errors
/// Where the template does not render it, or nothing in it is scored.
pub fn render_conversation(
    template: &ChatTemplate,
    messages: &ChatMessages,
    limit: u64,
) -> Result<(String, Spans), ChatError> {
    let RenderedChat { text, spans } = template.render(messages, limit)?;
    Ok((text, Spans::new(spans).map_err(ChatError::Internal)?))
}

impl Spans {
    /// Describes the span that ends beyond the text; `None` if all lie within it.
    pub fn fault(&self, text: &str) -> Option<String> {
        let (last, length) = (self.0.last()?, text.chars().count());
        (last[1] > length).then(|| format!("the span {last:?} ends beyond the text, which has {length} characters"))
    }

    /// Returns the positions of the tokens that lie within a span, by their `offsets` in code points. White space at the edges of a
    /// token does not count, since tokens often begin with the space before a word. Some tokenizers give a token of white space
    /// alone an empty range; it counts where a span goes on at both sides. Special tokens, at (0, 0), lie in no span.
    pub fn positions(&self, text: &str, offsets: &[(usize, usize)]) -> Vec<usize> {
        let space: Vec<bool> = text.chars().map(char::is_whitespace).collect();
        let is_within = |&(start, end): &(usize, usize)| {
            let is_visible = |place: &usize| space.get(*place) == Some(&false);
            let (first, last) = ((start..end).find(is_visible), (start..end).rfind(is_visible));
            let (start, end) = (first.unwrap_or(start), last.map_or(end, |last| last + 1));
            let span = self.0.get(self.0.partition_point(|span| span[1] <= start));
            span.is_some_and(|span| if start == end { span[0] < start } else { span[0] <= start && end <= span[1] })
        };
        offsets.iter().enumerate().filter(|(_, offset)| is_within(offset)).map(|(position, _)| position).collect()
    }

    /// Returns the text within the spans.
    pub fn text(&self, text: &str) -> String {
        let mut characters = text.chars().enumerate().peekable();
        let mut within = String::new();
        for [start, end] in &self.0 {
            while characters.next_if(|(place, _)| place < start).is_some() {}
            while let Some((_, character)) = characters.next_if(|(place, _)| place < end) {
                within.push(character);
            }
        }
        within
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn spans(json: &str) -> Result<Spans, String> {
        serde_json::from_str(json).map_err(|error| error.to_string())
    }

    #[test]
    fn spans_are_in_order_and_within_the_text() {
        assert!(spans("[[0, 2], [2, 3]]").is_ok());
        for (json, words) in [
            ("[]", "the list of spans is empty"),
            ("[[1, 1]]", "the span [1, 1] is empty"),
            ("[[3, 1]]", "the span [3, 1] is empty"),
            ("[[0, 3], [2, 4]]", "the spans [0, 3] and [2, 4] overlap"),
            ("[[2, 4], [0, 1]]", "out of order"),
            ("[[0, 1, 2]]", "trailing"),
            ("[[-1, 1]]", "invalid value"),
        ] {
            let error = spans(json).unwrap_err();
            assert!(error.contains(words), "{json}: {error}");
        }
        let many = format!("[{}]", (0..=MAX_SPANS).map(|n| format!("[{n},{}]", n + 1)).collect::<Vec<_>>().join(","));
        assert!(spans(&many).unwrap_err().contains("at most 1000"));
        assert_eq!(spans("[[0, 3]]").unwrap().fault("h\u{e9}\u{1f600}"), None);
        let fault = spans("[[0, 1], [1, 4]]").unwrap().fault("h\u{e9}\u{1f600}").unwrap();
        assert_eq!(fault, "the span [1, 4] ends beyond the text, which has 3 characters");
    }

    #[test]
    fn tokens_lie_within_a_span_but_for_white_space() {
        // `ab`, ` cd`, `.`, a space of an empty range, `e`, `\n`, and a special token.
        let (text, offsets) = ("ab cd. e\n", [(0, 2), (2, 5), (5, 6), (7, 7), (7, 8), (8, 9), (0, 0)]);
        for (json, expected) in [
            ("[[3, 6]]", vec![1, 2]),
            ("[[0, 1]]", vec![]),
            ("[[0, 2], [5, 8]]", vec![0, 2, 3, 4]),
            ("[[4, 6]]", vec![2]),
            ("[[5, 7]]", vec![2]),
            ("[[7, 8]]", vec![4]),
            ("[[8, 9]]", vec![5]),
            ("[[0, 9]]", vec![0, 1, 2, 3, 4, 5]),
        ] {
            assert_eq!(spans(json).unwrap().positions(text, &offsets), expected, "{json}");
        }
        assert_eq!(spans("[[0, 2], [5, 8]]").unwrap().text(text), "ab. e");
        assert_eq!(spans("[[1, 2]]").unwrap().text("h\u{1f600}!"), "\u{1f600}");
    }

    #[test]
    fn parts_of_one_character_belong_to_it() {
        let offsets = [(0, 1), (1, 2), (1, 2), (1, 2)];
        assert_eq!(spans("[[1, 2]]").unwrap().positions("a\u{1f600}", &offsets), [1, 2, 3]);
    }
}
