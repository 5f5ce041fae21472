//! The state machine of a model, transition by transition, and the opening of files; the pool as a whole is tested with the
//! engine. Fixtures of both.

mod lifecycle;
mod open;

use super::{Declaration, LocalModel, Model, ModelInfo, Origin};
use crate::config::{Dtype, LayersChoice};
use lm::chat::ChatError;
use lm::hub::{DownloadProgress, HubError};
use lm::models::ModelError;
use lm::models::demo::DEMO;
use lm::models::device::ComputeDevice;
use lm::tokenizer::Tokenizer;
use std::sync::{Arc, LazyLock};

pub(crate) fn declaration(id: &str, eager: bool, devices: &[usize]) -> Declaration {
    Declaration {
        id: id.to_owned(),
        origin: Origin::Files(DEMO),
        dtype: Dtype::Auto,
        layers: LayersChoice::Auto,
        reference: None,
        base: None,
        eager,
        pinned: false,
        devices: devices.to_vec(),
    }
}

/// A causal model of no size, whose digest is its identity, that cannot be loaded.
pub(crate) fn model(id: &str, digest: &str, devices: &[usize]) -> Model {
    static TOKENIZER: LazyLock<Tokenizer> = LazyLock::new(|| {
        Origin::Files(DEMO).tokenizer(Err(&HubError::Cancelled), &DownloadProgress::default()).unwrap()
    });
    Model {
        info: ModelInfo {
            id: id.to_owned(),
            digest: digest.to_owned(),
            tokenizer_digest: "sha256:demo".to_owned(),
            dtype: "f32".to_owned(),
            rounding: None,
            quantization: None,
            device: "fake".to_owned(),
            commit: None,
            backend: None,
            adapter: None,
        },
        identity: digest.into(),
        tokenizer: TOKENIZER.clone(),
        tokenizer_digest: "sha256:demo".into(),
        chat: Err(ChatError::NoTemplate),
        context: None,
        longest: 1,
        vocab_size: 1,
        ends: Ok(Arc::new([])),
        masked: false,
        words: None,
        architecture: Some("test"),
        layers: None,
        weight_bytes: 0,
        activation_bytes: Arc::new(|_| 0),
        load: Arc::new(|_| Err(ModelError::Device("there is none".to_owned()))),
        devices: devices.to_vec(),
        served: None,
        local: Some(LocalModel { place: ComputeDevice::cpu(), files: DEMO, stamp: DEMO.stamp().unwrap() }),
        adapted: None,
    }
}
