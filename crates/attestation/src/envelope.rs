//! Envelopes by DSSE v1: a payload as bytes, and signatures over it and its type.

use crate::keys::{PublicKey, SigningKey};
use base64::Engine;
use base64::engine::general_purpose::{GeneralPurpose, STANDARD, URL_SAFE};
use serde::{Deserialize, Serialize};

/// The payload type of in-toto statements.
pub const PAYLOAD_TYPE: &str = "application/vnd.in-toto+json";

/// A payload with the signatures that it has.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Envelope {
    pub payload_type: String,
    /// The payload in base64.
    pub payload: String,
    pub signatures: Vec<EnvelopeSignature>,
}

/// One signature of an envelope.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct EnvelopeSignature {
    /// Hint at the key that made it, [`PublicKey::id`]. The signature does not cover it.
    #[serde(default)]
    pub keyid: String,
    /// The signature in base64.
    pub sig: String,
}

/// The payload of an envelope cannot be read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum EnvelopeError {
    #[error("the payload is not base64: {0}")]
    Payload(String),
    #[error("the payload has the type {0:?}; expected {PAYLOAD_TYPE:?}")]
    PayloadType(String),
}

impl Envelope {
    /// Creates an envelope of an in-toto statement with one signature.
    #[must_use]
    pub fn sign(statement: &[u8], key: &SigningKey) -> Self {
        let mut envelope =
            Self { payload_type: PAYLOAD_TYPE.to_owned(), payload: STANDARD.encode(statement), signatures: Vec::new() };
        envelope.add(statement, key);
        envelope
    }

    /// Adds a signature to those that are there; one by the same key is replaced.
    ///
    /// # Errors
    /// [`EnvelopeError`] if the payload is not a statement in base64.
    pub fn countersign(&mut self, key: &SigningKey) -> Result<(), EnvelopeError> {
        let statement = self.statement()?;
        let id = key.public().id();
        self.signatures.retain(|signature| signature.keyid != id);
        self.add(&statement, key);
        Ok(())
    }

    fn add(&mut self, statement: &[u8], key: &SigningKey) {
        let signature = key.sign(&signed_bytes(&self.payload_type, statement));
        self.signatures.push(EnvelopeSignature { keyid: key.public().id(), sig: STANDARD.encode(signature) });
    }

    /// Decodes the in-toto statement. No signature is checked.
    ///
    /// # Errors
    /// [`EnvelopeError`] if the payload is something else, or not base64.
    pub fn statement(&self) -> Result<Vec<u8>, EnvelopeError> {
        if self.payload_type != PAYLOAD_TYPE {
            return Err(EnvelopeError::PayloadType(self.payload_type.clone()));
        }
        decode(&self.payload).map_err(|error| EnvelopeError::Payload(error.to_string()))
    }

    /// Returns true if a signature is by this key, over the payload and its type. `keyid` plays no part, as DSSE demands.
    #[must_use]
    pub fn is_signed_by(&self, key: &PublicKey) -> bool {
        let Ok(payload) = decode(&self.payload) else { return false };
        let message = signed_bytes(&self.payload_type, &payload);
        let mut signatures = self.signatures.iter().filter_map(|signature| decode(&signature.sig).ok());
        signatures.any(|signature| key.verifies(&message, &signature))
    }
}

/// The bytes that are signed: DSSE's pre-authentication encoding.
fn signed_bytes(payload_type: &str, payload: &[u8]) -> Vec<u8> {
    let mut message = format!("DSSEv1 {} {payload_type} {} ", payload_type.len(), payload.len()).into_bytes();
    message.extend(payload);
    message
}

/// Readers of DSSE accept both alphabets of base64.
fn decode(text: &str) -> Result<Vec<u8>, base64::DecodeError> {
    let alphabet: &GeneralPurpose = if text.contains(['-', '_']) { &URL_SAFE } else { &STANDARD };
    alphabet.decode(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_signed_bytes_are_those_of_the_specification() {
        let message = signed_bytes("http://example.com/HelloWorld", b"hello world");
        assert_eq!(message, b"DSSEv1 29 http://example.com/HelloWorld 11 hello world");
    }

    #[test]
    fn every_signature_is_found_whatever_its_key_id_says() {
        let [first, second, other] = [0; 3].map(|_| SigningKey::random().unwrap());
        let mut envelope = Envelope::sign(b"{}", &first);
        envelope.countersign(&second).unwrap();
        envelope.countersign(&second).unwrap();
        assert_eq!(envelope.signatures.len(), 2);
        envelope.signatures[0].keyid = "another".to_owned();
        let is_signed = |key: &SigningKey| envelope.is_signed_by(&key.public());
        assert!(is_signed(&first) && is_signed(&second) && !is_signed(&other));
        assert_eq!(envelope.statement().unwrap(), b"{}");
        let json = serde_json::to_string(&envelope).unwrap();
        assert!(
            json.starts_with(
                r#"{"payloadType":"application/vnd.in-toto+json","payload":"e30=","signatures":[{"keyid":"#
            )
        );
        assert_eq!(serde_json::from_str::<Envelope>(&json).unwrap(), envelope);
    }

    #[test]
    fn a_change_of_the_payload_or_its_type_is_found() {
        let key = SigningKey::random().unwrap();
        let envelope = Envelope::sign(b"{}", &key);
        let payload = Envelope { payload: STANDARD.encode("[]"), ..envelope.clone() };
        let payload_type = Envelope { payload_type: "text/plain".to_owned(), ..envelope.clone() };
        let truncated = Envelope { payload: "e30".to_owned(), ..envelope.clone() };
        for changed in [&payload, &payload_type, &truncated] {
            assert!(!changed.is_signed_by(&key.public()), "{changed:?}");
        }
        assert_eq!(payload_type.statement(), Err(EnvelopeError::PayloadType("text/plain".to_owned())));
        assert!(matches!(truncated.statement(), Err(EnvelopeError::Payload(_))));
        assert!(Envelope { payload: URL_SAFE.encode("{}"), ..envelope }.is_signed_by(&key.public()));
    }
}
