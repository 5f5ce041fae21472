//! The messages of a conversation, as JSON has them.

use mia::json::BoundedList;
use serde::de::{Error, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize};
use std::fmt;
use utoipa::ToSchema;

/// Maximum number of messages of a conversation. A template reads all messages before each turn.
pub const MAX_MESSAGES: usize = 256;

/// Role of the messages whose contents are scored.
const ASSISTANT: &str = "assistant";

/// A conversation: at least one message.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(try_from = "BoundedList<ChatMessage, MAX_MESSAGES>")]
pub struct ChatMessages(Vec<ChatMessage>);

/// One message.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields, expecting = "an object with `role` and `content`")]
pub struct ChatMessage {
    /// `system`, `user`, `assistant`, or another role that the template knows.
    #[schema(examples("user"))]
    pub role: String,
    /// The text of the message.
    #[serde(deserialize_with = "content")]
    #[schema(value_type = MessageContent)]
    pub content: String,
}

/// A text, or a list of parts that are joined.
#[derive(ToSchema)]
#[serde(untagged)]
pub enum MessageContent {
    /// The text.
    Text(String),
    /// Parts of the text, one directly after another.
    Parts(Vec<MessagePart>),
}

/// A part of a message's text; images and other media cannot be scored.
#[derive(Deserialize, ToSchema)]
#[serde(tag = "type", rename_all = "lowercase", deny_unknown_fields)]
pub enum MessagePart {
    /// A text.
    Text {
        /// The text of the part.
        text: String,
    },
}

impl TryFrom<BoundedList<ChatMessage, MAX_MESSAGES>> for ChatMessages {
    type Error = &'static str;

    fn try_from(BoundedList(messages): BoundedList<ChatMessage, MAX_MESSAGES>) -> Result<Self, &'static str> {
        if messages.is_empty() {
            return Err("the list of messages is empty; it takes at least one of the role `assistant`");
        }
        Ok(Self(messages))
    }
}

impl ChatMessages {
    /// The messages, in order.
    #[must_use]
    pub fn as_slice(&self) -> &[ChatMessage] {
        &self.0
    }

    /// Bytes of all roles and contents.
    #[must_use]
    pub fn bytes(&self) -> usize {
        self.0.iter().map(|message| message.role.len() + message.content.len()).sum()
    }
}

impl ChatMessage {
    /// Returns true if its content is scored, which is more than white space.
    pub(super) fn is_scored(&self) -> bool {
        self.role == ASSISTANT && !super::python::trim(&self.content).is_empty()
    }
}

fn content<'de, D: Deserializer<'de>>(deserializer: D) -> Result<String, D::Error> {
    deserializer.deserialize_any(ContentVisitor)
}

struct ContentVisitor;

impl<'de> Visitor<'de> for ContentVisitor {
    type Value = String;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("a text or a list of parts of the type `text`")
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<String, E> {
        Ok(text.to_owned())
    }

    fn visit_unit<E: Error>(self) -> Result<String, E> {
        Err(E::custom(
            "the content is null, as in a message that only calls tools: it has no text to score; leave such messages out",
        ))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut parts: A) -> Result<String, A::Error> {
        let mut content = String::new();
        while let Some(MessagePart::Text { text }) = parts.next_element()? {
            content.push_str(&text);
        }
        Ok(content)
    }
}
