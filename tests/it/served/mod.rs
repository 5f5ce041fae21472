//! Models that other processes run.

mod continuation;
mod fake_vllm;
mod faults;
mod fleet;
mod vllm;

use crate::common::app::App;
use crate::common::goldens::directory;
use pdr_audit::config::{ModelSettings, ModelSource, ServedKind, ServedSettings, Settings};
use pdr_audit::engine::Engine;
use std::time::{Duration, Instant};

/// The id of the model at the front.
const FRONT: &str = "front";

/// A model that is served elsewhere with the tokenizer of a golden, which is the default model.
fn served(settings: &mut Settings, kind: ServedKind, name: &str, golden: &str, urls: &[String]) {
    let tokenizer = directory(golden);
    settings.models = vec![ModelSettings {
        id: FRONT.to_owned(),
        source: ModelSource { text: name.to_owned(), path: name.into() },
        tokenizer: Some(ModelSource { text: tokenizer.display().to_string(), path: tokenizer }),
        served: Some(ServedSettings {
            kind: Some(kind),
            urls: urls.to_vec(),
            timeout: Duration::from_secs(20),
            ..ServedSettings::default()
        }),
        ..ModelSettings::default()
    }];
    settings.engine.default_model = Some(FRONT.to_owned());
    // So that nothing is answered from memory that should have been asked for.
    settings.engine.cache = pdr_audit::config::ByteSize::b(0);
}

/// Waits until it holds.
async fn until(what: &str, holds: impl Fn() -> bool) {
    let end = Instant::now() + Duration::from_secs(30);
    while !holds() {
        assert!(Instant::now() < end, "{what}");
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}

/// Why the servers do not answer, in the order of their URLs; the CPU before them always does.
fn silent(engine: &Engine) -> Vec<Option<String>> {
    let devices = engine.status().devices;
    devices[1..].iter().map(|device| device.unavailable.as_ref().map(|silent| silent.reason.clone())).collect()
}

/// An engine that runs the golden models.
async fn engine() -> App {
    App::with(|settings| settings.engine.cache = pdr_audit::config::ByteSize::b(0)).await
}
