//! Opening a model that is served elsewhere: its tokenizer is here, and the rest is what its server says.

use super::declaration::Declaration;
use super::declaration::{LocatedFiles, open_chat_template};
use super::error::OpenError;
use super::model::{Loader, MOST_TOKENS, Model, ModelInfo, open_tokenizer};
use crate::served::{OpenedModel, ServedDescription, ServedSource, describe, served_model};
use lm::models::end_tokens::end_tokens;
use lm::models::files::ModelFiles;
use lm::models::{LoadedModel, ModelError};
use std::sync::Arc;

/// Where it is said to run.
const ELSEWHERE: &str = "served";

impl Model {
    /// Opens a model that is served elsewhere, with the tokenizer in these files. The devices that the declaration names
    /// are its servers, in their order. Where it is the same as `previous`, that is given again.
    pub fn open_served(
        declaration: &Declaration,
        source: &ServedSource,
        located: LocatedFiles,
        previous: Option<Arc<Self>>,
    ) -> Result<Arc<Self>, OpenError> {
        let LocatedFiles { files, commit } = located;
        let stamp = files.stamp()?;
        // A server of some kinds is asked with the tokenizer, and only its answer says how many ids the model has.
        let (tokenizer, _) = open_tokenizer(&files, usize::MAX)?;
        let description = describe(source, &tokenizer)?;
        let vocab_size = description.vocab_size;
        let read = || -> Result<_, OpenError> {
            let ends = match source.continues_texts() {
                true => end_tokens(&files).map_err(|error| error.to_string()),
                false => Err("its server gives statistics alone; run it here or behind vLLM".to_owned()),
            };
            let (tokenizer, digest) = open_tokenizer(&files, vocab_size.unwrap_or(usize::MAX))?;
            // The server adds the token for the beginning of texts, and leaves it out of its answers.
            let tokenizer = match description.leaves_out_leading_token() {
                true => (tokenizer.without_special_tokens(), digest),
                false => (tokenizer, digest),
            };
            Ok((tokenizer, ends, open_chat_template(&files)))
        };
        let ((tokenizer, tokenizer_digest), ends, chat) = files.read_unchanged(&stamp, read)?;
        check_tokenizer(&files, &tokenizer_digest, &description)?;
        let mut identity = description.cache_identity();
        if let Some(previous) = previous {
            let is_same = previous.served.as_ref().is_some_and(|opened| opened.is_same(&description));
            // No cache may confuse models that the probe tells apart.
            if *previous.identity == identity && !is_same {
                identity = description.exact_identity();
            }
            let same_version =
                previous.info.backend.as_ref().map(|backend| &backend.version) == Some(&description.backend.version);
            if is_same && same_version && previous.info.tokenizer_digest == tokenizer_digest && previous.chat == chat {
                return Ok(previous);
            }
        }
        let description = Arc::new(description);
        let opened = Arc::new(OpenedModel { description: Arc::clone(&description), tokenizer: tokenizer.clone() });
        Ok(Arc::new(Self {
            info: ModelInfo {
                id: declaration.id.clone(),
                digest: description.digest.clone(),
                tokenizer_digest: tokenizer_digest.clone(),
                dtype: description.dtype.clone(),
                rounding: description.rounding,
                quantization: None,
                device: ELSEWHERE.to_owned(),
                commit,
                backend: Some(description.backend.clone()),
                adapter: None,
            },
            vocab_size: vocab_size.unwrap_or_else(|| tokenizer.id_bound()),
            tokenizer,
            // A part of the key of cached encodings.
            tokenizer_digest: match description.leaves_out_leading_token() {
                true => format!("{tokenizer_digest} without special tokens").into(),
                false => tokenizer_digest.into(),
            },
            chat,
            context: description.context,
            longest: description.context.unwrap_or(MOST_TOKENS),
            ends,
            masked: false,
            words: None,
            architecture: None,
            layers: None,
            weight_bytes: 0,
            activation_bytes: Arc::new(|_| 0),
            load: loader(source.clone(), declaration.devices.clone(), opened),
            devices: declaration.devices.clone(),
            identity: identity.into(),
            served: Some(description),
            local: None,
            adapted: None,
        }))
    }
}

/// Checks that the ids of our tokenizer mean to the server what they mean here, as far as it says.
fn check_tokenizer(files: &ModelFiles, digest: &str, description: &ServedDescription) -> Result<(), ModelError> {
    match &description.tokenizer_digest {
        Some(theirs) if theirs != digest => {
            let reason = format!("the digest is {digest}, and the server's tokenizer has {theirs}");
            Err(files.error("the tokenizer", reason))
        }
        _ => Ok(()),
    }
}

/// Nothing is loaded, so this cannot fail because a server is gone: whether it answers shows with the first batch.
fn loader(source: ServedSource, devices: Vec<usize>, opened: Arc<OpenedModel>) -> Loader {
    Arc::new(move |device| {
        let server = devices.iter().position(|&own| own == device).and_then(|place| source.server(place));
        let server = server.ok_or_else(|| ModelError::Device(format!("there is no server for the device {device}")))?;
        Ok(LoadedModel::Causal(served_model(Arc::clone(server), Arc::clone(&opened))))
    })
}
