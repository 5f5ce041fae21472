//! Models declared and opened.

use super::rig::{Rig, Script, audit, client, ids, settings};
use crate::engine::{
    DeviceSlot, Engine, EngineError, EngineSettings, LoadError, ModelSlot, ModelState, Refusal, UnknownModel,
    UnloadError, Work,
};

#[tokio::test]
async fn a_model_must_be_opened_first() {
    let script = Script::new("m");
    let rig = Rig::new(vec![script.model(false).unopened()], settings());
    assert_eq!(rig.engine.submit(client(vec![ids(1, 10)])).unwrap_err(), Refusal::NotOpened("m".to_owned()));
    let refusal = rig.engine.submit_when_room(audit(vec![ids(1, 10)])).await.unwrap_err();
    assert_eq!(refusal, Refusal::NotOpened("m".to_owned()));
    assert_eq!(rig.engine.load("m").await, Err(LoadError::NotOpened("m".to_owned())));
    assert_eq!(rig.metric("requests_total{class=interactive,outcome=not_opened}"), 1.0);
    assert_eq!(rig.states(), "u");
    assert!(rig.engine.register("m", script.source()).unwrap());
    assert_eq!(rig.states(), "u", "a lazy model waits for its first request");
    rig.ask("m").await.unwrap();
    // Once it is loaded, it stays what it is.
    let impostor = Script::new("x");
    assert!(!rig.engine.register("m", impostor.source()).unwrap());
    rig.engine.opening_failed("m", "moved").unwrap();
    rig.ask("m").await.unwrap();
    assert_eq!((script.forwards().len(), impostor.forwards().len()), (2, 0));
    assert_eq!(rig.states(), "r");
    // Ids that were made for other files are not taken for ids of this model.
    let stale = Work { identity: "sha256:x".into(), ..client(vec![ids(1, 10)]) };
    assert_eq!(rig.engine.submit(stale).unwrap_err(), Refusal::NotOpened("m".to_owned()));
}

#[tokio::test]
async fn a_model_that_is_not_declared_is_unknown_to_all() {
    let rig = Rig::of(&Script::new("m"));
    let unknown = || UnknownModel("x".to_owned());
    assert_eq!(rig.engine.register("x", Script::new("x").source()), Err(unknown()));
    assert_eq!(rig.engine.opening_failed("x", "gone"), Err(unknown()));
    assert_eq!(rig.engine.load("x").await, Err(LoadError::UnknownModel(unknown())));
    assert_eq!(rig.engine.unload("x").await, Err(UnloadError::UnknownModel(unknown())));
}

#[tokio::test]
async fn a_model_without_a_device_cannot_be_declared() {
    let device = || DeviceSlot {
        name: "fake".to_owned(),
        memory: 0,
        max_batch_tokens: 1,
        calibration: None,
        threads: 1,
        trim: Box::new(|| {}),
    };
    for devices in [vec![], vec![1], vec![0, 0]] {
        let model = ModelSlot { id: "m".to_owned(), eager: true, pinned: false, devices };
        let settings = EngineSettings { max_queue_tokens: 1, cache_bytes: 0, disk_cache: None };
        let error = Engine::start(vec![model], vec![device()], settings).unwrap_err();
        assert!(error.to_string().contains("`m`"), "{error}");
    }
}

#[tokio::test]
async fn an_eager_model_that_cannot_be_opened_is_not_ready_and_a_retry_heals_it() {
    let script = Script::new("m");
    let rig = Rig::new(vec![script.model(true).unopened()], settings());
    assert_eq!(rig.states(), "l", "opening is a part of loading");
    rig.engine.opening_failed("m", "no such repository").unwrap();
    assert_eq!(rig.state(0), ModelState::Failed("no such repository".to_owned()));
    assert!(!rig.engine.is_ready());
    assert_eq!(rig.engine.status().last_error.unwrap().1, "no such repository");
    let failed = EngineError::ModelFailed("m: no such repository".to_owned());
    assert_eq!(rig.engine.wait_until_loaded().await, Err(failed));
    rig.engine.register("m", script.source()).unwrap();
    rig.engine.wait_until_loaded().await.unwrap();
    assert!(rig.engine.is_ready());
    assert_eq!(rig.states(), "r");
}
