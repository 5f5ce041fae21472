//! The body of `POST /v1/score`: reading and validation.

use super::check::{self, MethodRequests, RequestFaults};
use super::conversations::{self, Conversational, problem_of_model};
use super::extract::{RequestBody, TextOrObject};
use super::problem::{Kind, Problem};
use super::state::ApiState;
use crate::config::LimitSettings;
use crate::scorer::{Input, Overflow, Plan, Spans};
use crate::wire::Shaped;
use mia::json::{BoundedList, List, TooMany, at_most, bounded};
use mia::methods::{MAX_NEIGHBORS, MethodRequest, faults_of_texts};
use serde::de::{DeserializeSeed, Error, MapAccess, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer};
use std::fmt;
use std::sync::Arc;
use std::time::Instant;
use utoipa::ToSchema;

/// The details that a request can ask for.
const TOKENS: &str = "tokens";
/// Maximum number of details in a request; there are fewer kinds of them.
const MAX_DETAILS: usize = 64;

/// Texts to score, and how.
#[derive(Debug, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ScoreRequest {
    /// Id of a configured model; may be left out where there is a default.
    #[schema(examples("demo"))]
    model: Option<String>,
    /// The texts.
    #[schema(value_type = Inputs)]
    inputs: List<Conversational<Input>>,
    /// Methods to compute; loss, zlib, min_k and min_k_plus_plus, plain and with linear decay, if left out.
    #[schema(max_items = 256, value_type = Option<Vec<MethodRequest>>)]
    methods: Option<MethodRequests>,
    /// Treatment of a text that is longer than the model's context: `error` if left out.
    #[schema(value_type = Option<Overflow>)]
    overflow: Option<Shaped<Overflow>>,
    /// `tokens` lists every token with what it adds to the scores.
    #[schema(examples("tokens"), value_type = Option<Vec<String>>)]
    details: Option<Shaped<BoundedList<String, MAX_DETAILS>>>,
    /// Id of a calibration by the same model, adapter, methods and `overflow`: every score gets a p-value against its known
    /// non-members.
    #[schema(value_type = Option<String>)]
    calibration: Option<Shaped<String>>,
}

#[derive(Deserialize)]
#[serde(field_identifier, rename_all = "snake_case")]
enum ScoreField {
    Model,
    Inputs,
    Methods,
    Overflow,
    Details,
    Calibration,
}

impl RequestBody for ScoreRequest {
    /// By hand, since the number of inputs is bounded by a setting while the list is read, and derived code cannot be told of it.
    fn read<'de, D: Deserializer<'de>>(deserializer: D, limits: &LimitSettings) -> Result<Self, D::Error> {
        deserializer.deserialize_map(ScoreRequestVisitor { inputs: limits.inputs })
    }
}

struct ScoreRequestVisitor {
    /// The limit `limits.inputs`.
    inputs: usize,
}

impl<'de> Visitor<'de> for ScoreRequestVisitor {
    type Value = ScoreRequest;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<ScoreRequest, A::Error> {
        let (mut model, mut inputs, mut methods, mut overflow) = (None, None, None, None);
        let (mut details, mut calibration) = (None, None);
        while let Some(field) = map.next_key()? {
            match field {
                ScoreField::Model => read_once("model", &mut model, &mut map)?,
                ScoreField::Inputs if inputs.is_some() => return Err(A::Error::duplicate_field("inputs")),
                ScoreField::Inputs => inputs = Some(map.next_value_seed(InputsSeed { limit: self.inputs })?),
                ScoreField::Methods => read_once("methods", &mut methods, &mut map)?,
                ScoreField::Overflow => read_once("overflow", &mut overflow, &mut map)?,
                ScoreField::Details => read_once("details", &mut details, &mut map)?,
                ScoreField::Calibration => read_once("calibration", &mut calibration, &mut map)?,
            }
        }
        Ok(ScoreRequest {
            model: model.flatten(),
            inputs: inputs.ok_or_else(|| A::Error::missing_field("inputs"))?,
            methods: methods.flatten(),
            overflow: overflow.flatten(),
            details: details.flatten(),
            calibration: calibration.flatten(),
        })
    }
}

/// Reads the value of a field, which may be there once.
fn read_once<'de, A: MapAccess<'de>, T: Deserialize<'de>>(
    name: &'static str,
    field: &mut Option<T>,
    map: &mut A,
) -> Result<(), A::Error> {
    if field.is_some() {
        return Err(A::Error::duplicate_field(name));
    }
    *field = Some(map.next_value()?);
    Ok(())
}

/// One text, or a list of texts.
#[derive(ToSchema)]
#[serde(untagged)]
#[expect(dead_code, reason = "it is read as a list of `Input`")]
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
    Named(TextOrChat),
}

/// A text with what belongs to it, or a conversation.
type TextOrChat = Conversational<NamedText>;

/// A text with what belongs to it.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct NamedText {
    /// Comes back with the result; need not be unique.
    #[serde(default)]
    id: Option<String>,
    /// The text to score.
    text: String,
    /// Text before it, such as a prompt or a question: the model is given it, and it is not scored.
    #[serde(default)]
    context: Option<String>,
    /// Parts of the text that are scored, `[start, end)` in characters (Unicode code points), in order and apart from each other; the
    /// whole text if left out. A token counts if it lies within a span, white space at its edges aside.
    #[serde(default)]
    spans: Option<Spans>,
    /// Texts that differ little from it, for the method `neighbor`.
    #[serde(default, deserialize_with = "at_most::<_, _, MAX_NEIGHBORS>")]
    #[schema(min_items = 1)]
    neighbors: Option<Vec<String>>,
}

/// Reads [`Inputs`] of at most `limit` texts.
struct InputsSeed {
    limit: usize,
}

impl<'de> DeserializeSeed<'de> for InputsSeed {
    type Value = List<Conversational<Input>>;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<List<Conversational<Input>>, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for InputsSeed {
    type Value = List<Conversational<Input>>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a text, or a list of texts and of objects with `text` or `messages` and perhaps `id`, `context`, `spans` and `neighbors`")
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<List<Conversational<Input>>, E> {
        Ok(Ok(vec![Conversational::of_text(Input { text: text.to_owned(), ..Input::default() })]))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, list: A) -> Result<List<Conversational<Input>>, A::Error> {
        let texts: List<TextInput> = bounded(list, self.limit)?;
        Ok(texts.map(|texts| texts.into_iter().map(Conversational::from).collect()))
    }
}

impl<'de> Deserialize<'de> for TextInput {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let expected =
            "a text, or an object with `text` or `messages` and perhaps `id`, `context`, `spans` and `neighbors`";
        deserializer.deserialize_any(TextOrObject { expected, text: Self::Text, object: Self::Named })
    }
}

impl From<TextInput> for Conversational<Input> {
    fn from(text: TextInput) -> Self {
        match text {
            TextInput::Text(text) => Self::of_text(Input { text, ..Input::default() }),
            TextInput::Named(named) => named.map(|NamedText { id, text, context, spans, neighbors }| Input {
                id,
                text,
                context,
                spans,
                neighbors,
            }),
        }
    }
}

/// A request without faults.
pub struct CheckedScore {
    pub plan: Plan,
    pub inputs: Vec<Input>,
    /// Id of the calibration.
    pub calibration: Option<String>,
}

impl ScoreRequest {
    /// The request with its conversations rendered, which waits until the model is open.
    pub async fn rendered(mut self, state: &ApiState) -> Result<Self, Problem> {
        let is_conversation = |input: &Conversational<Input>| input.messages.is_some();
        if !self.inputs.as_ref().is_ok_and(|inputs| inputs.iter().any(is_conversation)) {
            return Ok(self);
        }
        let template = conversations::template(state, self.model.as_deref(), problem_of_model).await?;
        let (limit, deadline) = (state.limits.text.as_u64(), Instant::now().checked_add(state.request_timeout));
        let render = move || {
            conversations::render(self.inputs.iter_mut().flatten(), &template, limit, deadline)?;
            Ok(self)
        };
        state.scorer.workers().run(render).await?
    }

    /// The request as the scorer takes it, or everything that is wrong with it.
    pub fn check(self, state: &ApiState) -> Result<CheckedScore, Problem> {
        let mut faults = RequestFaults::default();
        let model = check::model(state, self.model.as_deref(), &mut faults)?;
        let inputs = self.inputs.map_err(|TooMany { count, limit }| {
            Problem::new(Kind::TooLarge, format!("there are {count} inputs; the limit `limits.inputs` is {limit}"))
        })?;
        let numbered = inputs.into_iter().enumerate();
        let inputs: Vec<Input> =
            numbered.map(|(index, input)| input.checked(&format!("/inputs/{index}"), &mut faults)).collect();
        if inputs.is_empty() {
            faults.push("/inputs", "the list of inputs is empty: it takes at least one");
        }
        let neighbors = inputs.iter().all(|input| input.neighbors.is_some());
        let ids = state.scorer.pool().ids();
        let scope = state.scorer.scope(&ids, model.as_deref(), false, neighbors);
        let methods = check::methods(self.methods, &scope, &mut faults);
        let texts = inputs.iter().map(|input| (input.text.as_str(), input.neighbors.as_deref()));
        faults.extend_below("", faults_of_texts(texts, |index| format!("/inputs/{index}"), &methods, "/methods"));
        for (index, input) in inputs.iter().enumerate() {
            if let Some(fault) = input.spans.as_ref().and_then(|spans| spans.fault(&input.text)) {
                faults.push(format!("/inputs/{index}/spans"), fault);
            }
        }
        let details = check::shaped("/details", self.details, &mut faults);
        let tokens = details.is_some_and(|BoundedList(details)| wants_tokens(&details, &mut faults));
        let overflow = check::shaped("/overflow", self.overflow, &mut faults).unwrap_or_default();
        let calibration = check::shaped("/calibration", self.calibration, &mut faults);
        faults.finish()?;
        let model = model.ok_or_else(|| Problem::internal("a request without faults has no model"))?;
        let plan = Plan { model: model.id.clone(), methods, overflow, tokens, splits: Arc::new([]) };
        Ok(CheckedScore { plan, inputs, calibration })
    }
}

fn wants_tokens(details: &[String], faults: &mut RequestFaults) -> bool {
    for (index, detail) in details.iter().enumerate().filter(|(_, detail)| *detail != TOKENS) {
        let given: String = detail.chars().take(60).collect();
        faults.push(format!("/details/{index}"), format!("unknown detail `{given}`, known is {TOKENS}"));
    }
    details.iter().any(|detail| detail == TOKENS)
}
