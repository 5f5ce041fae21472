//! Conversations in requests: `messages` in place of `text`, rendered by the chat template of the request's model before anything
//! else looks at them.

use super::check::{self, RequestFaults};
use super::problem::Problem;
use super::state::ApiState;
use crate::datasets::Sample;
use crate::pool::Retry;
use crate::scorer::{Input, ScorerError, Spans, render_conversation};
use lm::chat::{ChatError, ChatMessage, ChatMessages, ChatTemplate, MAX_MESSAGES};
use serde::de::value::{MapAccessDeserializer, StrDeserializer};
use serde::de::{DeserializeSeed, Error, IntoDeserializer, MapAccess, Visitor};
use serde::{Deserialize, Deserializer};
use std::borrow::Cow;
use std::fmt;
use std::marker::PhantomData;
use std::sync::Arc;
use std::time::Instant;
use utoipa::openapi::schema::{ArrayBuilder, Schema, SchemaType, Type};
use utoipa::openapi::{Ref, RefOr};
use utoipa::{PartialSchema, ToSchema};

const MESSAGES: &str = "messages";
/// The fields that a conversation becomes, with another name of the text.
const TEXTS: [&str; 2] = ["text", "input"];

/// A text of a request with what belongs to it, or a conversation that becomes one.
#[derive(Debug)]
pub struct Conversational<T> {
    /// Its text is empty until the conversation is rendered.
    pub value: T,
    pub messages: Option<ChatMessages>,
    /// Name of the field with a text, if the object has one beside the conversation.
    text: Option<&'static str>,
    /// Pointer below the object, and what is wrong there.
    fault: Option<(String, String)>,
}

/// A sample or a conversation. Schemas name it so: their generator has no type parameters of such types.
pub type SampleOrChat = Conversational<Sample>;

/// An object with a text that a conversation can become.
pub trait FromConversation {
    /// Takes the text and the parts that are scored.
    fn take(&mut self, text: String, spans: Spans);
    /// Name of a field that belongs to a text and not to a conversation.
    fn field_of_text(&self) -> Option<&'static str>;
}

impl FromConversation for Sample {
    fn take(&mut self, text: String, spans: Spans) {
        (self.text, self.spans) = (text, Some(spans));
    }

    fn field_of_text(&self) -> Option<&'static str> {
        self.context.as_ref().map(|_| "context").or(self.spans.as_ref().map(|_| "spans"))
    }
}

impl FromConversation for Input {
    fn take(&mut self, text: String, spans: Spans) {
        (self.text, self.spans) = (text, Some(spans));
    }

    fn field_of_text(&self) -> Option<&'static str> {
        self.context.as_ref().map(|_| "context").or(self.spans.as_ref().map(|_| "spans"))
    }
}

impl<T> Conversational<T> {
    /// A text that is no conversation.
    pub fn of_text(value: T) -> Self {
        Self { value, messages: None, text: None, fault: None }
    }

    pub fn map<U>(self, convert: impl FnOnce(T) -> U) -> Conversational<U> {
        let Self { value, messages, text, fault } = self;
        Conversational { value: convert(value), messages, text, fault }
    }

    /// Returns the value and adds its fault below `pointer`; a conversation that was not rendered is a fault.
    pub fn checked(self, pointer: &str, faults: &mut RequestFaults) -> T {
        let unrendered = || {
            (
                format!("/{MESSAGES}"),
                "a conversation is not taken here: whole texts are, or texts that are cut; give its text".to_owned(),
            )
        };
        if let Some((below, detail)) = self.fault.or_else(|| self.messages.as_ref().map(|_| unrendered())) {
            faults.push(format!("{pointer}{below}"), detail);
        }
        self.value
    }
}

/// Renders the conversations of a list. The first fault of the template itself ends it, since all others have it, too.
pub fn render<'a, T: FromConversation + 'a>(
    list: impl IntoIterator<Item = &'a mut Conversational<T>>,
    template: &ChatTemplate,
    limit: u64,
    deadline: Option<Instant>,
) -> Result<(), Problem> {
    let mut is_usable = true;
    for item in list {
        let Some(messages) = item.messages.take().filter(|_| is_usable) else { continue };
        if let Some(field) = item.text.or_else(|| item.value.field_of_text()) {
            let detail = format!("there are `{MESSAGES}` as well, which take its place; leave out either");
            item.fault = Some((format!("/{field}"), detail));
            continue;
        }
        if deadline.is_some_and(|deadline| Instant::now() > deadline) {
            return Err(Problem::deadline());
        }
        match render_conversation(template, &messages, limit) {
            Ok((text, spans)) => item.value.take(text, spans),
            Err(ChatError::Internal(cause)) => return Err(Problem::internal(cause)),
            Err(error) => {
                is_usable = !error.is_of_template();
                let turn = error.turn().map_or_else(String::new, |turn| format!("/{turn}"));
                item.fault = Some((format!("/{MESSAGES}{turn}"), error.to_string()));
            }
        }
    }
    Ok(())
}

/// The chat template of the model that a request names; `problem` makes a problem of a fault, at the place that names it.
pub async fn template(
    state: &ApiState,
    model: Option<&str>,
    problem: impl FnOnce(String) -> Problem,
) -> Result<Arc<ChatTemplate>, Problem> {
    let mut faults = RequestFaults::default();
    let declaration = check::model(state, model, &mut faults)?;
    faults.finish()?;
    let declaration = declaration.ok_or_else(|| Problem::internal("a request without faults has no model"))?;
    let id = model.unwrap_or(&declaration.id);
    let opening = state.scorer.pool().open(id, Retry::AfterPause);
    let opened = tokio::time::timeout(state.request_timeout, opening).await.map_err(|_| Problem::deadline())?;
    let model = opened.map_err(ScorerError::from)?;
    if model.masked {
        return Err(problem(ScorerError::Masked(id.to_owned()).to_string()));
    }
    model.chat.clone().map_err(|error| problem(format!("model `{id}`: {error}")))
}

/// The problem of a body whose model renders no conversations.
pub fn problem_of_model(detail: String) -> Problem {
    Problem::fault("/model", detail)
}

impl<'de, T: Deserialize<'de>> Deserialize<'de> for Conversational<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(ConversationalVisitor(PhantomData))
    }
}

struct ConversationalVisitor<T>(PhantomData<T>);

impl<'de, T: Deserialize<'de>> Visitor<'de> for ConversationalVisitor<T> {
    type Value = Conversational<T>;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("an object with `text` or `messages`")
    }

    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Conversational<T>, A::Error> {
        let (mut messages, mut text) = (None, None);
        let others = OtherFields { map, messages: &mut messages, text: &mut text, is_supplied: false };
        let value = T::deserialize(MapAccessDeserializer::new(others))?;
        Ok(Conversational { value, messages: messages.flatten(), text, fault: None })
    }
}

/// The fields of an object without its conversation, which is kept; an empty text stands in its place.
struct OtherFields<'m, A> {
    map: A,
    messages: &'m mut Option<Option<ChatMessages>>,
    text: &'m mut Option<&'static str>,
    /// True while the value of the empty text is asked for.
    is_supplied: bool,
}

/// Reads a key as the object does, within the reader that knows its place; `None` for that of the conversation.
struct FieldKey<'m, S> {
    /// Taken by a key of the object.
    seed: &'m mut Option<S>,
    text: &'m mut Option<&'static str>,
}

impl<'de, S: DeserializeSeed<'de>> DeserializeSeed<'de> for FieldKey<'_, S> {
    type Value = Option<S::Value>;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Self::Value, D::Error> {
        let name = String::deserialize(deserializer)?;
        let Some(seed) = self.seed.take_if(|_| name != MESSAGES) else { return Ok(None) };
        *self.text = TEXTS.into_iter().find(|text| *text == name).or(*self.text);
        seed.deserialize(name.into_deserializer()).map(Some)
    }
}

impl<'de, A: MapAccess<'de>> MapAccess<'de> for OtherFields<'_, A> {
    type Error = A::Error;

    fn next_key_seed<K: DeserializeSeed<'de>>(&mut self, seed: K) -> Result<Option<K::Value>, A::Error> {
        if self.is_supplied {
            return Ok(None);
        }
        let mut seed = Some(seed);
        while let Some(key) = self.map.next_key_seed(FieldKey { seed: &mut seed, text: &mut *self.text })? {
            if key.is_some() {
                return Ok(key);
            }
            if self.messages.replace(self.map.next_value()?).is_some() {
                return Err(A::Error::duplicate_field(MESSAGES));
            }
        }
        let Some(seed) = seed.filter(|_| self.text.is_none() && matches!(self.messages, Some(Some(_)))) else {
            return Ok(None);
        };
        self.is_supplied = true;
        let name: StrDeserializer<'_, A::Error> = TEXTS[0].into_deserializer();
        seed.deserialize(name).map(Some)
    }

    fn next_value_seed<V: DeserializeSeed<'de>>(&mut self, seed: V) -> Result<V::Value, A::Error> {
        if self.is_supplied {
            let text: StrDeserializer<'_, A::Error> = "".into_deserializer();
            return seed.deserialize(text);
        }
        self.map.next_value_seed(seed)
    }
}

impl<T: PartialSchema> PartialSchema for Conversational<T> {
    /// The schema of the object, whose text is not required, with the conversation.
    fn schema() -> RefOr<Schema> {
        let mut object = match T::schema() {
            RefOr::T(Schema::Object(object)) => object,
            other => return other,
        };
        object.required.retain(|name| name != TEXTS[0]);
        let messages = ArrayBuilder::new()
            .schema_type(SchemaType::from_iter([Type::Array, Type::Null]))
            .items(Ref::from_schema_name(ChatMessage::name()))
            .min_items(Some(1))
            .max_items(Some(MAX_MESSAGES))
            .description(Some(
                "A conversation in place of `text`, `context` and `spans`, rendered by the chat template of the model. What the assistant \
                 says is scored.",
            ));
        object.properties.insert(MESSAGES.to_owned(), RefOr::T(messages.into()));
        RefOr::T(Schema::Object(object))
    }
}

impl<T: ToSchema> ToSchema for Conversational<T> {
    fn name() -> Cow<'static, str> {
        T::name()
    }

    fn schemas(schemas: &mut Vec<(String, RefOr<Schema>)>) {
        T::schemas(schemas);
        schemas.push((ChatMessage::name().into_owned(), ChatMessage::schema()));
        ChatMessage::schemas(schemas);
    }
}
