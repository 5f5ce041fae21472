//! Statements by in-toto, version 1.

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// The type of a statement.
const TYPE: &str = "https://in-toto.io/Statement/v1";

/// The name of SHA-256 in a set of digests.
const SHA256: &str = "sha256";

/// A predicate about some subjects.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Statement<P> {
    #[serde(rename = "_type")]
    kind: String,
    pub subject: Vec<Subject>,
    pub predicate_type: String,
    pub predicate: P,
}

/// An artifact by its digests.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Subject {
    pub name: String,
    /// Digests in hexadecimal digits, by algorithm.
    pub digest: BTreeMap<String, String>,
}

/// The payload of an envelope is no statement of the type that is expected.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum StatementError {
    #[error("this is not an in-toto statement: {0}")]
    Unreadable(String),
    #[error("it is of the type {0:?}; expected {TYPE:?}")]
    Type(String),
    #[error("its predicate is of the type {found:?}; expected {expected:?}")]
    PredicateType { found: String, expected: &'static str },
}

impl Subject {
    /// Creates a subject with a SHA-256, in hexadecimal digits.
    #[must_use]
    pub fn new(name: impl Into<String>, sha256: impl Into<String>) -> Self {
        Self { name: name.into(), digest: BTreeMap::from([(SHA256.to_owned(), sha256.into())]) }
    }

    /// The SHA-256, if there is one.
    #[must_use]
    pub fn sha256(&self) -> Option<&str> {
        self.digest.get(SHA256).map(String::as_str)
    }
}

impl<P> Statement<P> {
    #[must_use]
    pub fn new(subject: Vec<Subject>, predicate_type: &str, predicate: P) -> Self {
        Self { kind: TYPE.to_owned(), subject, predicate_type: predicate_type.to_owned(), predicate }
    }

    /// The subject of this name.
    #[must_use]
    pub fn subject(&self, name: &str) -> Option<&Subject> {
        self.subject.iter().find(|subject| subject.name == name)
    }
}

impl<P: DeserializeOwned> Statement<P> {
    /// Reads a statement whose predicate is of this type.
    ///
    /// # Errors
    /// [`StatementError`]: of the types first, so that another statement is named as what it is.
    pub fn read(payload: &[u8], expected: &'static str) -> Result<Self, StatementError> {
        #[derive(Deserialize)]
        #[serde(rename_all = "camelCase")]
        struct Types {
            #[serde(rename = "_type")]
            kind: String,
            predicate_type: String,
        }
        let unreadable = |error: serde_json::Error| StatementError::Unreadable(error.to_string());
        let Types { kind, predicate_type } = serde_json::from_slice(payload).map_err(unreadable)?;
        if kind != TYPE {
            return Err(StatementError::Type(kind));
        }
        if predicate_type != expected {
            return Err(StatementError::PredicateType { found: predicate_type, expected });
        }
        serde_json::from_slice(payload).map_err(unreadable)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_statement_is_read_as_it_is_written_and_others_are_named() {
        let statement = Statement::new(vec![Subject::new("model", "00")], "urn:ours", json!({ "report": 1 }));
        let json = serde_json::to_value(&statement).unwrap();
        assert_eq!(
            json,
            json!({
                "_type": "https://in-toto.io/Statement/v1",
                "subject": [{ "name": "model", "digest": { "sha256": "00" } }],
                "predicateType": "urn:ours",
                "predicate": { "report": 1 },
            })
        );
        let read =
            |json: &serde_json::Value| Statement::<serde_json::Value>::read(json.to_string().as_bytes(), "urn:ours");
        assert_eq!(read(&json).unwrap(), statement);
        assert_eq!(statement.subject("model").unwrap().sha256(), Some("00"));
        let mut other = json.clone();
        other["predicateType"] = "https://slsa.dev/provenance/v1".into();
        let error = read(&other).unwrap_err().to_string();
        assert_eq!(error, "its predicate is of the type \"https://slsa.dev/provenance/v1\"; expected \"urn:ours\"");
        other["_type"] = "https://in-toto.io/Statement/v0.1".into();
        assert!(matches!(read(&other), Err(StatementError::Type(_))));
        assert!(matches!(read(&json!({ "words": 1 })), Err(StatementError::Unreadable(_))));
    }
}
