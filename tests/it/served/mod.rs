//! Models that other processes run.

mod continuation;
mod echoes;
mod fake_echo;
mod fake_server;
mod fake_sglang;
mod faults;
mod fleet;
mod golden_scores;
mod kinds;
mod lies;
mod methods;
mod sglang;
mod tgi;
mod vllm;

use crate::common::app::{App, GOLDEN};
use crate::common::client::send;
use crate::common::goldens::directory;
use fake_server::FakeServer;
use pdr_audit::config::{DeviceChoice, ModelSettings, ModelSource, ServedKind, ServedSettings, Settings};
use pdr_audit::engine::Engine;
use reqwest::Method;
use serde_json::{Value, json};
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

/// Waits until this is a part of the reason why the first server does not answer, and returns the reason.
async fn until_said(front: &App, reason: &str) -> String {
    let end = Instant::now() + Duration::from_secs(30);
    loop {
        let said = silent(&front.engine).swap_remove(0);
        match said {
            Some(said) if said.contains(reason) => return said,
            said => assert!(Instant::now() < end, "{said:?}, not {reason}"),
        }
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

/// Change made to an answer, and a part of the reason why it is not taken.
type Spoiled = (fn(&mut Value), &'static str);

/// Checks that answers that were changed are not taken, and that the texts are scored once the server answers as it should.
async fn assert_spoiled_answers_are_not_taken(front: &App, server: &FakeServer, spoils: &[Spoiled]) {
    let body = json!({ "inputs": ["One text of words.", "Another text."], "methods": ["loss"] });
    let want = front.score(&body).await["results"].clone();
    for (spoil, reason) in spoils {
        server.state.lock().unwrap().spoil = *spoil;
        let asked = tokio::spawn(send(front.request(Method::POST, "/v1/score").json(&body)));
        until_said(front, reason).await;
        server.state.lock().unwrap().spoil = |_| ();
        assert_eq!(asked.await.unwrap().ok()["results"], want);
        until("the server answers again", || silent(&front.engine)[0].is_none()).await;
    }
}

/// Why a model with these settings of its server is not opened.
async fn opening_fault(kind: ServedKind, name: &str, url: &str, set: impl Fn(&mut ServedSettings)) -> String {
    fault_of(|settings| {
        served(settings, kind, name, GOLDEN, &[url.to_owned()]);
        set(settings.models[0].served.as_mut().unwrap());
    })
    .await
}

/// Why the model of these settings is not opened.
async fn fault_of(set: impl Fn(&mut Settings)) -> String {
    let mut settings = Settings::default();
    set(&mut settings);
    settings.engine.device = DeviceChoice::Cpu;
    let app = App::start_as_it_is(&settings).await;
    app.engine.wait_until_loaded().await.unwrap_err().to_string()
}
