//! The texts of a request to score, in each of their spellings.

use crate::scorer::Input;
use mia::json::{TooMany, at_most, bounded};
use mia::methods::MAX_NEIGHBORS;
use serde::de::value::MapAccessDeserializer;
use serde::de::{DeserializeSeed, Error, MapAccess, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer};
use std::fmt;
use utoipa::ToSchema;

/// One text, or a list of texts.
#[derive(Debug, ToSchema)]
#[serde(untagged)]
#[schema(examples(json!(["A text.", { "id": "b", "text": "Another text." }])))]
pub enum Inputs {
    /// One text.
    One(String),
    /// Any number of texts, up to `limits.inputs`.
    Many(Vec<TextInput>),
}

/// A text: itself, or with an id that the result repeats, or with neighbours.
#[derive(Debug, ToSchema)]
#[serde(untagged)]
pub enum TextInput {
    /// The text alone.
    Text(String),
    /// The text with what belongs to it.
    Named(NamedText),
}

/// A text with what belongs to it.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct NamedText {
    /// Comes back with the result; need not be unique.
    #[serde(default)]
    id: Option<String>,
    /// The text to score.
    text: String,
    /// Texts that differ little from it, for the method `neighbor`.
    #[serde(default, deserialize_with = "at_most::<_, _, MAX_NEIGHBORS>")]
    #[schema(min_items = 1)]
    neighbors: Option<Vec<String>>,
}

impl Inputs {
    /// The texts as the scorer takes them.
    pub fn into_list(self) -> Vec<Input> {
        match self {
            Self::One(text) => vec![Input { text, ..Input::default() }],
            Self::Many(texts) => texts.into_iter().map(Input::from).collect(),
        }
    }
}

impl From<TextInput> for Input {
    fn from(text: TextInput) -> Self {
        match text {
            TextInput::Text(text) => Self { text, ..Self::default() },
            TextInput::Named(NamedText { id, text, neighbors }) => Self { id, text, neighbors },
        }
    }
}

/// Reads [`Inputs`] of at most `limit` texts.
///
/// By hand, as for every value here that may be an object or a list: a derived untagged enum would answer every mistake with
/// "data did not match any variant" and not say where it is, and serde-untagged would take malformed JSON within the list for a
/// fault of type.
pub struct InputsSeed {
    pub limit: usize,
}

impl<'de> DeserializeSeed<'de> for InputsSeed {
    type Value = Result<Inputs, TooMany>;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Self::Value, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for InputsSeed {
    type Value = Result<Inputs, TooMany>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a text, or a list of texts and of objects with `text` and perhaps `id` and `neighbors`")
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<Self::Value, E> {
        Ok(Ok(Inputs::One(text.to_owned())))
    }

    fn visit_string<E: Error>(self, text: String) -> Result<Self::Value, E> {
        Ok(Ok(Inputs::One(text)))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, list: A) -> Result<Self::Value, A::Error> {
        bounded(list, self.limit).map(|texts| texts.map(Inputs::Many))
    }
}

impl<'de> Deserialize<'de> for TextInput {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct TextVisitor;

        impl<'de> Visitor<'de> for TextVisitor {
            type Value = TextInput;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a text, or an object with `text` and perhaps `id` and `neighbors`")
            }

            fn visit_str<E: Error>(self, text: &str) -> Result<TextInput, E> {
                Ok(TextInput::Text(text.to_owned()))
            }

            fn visit_string<E: Error>(self, text: String) -> Result<TextInput, E> {
                Ok(TextInput::Text(text))
            }

            fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<TextInput, A::Error> {
                NamedText::deserialize(MapAccessDeserializer::new(map)).map(TextInput::Named)
            }
        }

        deserializer.deserialize_any(TextVisitor)
    }
}
