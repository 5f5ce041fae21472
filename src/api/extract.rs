//! Reads request bodies: bounded in size and time, and every fault told apart.
//!
//! Not JSON by its header 415, too long 413, too slow 408, not JSON by its bytes 400 with line and column, not what the
//! route takes 422 with a JSON pointer.

use super::middleware::Arrival;
use super::problem::{Kind, Problem};
use super::state::{RouterState, request_memory};
use crate::access::RequestMemory;
use crate::config::LimitSettings;
use crate::wire::{in_words, pointer};
use axum::body::{Body, Bytes};
use axum::extract::{FromRequest, FromRequestParts, Path, Request};
use axum::http::request::Parts;
use axum::http::{HeaderMap, header};
use futures::StreamExt;
use mia::json::Object;
use serde::de::value::MapAccessDeserializer;
use serde::de::{DeserializeOwned, Error, MapAccess, Visitor};
use serde::{Deserialize, Deserializer};
use serde_json::error::Category;
use serde_path_to_error::Track;
use std::fmt;
use std::time::Duration;

pub struct JsonBody<T>(pub T);

/// Parameters of a path, decoded. Invalid UTF-8 is not found.
pub struct PathNames<T>(pub T);

impl<S: Send + Sync, T: DeserializeOwned + Send> FromRequestParts<S> for PathNames<T> {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Problem> {
        let names = Path::<T>::from_request_parts(parts, state).await;
        names.map(|Path(names)| Self(names)).map_err(|_| Problem::new(Kind::NotFound, "the path is not text in UTF-8"))
    }
}

/// A type that a route reads from a JSON body. Types that implement `Deserialize` are read as an object.
pub trait RequestBody: Sized {
    /// Reads the body within the limits.
    fn read<'de, D: Deserializer<'de>>(deserializer: D, limits: &LimitSettings) -> Result<Self, D::Error>;
}

impl<T: DeserializeOwned> RequestBody for T {
    fn read<'de, D: Deserializer<'de>>(deserializer: D, _limits: &LimitSettings) -> Result<Self, D::Error> {
        Object::deserialize(deserializer).map(|Object(value)| value)
    }
}

impl<T: RequestBody + Send + 'static> FromRequest<RouterState> for JsonBody<T> {
    type Rejection = Problem;

    async fn from_request(request: Request, RouterState(state): &RouterState) -> Result<Self, Problem> {
        let memory = request_memory(request.extensions())?;
        let bytes = read(request, state.body_limit, state.request_timeout, &memory).await?;
        // A body of megabytes takes too long for the threads that answer everybody.
        let limits = state.limits.clone();
        state.scorer.workers().run(move || parse(&bytes, &limits)).await?.map(Self)
    }
}

async fn read(request: Request, limit: u64, timeout: Duration, memory: &RequestMemory) -> Result<Bytes, Problem> {
    let arrival = Arrival::from_extensions(request.extensions());
    let (head, body) = request.into_parts();
    let acceptable = match check(&head.headers, limit) {
        // The client waits for leave to send the body, and gets none.
        Err(problem) if head.headers.contains_key(header::EXPECT) => return Err(problem),
        acceptable => acceptable,
    };
    let announced = content_length(&head.headers);
    // A body announced as longer than would be read to the end is refused at once.
    if announced.is_some_and(|length| length > limit.saturating_mul(2)) {
        return Err(too_long(limit));
    }
    let too_slow = || Problem::new(Kind::BodyTimeout, "the body did not arrive within `server.request_timeout`");
    let collected = arrival.in_time(timeout, collect(body, limit, memory)).await.ok_or_else(too_slow)?;
    acceptable.and(collected)
}

/// Checks the headers before the body is read.
fn check(headers: &HeaderMap, limit: u64) -> Result<(), Problem> {
    let text = |name| headers.get(name).map(|value| value.to_str().unwrap_or("unreadable"));
    let unsupported = |detail: String| Err(Problem::new(Kind::UnsupportedMediaType, detail));
    let media = text(header::CONTENT_TYPE).map(|value| value.split(';').next().unwrap_or_default().trim());
    match media {
        Some(media) if media.eq_ignore_ascii_case("application/json") => {}
        Some(media) => return unsupported(format!("the content type is `{media}`; it must be `application/json`")),
        None => return unsupported("the header `content-type` is missing; it must be `application/json`".into()),
    }
    match text(header::CONTENT_ENCODING) {
        Some(coding) if !coding.trim().eq_ignore_ascii_case("identity") => {
            return unsupported(format!("the content encoding is `{coding}`; bodies must come uncompressed"));
        }
        _ => {}
    }
    match content_length(headers) {
        Some(length) if length > limit => Err(too_long(limit)),
        _ => Ok(()),
    }
}

fn content_length(headers: &HeaderMap) -> Option<u64> {
    headers.get(header::CONTENT_LENGTH)?.to_str().ok()?.parse().ok()
}

/// Reads the whole body. One over the limit is read on for as much again without being kept: a client that is still
/// sending when the connection closes would never see the answer.
async fn collect(body: Body, limit: u64, memory: &RequestMemory) -> Result<Bytes, Problem> {
    let (mut stream, mut kept, mut length) = (body.into_data_stream(), Vec::new(), 0_u64);
    while let Some(chunk) = stream.next().await {
        let chunk = chunk.map_err(|error| Problem::new(Kind::MalformedBody, format!("the body broke off: {error}")))?;
        length = length.saturating_add(chunk.len() as u64);
        if length > limit.saturating_mul(2) {
            break;
        } else if length > limit {
            kept = Vec::new();
        } else {
            memory.grow_to(length)?;
            kept.extend_from_slice(&chunk);
        }
    }
    if length > limit { Err(too_long(limit)) } else { Ok(kept.into()) }
}

fn too_long(limit: u64) -> Problem {
    Problem::new(Kind::TooLarge, format!("the body is longer than the limit `server.body_limit` of {limit} bytes"))
}

fn parse<T: RequestBody>(bytes: &[u8], limits: &LimitSettings) -> Result<T, Problem> {
    let malformed = |detail: String| Problem::new(Kind::MalformedBody, detail);
    if bytes.iter().all(u8::is_ascii_whitespace) {
        return Err(malformed("the body is empty; it must be a JSON object".into()));
    }
    let text = std::str::from_utf8(bytes).map_err(|error| {
        let (line, column) = place(&bytes[..error.valid_up_to()]);
        malformed(format!("the body is not UTF-8 at line {line} column {column}"))
    })?;
    let mut deserializer = serde_json::Deserializer::from_str(text);
    let mut track = Track::new();
    let tracked = serde_path_to_error::Deserializer::new(&mut deserializer, &mut track);
    let value = T::read(tracked, limits).map_err(|cause| match cause.classify() {
        Category::Data => Problem::fault(pointer(&track.path()), in_words(&cause.to_string())),
        Category::Syntax | Category::Eof | Category::Io => malformed(format!("the body is not JSON: {cause}")),
    })?;
    deserializer.end().map_err(|error| malformed(format!("the body goes on after its JSON: {error}")))?;
    Ok(value)
}

/// Line and column, from 1, of what follows these bytes.
fn place(before: &[u8]) -> (usize, usize) {
    let line_start = before.iter().rposition(|&byte| byte == b'\n').map_or(0, |at| at + 1);
    let line = before.iter().filter(|&&byte| byte == b'\n').count() + 1;
    (line, before.len() - line_start + 1)
}

/// Reads a value that is a text or an object.
///
/// By hand, as every value here that has several spellings: a derived untagged enum would answer every mistake with "data did not
/// match any variant" and not say where it is, and serde-untagged would take malformed JSON inside for a fault of type.
pub struct TextOrObject<T, O> {
    pub expected: &'static str,
    pub text: fn(String) -> T,
    pub object: fn(O) -> T,
}

impl<'de, T, O: Deserialize<'de>> Visitor<'de> for TextOrObject<T, O> {
    type Value = T;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.expected)
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<T, E> {
        Ok((self.text)(text.to_owned()))
    }

    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<T, A::Error> {
        O::deserialize(MapAccessDeserializer::new(map)).map(self.object)
    }
}

#[cfg(test)]
mod tests {
    use super::{LimitSettings, Problem, parse, place};
    use serde::Deserialize;
    use std::collections::BTreeMap;

    #[derive(Debug, Deserialize)]
    #[serde(deny_unknown_fields)]
    struct Body {
        #[expect(dead_code, reason = "only its faults are looked at")]
        lists: BTreeMap<String, Vec<u8>>,
    }

    fn fault(body: &str) -> Problem {
        parse::<Body>(body.as_bytes(), &LimitSettings::default()).unwrap_err()
    }

    #[test]
    fn pointers_are_escaped() {
        let problem = fault(r#"{"lists": {"a/b~c": [1, 2, "x"]}}"#).body("", "");
        let problem = serde_json::to_value(problem).unwrap();
        assert_eq!(problem["errors"][0]["pointer"], "/lists/a~1b~0c/2");
    }

    #[test]
    fn unknown_fields_are_pointed_at() {
        let problem = serde_json::to_value(fault(r#"{"lists": {}, "more": 1}"#).body("", "")).unwrap();
        assert_eq!((&problem["status"], &problem["errors"][0]["pointer"]), (&422.into(), &"/more".into()));
    }

    #[test]
    fn places_count_from_one() {
        assert_eq!((place(b""), place(b"ab\nc"), place(b"\n\n")), ((1, 1), (2, 2), (3, 1)));
    }
}
