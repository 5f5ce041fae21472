//! Another process of this program: `POST /v1/token-stats`, which answers with the numbers as they are.

use super::description::{BackendInfo, ServedDescription, WeightsAttested, check_identity, check_version};
use super::model::{Backend, OpenedModel};
use super::server::{ModelServer, Patience, unavailable, unreached};
use crate::config::ServedKind;
use lm::models::precision::Rounding;
use lm::models::{BatchStats, ModelError};
use lm::tokenizer::Tokenizer;
use mia::TokenStats;
use safetensors::{Dtype, SafeTensors};
use serde::de::IgnoredAny;
use serde::{Deserialize, Serialize};

const PATH: &str = "/v1/token-stats";
const MEDIA: &str = "application/octet-stream";
/// The numbers of a token in an answer, and their bytes.
const NUMBERS: usize = 4;
const BYTES: usize = NUMBERS * size_of::<f64>();
/// Maximum number of bytes of an answer beside the statistics: the description of the model, and a number per sequence.
const REST: usize = 64 << 10;
const BYTES_PER_LENGTH: usize = size_of::<u32>();

/// A process that runs the model under a name.
pub struct AuditServer {
    pub server: ModelServer,
}

#[derive(Serialize)]
struct Question<'a> {
    model: &'a str,
    sequences: &'a [Vec<u32>],
    #[serde(skip_serializing_if = "Option::is_none")]
    identity: Option<&'a str>,
}

/// Part of an answer beside the statistics.
#[derive(Deserialize)]
struct AnswerMetadata {
    model: AnsweringModel,
    identity: String,
    version: String,
    context: Option<usize>,
    vocab_size: usize,
}

#[derive(Deserialize)]
struct AnsweringModel {
    digest: String,
    tokenizer_digest: String,
    dtype: String,
    rounding: Option<Rounding>,
    /// The backend that runs it, if that is not the server itself.
    backend: Option<IgnoredAny>,
    /// The digest of the adapter that it is under.
    adapter: Option<String>,
}

impl AuditServer {
    fn ask(
        &self,
        sequences: &[Vec<u32>],
        identity: Option<&str>,
        patience: Patience,
    ) -> Result<(AnswerMetadata, BatchStats), ModelError> {
        let question = Question { model: &self.server.name, sequences, identity };
        let question = serde_json::to_vec(&question).map_err(|error| ModelError::Forward(error.to_string()))?;
        let tokens: usize = sequences.iter().map(Vec::len).sum();
        let most = tokens * BYTES + sequences.len() * BYTES_PER_LENGTH + REST;
        let answer = self.server.post(PATH, &question, MEDIA, most as u64, patience)?;
        read(&answer).map_err(|reason| self.server.unreadable(&reason))
    }
}

impl Backend for AuditServer {
    fn describe(&self, _: &Tokenizer) -> Result<ServedDescription, ModelError> {
        let (said, _) = self.ask(&[], None, Patience::Description)?;
        if said.model.backend.is_some() {
            return Err(unreached(format!("it does not run `{}` itself: that is served elsewhere", self.server.name)));
        }
        if said.model.adapter.is_some() {
            return Err(unreached(format!(
                "`{}` is a model under an adapter, which cannot be served",
                self.server.name
            )));
        }
        Ok(ServedDescription {
            identity: said.identity,
            probe: Vec::new(),
            digest: said.model.digest,
            tokenizer_digest: Some(said.model.tokenizer_digest),
            dtype: said.model.dtype,
            rounding: said.model.rounding,
            dialect: None,
            context: said.context,
            vocab_size: Some(said.vocab_size),
            backend: BackendInfo {
                kind: ServedKind::PdrAudit.to_string(),
                version: check_version(said.version)?,
                served_name: self.server.name.clone(),
                urls: self.server.urls,
                weights: WeightsAttested::Attested,
                rounding: None,
            },
        })
    }

    fn check(&self, opened: &OpenedModel) -> Result<(), ModelError> {
        let (said, _) = self.ask(&[], None, Patience::Description)?;
        opened.description.check(&said.identity, &[])
    }

    fn names_its_model(&self) -> bool {
        true
    }

    fn token_stats(&self, sequences: &[Vec<u32>], opened: &OpenedModel) -> Result<BatchStats, ModelError> {
        let identity = opened.description.identity.as_str();
        let (said, stats) = self.ask(sequences, Some(identity), Patience::Batch)?;
        check_identity(identity, &said.identity)?;
        let fits = |(ids, stats): (&Vec<u32>, &Vec<TokenStats>)| stats.len() == ids.len().saturating_sub(1);
        if stats.len() != sequences.len() || !sequences.iter().zip(&stats).all(fits) {
            return Err(unavailable("its answer has other lengths than the sequences"));
        }
        Ok(stats)
    }
}

fn read(file: &[u8]) -> Result<(AnswerMetadata, BatchStats), String> {
    let (_, header) = SafeTensors::read_metadata(file).map_err(|error| error.to_string())?;
    let said = header.metadata().as_ref().and_then(|metadata| metadata.get("served"));
    let said = said.ok_or("it does not say what is served")?;
    let said: AnswerMetadata = serde_json::from_str(said).map_err(|error| error.to_string())?;
    let tensors = SafeTensors::deserialize(file).map_err(|error| error.to_string())?;
    let tensor = |name: &str, dtype| {
        let tensor = tensors.tensor(name).map_err(|error| error.to_string())?;
        if tensor.dtype() == dtype { Ok(tensor) } else { Err(format!("`{name}` is of the type {}", tensor.dtype())) }
    };
    let lengths = tensor("lengths", Dtype::U32)?;
    let stats = tensor("stats", Dtype::F64)?;
    if !matches!(stats.shape(), [_, NUMBERS]) {
        return Err(format!("`stats` has the shape {:?}", stats.shape()));
    }
    // By the shape, no bytes are left over.
    let (numbers, _) = stats.data().as_chunks::<8>();
    let numbers: Vec<f64> = numbers.iter().map(|bytes| f64::from_le_bytes(*bytes)).collect();
    let (mut rest, _) = numbers.as_chunks::<NUMBERS>();
    let (lengths, _) = lengths.data().as_chunks::<BYTES_PER_LENGTH>();
    let mut sequences = Vec::with_capacity(lengths.len());
    for length in lengths.iter().map(|bytes| u32::from_le_bytes(*bytes) as usize) {
        let (sequence, behind) = rest.split_at_checked(length).ok_or("it has fewer numbers than its lengths say")?;
        sequences.push(sequence.iter().map(|&[lp, mu, var, max_lp]| TokenStats { lp, mu, var, max_lp }).collect());
        rest = behind;
    }
    if rest.is_empty() { Ok((said, sequences)) } else { Err("it has more numbers than its lengths say".to_owned()) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use safetensors::tensor::{TensorView, serialize};
    use serde_json::json;
    use std::collections::HashMap;

    /// An answer about sequences of these lengths, with numbers of this type and shape.
    fn answer(lengths: &[u32], dtype: Dtype, shape: &[usize]) -> Vec<u8> {
        let lengths_data: Vec<u8> = lengths.iter().flat_map(|length| length.to_le_bytes()).collect();
        let bytes = if dtype == Dtype::F64 { 8 } else { 4 };
        let data = vec![0; shape.iter().product::<usize>() * bytes];
        let said = json!({
            "model": { "digest": "d", "tokenizer_digest": "t", "dtype": "f32", "rounding": null, "backend": null,
                       "adapter": null },
            "identity": "i", "version": "1", "context": null, "vocab_size": 7,
        });
        let tensors = [
            ("lengths", TensorView::new(Dtype::U32, vec![lengths.len()], &lengths_data).unwrap()),
            ("stats", TensorView::new(dtype, shape.to_vec(), &data).unwrap()),
        ];
        serialize(tensors, Some(HashMap::from([("served".to_owned(), said.to_string())]))).unwrap()
    }

    #[test]
    fn an_answer_is_read_whole_or_not_at_all() {
        let (said, stats) = read(&answer(&[2, 0, 1], Dtype::F64, &[3, 4])).unwrap();
        assert_eq!((said.identity.as_str(), stats.iter().map(Vec::len).collect::<Vec<_>>()), ("i", vec![2, 0, 1]));
        let wrong = |answer: &[u8], reason: &str| {
            let said = read(answer).err().expect(reason);
            assert!(said.contains(reason), "{said}, not {reason}");
        };
        wrong(&answer(&[2, 2], Dtype::F64, &[3, 4]), "fewer numbers");
        wrong(&answer(&[2], Dtype::F64, &[3, 4]), "more numbers");
        wrong(&answer(&[1], Dtype::F64, &[5]), "the shape [5]");
        wrong(&answer(&[4], Dtype::F64, &[2, 8]), "the shape [2, 8]");
        wrong(&answer(&[3], Dtype::F32, &[3, 4]), "`stats` is of the type F32");
        let whole = answer(&[3], Dtype::F64, &[3, 4]);
        for end in [0, 7, 60, whole.len() - 1] {
            assert!(read(&whole[..end]).is_err(), "{end}");
        }
    }
}
