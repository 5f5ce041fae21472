//! Models declared, opened, added and removed.

use super::rig::{Rig, Script, audit, client, eventually, ids, latched, settings, work};
use crate::engine::{Class, EngineError, Refusal};
use crate::pool::{AddError, LoadError, ModelState, OpenError, Retry, UnknownModel, UnloadError};
use lm::models::ModelError;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

fn unknown() -> UnknownModel {
    UnknownModel("x".to_owned())
}

#[tokio::test]
async fn a_model_must_be_opened_first() {
    let script = Script::new("m");
    let rig = Rig::new(vec![script.model(false).unopened()], settings());
    assert_eq!(rig.refusal(client(vec![ids(1, 10)])), Refusal::NotOpened("m".to_owned()));
    let refusal = rig.engine.submit_when_room(audit(vec![ids(1, 10)])).await.unwrap_err();
    assert_eq!(refusal, Refusal::NotOpened("m".to_owned()));
    assert_eq!(rig.metric("requests_total{class=interactive,outcome=not_opened}"), 1.0);
    assert_eq!(rig.state(0), ModelState::Closed);
    rig.engine.pool().open("m", Retry::AfterPause).await.unwrap();
    assert_eq!(rig.state(0), ModelState::Opened, "a lazy model waits for its first request");
    rig.ask("m").await.unwrap();
    assert_eq!(script.forwards().len(), 1);
    assert_eq!(rig.states(), "r");
    // Ids that were made for other files are not taken for ids of this model.
    let mut stale = client(vec![ids(1, 10)]);
    stale.identity = "sha256:x".into();
    assert_eq!(rig.refusal(stale), Refusal::NotOpened("m".to_owned()));
}

#[tokio::test]
async fn a_load_by_hand_opens_what_is_closed() {
    let script = Script::new("m");
    let rig = Rig::new(vec![script.model(false).unopened()], settings());
    rig.engine.pool().load("m").await.unwrap();
    assert_eq!(rig.states(), "r");
}

#[tokio::test]
async fn a_model_that_is_not_declared_is_unknown_to_all() {
    let rig = Rig::with(&Script::new("m"));
    let pool = rig.engine.pool();
    assert!(matches!(pool.open("x", Retry::Now).await, Err(OpenError::UnknownModel(error)) if error == unknown()));
    assert_eq!(pool.load("x").await, Err(LoadError::UnknownModel(unknown())));
    assert_eq!(pool.unload("x").await, Err(UnloadError::UnknownModel(unknown())));
    assert_eq!(pool.remove("x").await, Err(UnloadError::UnknownModel(unknown())));
    assert_eq!(rig.refusal(work("x", Class::Interactive, vec![ids(1, 10)])), Refusal::UnknownModel("x".to_owned()));
}

#[tokio::test]
async fn a_model_without_a_device_or_an_id_of_its_own_cannot_be_declared() {
    let script = Script::new("m");
    let rig = Rig::with(&script);
    for devices in [vec![], vec![1], vec![0, 0]] {
        let mut declaration = script.model(true).declaration;
        (declaration.id, declaration.devices) = ("n".to_owned(), devices.clone());
        let error = rig.engine.pool().add(declaration).unwrap_err();
        assert_eq!(error, AddError::Devices { id: "n".to_owned(), devices, count: 1 });
        assert!(error.to_string().contains("`n`"), "{error}");
    }
    let taken = rig.engine.pool().add(script.model(true).declaration).unwrap_err();
    assert_eq!(taken, AddError::Taken("m".to_owned()));
}

#[tokio::test]
async fn an_eager_model_that_cannot_be_opened_is_not_ready_and_a_retry_heals_it() {
    let broken = Arc::new(AtomicBool::new(true));
    let is_broken = Arc::clone(&broken);
    let script = Script::new("m").on_open(move || {
        let reason = || ModelError::File { path: "model.safetensors".to_owned(), reason: "moved".to_owned() };
        if is_broken.load(Ordering::SeqCst) { Err(reason()) } else { Ok(()) }
    });
    let rig = Rig::new(vec![script.model(true).unopened()], settings());
    assert_eq!(rig.state(0), ModelState::Closed);
    assert!(!rig.engine.is_ready());
    assert!(rig.engine.pool().open("m", Retry::AfterPause).await.is_err());
    let reason = "model.safetensors: moved".to_owned();
    assert_eq!(rig.state(0), ModelState::Failed(reason.clone()));
    assert!(!rig.engine.is_ready());
    let failed = EngineError::LoadFailed(format!("m: {reason}"));
    assert_eq!(rig.engine.wait_until_loaded().await, Err(failed));
    assert_eq!(rig.engine.pool().load("m").await, Err(LoadError::Failed(reason)));
    broken.store(false, Ordering::SeqCst);
    // Requests do not try again so soon; a load by hand does.
    assert!(rig.engine.pool().open("m", Retry::AfterPause).await.is_err());
    rig.engine.pool().open("m", Retry::Now).await.unwrap();
    rig.engine.wait_until_loaded().await.unwrap();
    assert!(rig.engine.is_ready());
    assert_eq!(rig.states(), "r");
}

/// A pool that opens its models itself, whose eager model fails at first: to be opened, then to be loaded.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_eager_model_that_fails_is_tried_again_by_itself() {
    let (opened, loaded) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
    let first = |count: &Arc<AtomicUsize>| {
        let count = Arc::clone(count);
        move || match count.fetch_add(1, Ordering::SeqCst) {
            0 => Err(ModelError::File { path: "model.safetensors".to_owned(), reason: "not there yet".to_owned() }),
            _ => Ok(()),
        }
    };
    let script = Script::new("m").on_open(first(&opened)).on_load(first(&loaded));
    let rig = Rig::new(vec![script.model(true).unopened()], settings());
    rig.engine.pool().begin_opening();
    eventually(|| rig.engine.is_ready()).await;
    // The load; failures to open are counted in the recorder of the process.
    assert_eq!(rig.metric("model_loads_total{model=m,outcome=failed}"), 1.0);
    assert_eq!(loaded.load(Ordering::SeqCst), 2);
    // Opened in vain, opened, and read again before the second load.
    assert_eq!(opened.load(Ordering::SeqCst), 3);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nothing_is_tried_again_once_the_model_or_the_service_goes() {
    for end in ["unload", "remove", "shutdown"] {
        let opened = Arc::new(AtomicUsize::new(0));
        let count = Arc::clone(&opened);
        let script = Script::new("m").on_open(move || {
            count.fetch_add(1, Ordering::SeqCst);
            Err(ModelError::File { path: "model.safetensors".to_owned(), reason: "moved".to_owned() })
        });
        let rig = Rig::new(vec![script.model(true).unopened()], settings());
        let pool = rig.engine.pool();
        pool.begin_opening();
        eventually(|| rig.states() == "f").await;
        match end {
            "unload" => pool.unload("m").await.unwrap(),
            "remove" => pool.remove("m").await.unwrap(),
            _ => rig.engine.shutdown(std::time::Duration::ZERO),
        }
        tokio::time::sleep(std::time::Duration::from_millis(1_200)).await;
        assert_eq!(opened.load(Ordering::SeqCst), 1, "{end}");
    }
}

#[tokio::test]
async fn all_who_open_a_model_wait_for_one_attempt() {
    let opened = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&opened);
    let script = Script::new("m").on_open(move || {
        count.fetch_add(1, Ordering::SeqCst);
        std::thread::sleep(std::time::Duration::from_millis(20));
        Ok(())
    });
    let rig = Rig::new(vec![script.model(false).unopened()], settings());
    let open = || rig.engine.pool().open("m", Retry::AfterPause);
    let (a, b, c) = tokio::join!(open(), open(), open());
    assert!(a.is_ok() && b.is_ok() && c.is_ok());
    assert_eq!(opened.load(Ordering::SeqCst), 1);
}

#[tokio::test]
async fn a_panic_while_a_model_is_opened_is_its_failure() {
    let script = Script::new("m").on_open(|| panic!("out of order"));
    let rig = Rig::new(vec![script.model(false).unopened()], settings());
    let error = rig.engine.pool().open("m", Retry::AfterPause).await.unwrap_err();
    assert_eq!(error.to_string(), "opening the model's files panicked: out of order");
    assert_eq!(rig.states(), "f");
}

#[tokio::test]
async fn a_removed_model_finishes_its_requests_and_its_id_is_free_again() {
    let (script, latch) = latched("m");
    let rig = Rig::new(vec![script.model(false), Script::new("n").model(false)], settings());
    let first = rig.submit(client(vec![ids(1, 100)]));
    latch.reached().await;
    let queued = rig.submit(client(vec![ids(2, 100)]));
    let pool = rig.engine.pool().clone();
    let removal = tokio::spawn({
        let pool = pool.clone();
        async move { pool.remove("m").await }
    });
    eventually(|| rig.states() == "du").await;
    assert_eq!(rig.refusal(client(vec![ids(3, 10)])), Refusal::Unloading);
    let taken = pool.add(script.model(false).declaration).unwrap_err();
    assert_eq!(taken, AddError::Taken("m".to_owned()), "until nothing of it is left");
    latch.open();
    first.wait().await.unwrap();
    queued.wait().await.unwrap();
    removal.await.unwrap().unwrap();
    assert_eq!((rig.states(), script.copies()), ("u".to_owned(), 0));
    assert_eq!(rig.refusal(client(vec![ids(3, 10)])), Refusal::UnknownModel("m".to_owned()));
    pool.add(script.model(false).declaration).unwrap();
    pool.open("m", Retry::AfterPause).await.unwrap();
    rig.ask("m").await.unwrap();
}

/// Models come and go while a thousand requests run, and a model that is removed is told apart from one that failed.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn models_come_and_go_while_a_thousand_requests_run() {
    let scripts = ["m", "n", "o", "p"].map(|id| Script::new(id).takes(40, 0));
    let rig = Arc::new(Rig::new(scripts.iter().map(|script| script.model(false)).collect(), super::rig::memory(100)));
    let (answered, refused) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
    let requests: Vec<_> = (0..1000_u32)
        .map(|number| {
            let (rig, answered, refused) = (Arc::clone(&rig), Arc::clone(&answered), Arc::clone(&refused));
            tokio::spawn(async move {
                let model = ["m", "n", "o", "p"][number as usize % 4];
                let sequences = vec![ids(number, 5 + number as usize % 20)];
                match rig.engine.submit_when_room(work(model, Class::Batch, sequences)).await {
                    Ok(pending) => {
                        pending.wait().await.expect("an admitted request is answered");
                        answered.fetch_add(1, Ordering::SeqCst);
                    }
                    Err(Refusal::UnknownModel(_) | Refusal::NotOpened(_) | Refusal::Unloading) => {
                        refused.fetch_add(1, Ordering::SeqCst);
                    }
                    Err(refusal) => panic!("{refusal}"),
                }
            })
        })
        .collect();
    let pool = rig.engine.pool().clone();
    let churn = tokio::spawn(async move {
        for round in 0..40 {
            let script = &scripts[round % 4];
            let id = ["m", "n", "o", "p"][round % 4];
            pool.remove(id).await.unwrap();
            pool.add(script.model(false).declaration).unwrap();
            pool.open(id, Retry::AfterPause).await.unwrap();
        }
        scripts
    });
    for request in requests {
        request.await.unwrap();
    }
    let scripts = churn.await.unwrap();
    assert_eq!(answered.load(Ordering::SeqCst) + refused.load(Ordering::SeqCst), 1000);
    assert!(answered.load(Ordering::SeqCst) > 0);
    for id in ["m", "n", "o", "p"] {
        rig.engine.pool().remove(id).await.unwrap();
    }
    assert_eq!(rig.states(), "");
    assert_eq!(rig.memory_used(0), 0);
    assert!(scripts.iter().all(|script| script.copies() == 0), "memory returns");
    let status = rig.engine.status();
    assert_eq!((status.interactive_tokens, status.batch_tokens), (0, 0));
}
