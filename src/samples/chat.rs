//! Conversations in files: records with `messages` in place of a text become records of the rendered text with its spans.

use super::record::Fields;
use crate::scorer::render_conversation;
use lm::chat::{ChatMessages, ChatTemplate};
use serde_json::Value;
use std::fmt;
use std::sync::{Arc, LazyLock};

/// The field of a conversation.
pub const MESSAGES: &str = "messages";

/// The way to name the template, as errors tell it to those who use the command line.
pub const NAMED_BY_COMMAND: &str = "with `pdr-audit dataset --chat-template MODEL`, which writes texts with spans";

/// Fields that a conversation takes the place of.
const REPLACED: [&str; 4] = ["text", "input", "context", "spans"];

/// A template, or in words why there is none.
type Opened = Result<Arc<ChatTemplate>, String>;

/// Renders the conversations of a file by the chat template of a model, which is opened for the first of them.
#[derive(Clone)]
pub struct ChatRenderer {
    template: Arc<LazyLock<Opened, Box<dyn FnOnce() -> Opened + Send>>>,
    /// Maximum size of a text in bytes.
    limit: u64,
}

impl fmt::Debug for ChatRenderer {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("ChatRenderer").field("limit", &self.limit).finish_non_exhaustive()
    }
}

impl PartialEq for ChatRenderer {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.template, &other.template) && self.limit == other.limit
    }
}

impl ChatRenderer {
    /// Renders texts of at most `limit` bytes by the template that `open` gives.
    pub fn new(limit: u64, open: impl FnOnce() -> Result<Arc<ChatTemplate>, String> + Send + 'static) -> Self {
        Self { template: Arc::new(LazyLock::new(Box::new(open))), limit }
    }

    fn render(&self, messages: &ChatMessages) -> Result<(String, Value), String> {
        let template = self.template.as_ref().as_ref().map_err(|fault| format!("`{MESSAGES}`: {fault}"))?;
        let rendered = render_conversation(template, messages, self.limit).map_err(|error| match error.turn() {
            Some(turn) => format!("`{MESSAGES}[{turn}]`: {error}"),
            None => format!("`{MESSAGES}`: {error}"),
        });
        let (text, spans) = rendered?;
        Ok((text, serde_json::to_value(spans).map_err(|error| error.to_string())?))
    }
}

/// Returns true if a record that names no column of texts has a conversation.
pub fn is_conversation(fields: &Fields) -> bool {
    fields.get(MESSAGES).is_some_and(|value| !value.is_null())
}

/// The fields of a record without its conversation, as a text does not come along either.
pub fn without_conversation(mut fields: Fields) -> Fields {
    fields.shift_remove(MESSAGES);
    fields
}

/// The fields of a record with the text and the spans of its conversation in place of `messages`.
///
/// # Errors
/// Where a field stands beside the conversation that it takes the place of, or it cannot be rendered.
pub fn rendered(mut fields: Fields, renderer: Option<&ChatRenderer>) -> Result<Fields, String> {
    if let Some(other) = REPLACED.into_iter().find(|name| fields.get(*name).is_some_and(|value| !value.is_null())) {
        return Err(format!(
            "both `{MESSAGES}` and `{other}`: a conversation takes its place; leave out either, or name the texts with --text-column"
        ));
    }
    let renderer = renderer.ok_or_else(|| {
        format!("`{MESSAGES}`: a conversation is rendered by the chat template of a model; name one {NAMED_BY_COMMAND}")
    })?;
    let value = match fields.shift_remove(MESSAGES).unwrap_or_default() {
        // A cell of a table holds a list as JSON.
        Value::String(text) => serde_json::from_str(&text).unwrap_or(Value::String(text)),
        value => value,
    };
    let messages: ChatMessages = serde_path_to_error::deserialize(value).map_err(in_words)?;
    let (text, spans) = renderer.render(&messages)?;
    for name in REPLACED {
        fields.shift_remove(name);
    }
    fields.extend([("text".to_owned(), text.into()), ("spans".to_owned(), spans)]);
    Ok(fields)
}

/// The fault with the place in the conversation that has it.
fn in_words(error: serde_path_to_error::Error<serde_json::Error>) -> String {
    match error.path().to_string().as_str() {
        "." => format!("`{MESSAGES}`: {}", error.inner()),
        path => format!("`{MESSAGES}{path}`: {}", error.inner()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use lm::tokenizer::SpecialTokens;
    use serde_json::json;

    fn renderer() -> ChatRenderer {
        let source = "{% for m in messages %}<{{ m.role }}>{{ m.content }}\n{% endfor %}{% if add_generation_prompt %}<assistant>{% endif %}";
        ChatRenderer::new(100, move || {
            let template = ChatTemplate::new(source.to_owned(), SpecialTokens::default());
            template.map(Arc::new).map_err(|error| error.to_string())
        })
    }

    fn fields(value: &Value) -> Fields {
        value.as_object().unwrap().clone()
    }

    #[test]
    fn a_conversation_becomes_a_text_with_spans() {
        let messages = json!([{"role": "user", "content": "h\u{e9}"}, {"role": "assistant", "content": " yes "}]);
        let expected = json!({"id": 7, "text": "<user>h\u{e9}\n<assistant> yes \n", "spans": [[21, 24]]});
        for messages in [messages.clone(), messages.to_string().into()] {
            let record = fields(&json!({"id": 7, "messages": messages, "text": null}));
            assert!(is_conversation(&record));
            assert_eq!(Value::Object(rendered(record, Some(&renderer())).unwrap()), expected);
        }
        assert!(!is_conversation(&fields(&json!({"messages": null, "text": "a"}))));
    }

    #[test]
    fn a_fault_has_its_place() {
        let said = json!([{"role": "assistant", "content": "a"}]);
        for (record, words) in [
            (json!({"messages": said, "text": "a"}), "both `messages` and `text`"),
            (json!({"messages": said, "context": "a"}), "both `messages` and `context`"),
            (json!({"messages": said, "spans": [[0, 1]]}), "both `messages` and `spans`"),
            (json!({"messages": []}), "`messages`: the list of messages is empty"),
            (json!({"messages": "a"}), "`messages`: invalid type: string"),
            (json!({"messages": [{"role": 7, "content": "a"}]}), "`messages[0].role`: invalid type: integer `7`"),
            (json!({"messages": [{"role": "user", "content": "a"}]}), "`messages`: no message of the role `assistant`"),
            (
                json!({"messages": [{"role": "assistant", "content": "a".repeat(101)}]}),
                "the limit `limits.text` is 100",
            ),
        ] {
            let fault = rendered(fields(&record), Some(&renderer())).unwrap_err();
            assert!(fault.contains(words), "{fault}");
        }
        let fault = rendered(fields(&json!({"messages": said})), None).unwrap_err();
        assert!(fault.contains(NAMED_BY_COMMAND), "{fault}");
    }
}
