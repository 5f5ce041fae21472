//! Models loaded and unloaded by hand.

use super::rig::{
    Latch, Rig, RigSettings, Script, answered, audit, client, eventually, ids, latched, memory, missing, settings,
    slow_to_load, work,
};
use crate::engine::{Class, EngineError, Refusal};
use crate::pool::{Ended, LoadError, ModelState, Retry, UnloadError};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

const LONG: Duration = Duration::from_secs(60);

#[tokio::test]
async fn many_who_want_a_model_load_it_once() {
    let (script, latch) = slow_to_load("m");
    let rig = Rig::new(vec![script.model(false)], settings());
    let loads: Vec<_> = (0..50).map(|_| rig.load_behind("m")).collect();
    let requests: Vec<_> = (0..50).map(|n| rig.submit(client(vec![ids(n, 10)]))).collect();
    latch.reached().await;
    assert_eq!(rig.states(), "l");
    latch.open();
    for load in loads {
        assert_eq!(load.await.unwrap(), Ok(()));
    }
    answered(requests).await;
    assert_eq!(rig.engine.pool().load("m").await, Ok(()), "at once where it is there");
    assert_eq!(rig.metric("model_loads_total{model=m,outcome=ok}"), 1.0);
    rig.assert_idle().await;
}

#[tokio::test]
async fn a_failed_load_is_tried_again_by_hand_at_once_and_by_requests_after_the_pause() {
    let attempts = Arc::new(AtomicUsize::new(0));
    let (latch, seen) = (Arc::new(Latch::default()), Arc::clone(&attempts));
    let script = Script::new("m").on_load({
        let latch = Arc::clone(&latch);
        move || match seen.fetch_add(1, Ordering::SeqCst) {
            0 => {
                // Long, so that the pause after it is as long: nothing below takes anything like a second.
                std::thread::sleep(Duration::from_secs(1));
                Err(missing())
            }
            1 => {
                latch.pass();
                Err(missing())
            }
            _ => Ok(()),
        }
    });
    let rig = Rig::new(vec![script.model(false)], settings());
    let failed = || "model.safetensors: not there".to_owned();
    assert_eq!(rig.engine.pool().load("m").await, Err(LoadError::Failed(failed())));
    let refusal = rig.refusal(client(vec![ids(1, 10)]));
    assert_eq!(refusal, Refusal::ModelFailed(failed()));
    assert_eq!(attempts.load(Ordering::SeqCst), 1);

    // By hand, the pause does not count; who asks meanwhile waits for the same attempt.
    let again = rig.load_behind("m");
    latch.reached().await;
    let waiting = rig.submit(client(vec![ids(1, 10)]));
    latch.open();
    assert_eq!(again.await.unwrap(), Err(LoadError::Failed(failed())));
    assert_eq!(waiting.wait().await, Err(EngineError::LoadFailed(failed())));
    assert_eq!(attempts.load(Ordering::SeqCst), 2);

    // And requests, after it.
    loop {
        match rig.engine.submit(client(vec![ids(1, 10)])) {
            Ok(ticket) => break ticket.wait().await.map(drop).unwrap(),
            Err(refusal) => assert_eq!(refusal, Refusal::ModelFailed(failed())),
        }
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    assert_eq!(attempts.load(Ordering::SeqCst), 3);
    rig.assert_idle().await;
}

#[tokio::test]
async fn an_unload_finishes_what_is_queued_and_returns_the_memory() {
    let (script, latch) = latched("m");
    let script = script.takes(40, 0);
    let rig = Rig::new(vec![script.model(true)], RigSettings { cache_bytes: 1 << 20, ..memory(100) });
    let tickets: Vec<_> = (1..=3).map(|n| rig.submit(client(vec![ids(n, 100)]))).collect();
    latch.reached().await;
    let unloading = rig.unload_behind("m");
    eventually(|| rig.states() == "d").await;
    assert!(rig.engine.is_ready(), "by hand is as wanted");
    // New work is refused, with nothing left behind; and so is a load.
    assert_eq!(rig.refusal(client(vec![ids(9, 10)])), Refusal::Unloading);
    let refusal = rig.engine.submit_when_room(audit(vec![ids(9, 10)])).await.unwrap_err();
    assert_eq!(refusal, Refusal::Unloading);
    assert_eq!(rig.engine.pool().load("m").await, Err(LoadError::Unloading));
    assert_eq!(rig.metric("requests_total{class=interactive,outcome=unloading}"), 1.0);
    assert_eq!((rig.memory_used(0), script.copies()), (40, 1));
    latch.open();
    unloading.await.unwrap().unwrap();
    assert_eq!((rig.states().as_str(), rig.memory_used(0), script.copies(), rig.trims(0)), ("u", 0, 0, 1));
    assert_eq!(script.forwards().len(), 3, "before it was dropped, not after");
    answered(tickets).await;
    assert_eq!(rig.metric("model_unloads_total{model=m}"), 1.0);
    assert!(rig.engine.is_ready());
    rig.engine.wait_until_loaded().await.unwrap();

    // Cached sequences need no model. The rest loads it again.
    rig.run(client(vec![ids(1, 100)])).await;
    assert_eq!(rig.states(), "u");
    rig.run(client(vec![ids(5, 100)])).await;
    assert_eq!((rig.states().as_str(), rig.memory_used(0), script.copies()), ("r", 40, 1));
    rig.assert_idle().await;
}

#[tokio::test]
async fn a_request_that_is_being_fed_is_finished_before_its_model_goes() {
    let (script, latch) = latched("m");
    let rig = Rig::with(&script);
    let feeding = rig.feed(20);
    latch.reached().await;
    let unloading = rig.unload_behind("m");
    eventually(|| rig.states() == "d").await;
    latch.open();
    let output = feeding.await.unwrap().unwrap().wait().await.unwrap();
    assert_eq!(output.forward_passes, 20);
    unloading.await.unwrap().unwrap();
    assert_eq!(rig.metric("model_loads_total{model=m,outcome=ok}"), 1.0);
}

#[tokio::test]
async fn an_unload_does_not_wait_for_what_nobody_wants() {
    let (script, latch) = latched("m");
    let rig = Rig::with(&script);
    let first = rig.submit(client(vec![ids(1, 100)]));
    latch.reached().await;
    drop(rig.submit(client(vec![ids(2, 100)])));
    let unloading = rig.unload_behind("m");
    eventually(|| rig.states() == "d").await;
    latch.open();
    first.wait().await.unwrap();
    unloading.await.unwrap().unwrap();
    assert_eq!((rig.states().as_str(), script.forwards().len()), ("u", 1));
}

#[tokio::test]
async fn unloading_what_is_not_loaded_is_done_at_once() {
    let (busy, latch) = latched("m");
    let unopened = Script::new("n");
    let broken = Script::new("o").on_load(|| Err(missing()));
    let models = vec![busy.model(true), unopened.model(true).unopened(), broken.model(true)];
    let rig = Rig::new(models, settings());
    eventually(|| rig.states() == "ruf").await;
    let stuck = rig.submit(client(vec![ids(1, 10)]));
    latch.reached().await;
    // The device is busy: no thread is needed for this.
    for id in ["n", "o", "n"] {
        rig.engine.pool().unload(id).await.unwrap();
    }
    assert_eq!(rig.states(), "ruu");
    assert!(rig.engine.is_ready(), "nobody wants the broken one any more");
    rig.engine.pool().open("n", Retry::AfterPause).await.unwrap();
    latch.open();
    stuck.wait().await.unwrap();
    rig.ask("m").await.unwrap();
    assert_eq!(rig.states(), "ruu", "what was unloaded by hand is not loaded by being opened");
    assert_eq!(rig.metric("model_unloads_total{model=n}"), 0.0);
    rig.engine.pool().load("n").await.unwrap();
    assert_eq!(rig.states(), "rru");
}

#[tokio::test]
async fn of_load_and_unload_the_unload_wins() {
    let (script, latch) = slow_to_load("m");
    let rig = Rig::new(vec![script.model(false)], settings());
    let loading = rig.load_behind("m");
    latch.reached().await;
    let queued = rig.submit(client(vec![ids(1, 10)]));
    let unloading = rig.unload_behind("m");
    // The load is told at once; what it began is finished, and what waited for it served.
    assert_eq!(loading.await.unwrap(), Err(LoadError::Unloading));
    assert_eq!(rig.states(), "d");
    assert!(!unloading.is_finished());
    latch.open();
    unloading.await.unwrap().unwrap();
    queued.wait().await.unwrap();
    assert_eq!((rig.states().as_str(), script.copies()), ("u", 0));
    assert_eq!(rig.engine.pool().load("m").await, Ok(()));
}

#[tokio::test]
async fn a_load_that_fails_while_its_model_drains_ends_both() {
    let latch = Arc::new(Latch::default());
    let inner = Arc::clone(&latch);
    let script = Script::new("m").on_load(move || {
        inner.pass();
        Err(missing())
    });
    let rig = Rig::new(vec![script.model(true)], settings());
    latch.reached().await;
    let unloading = rig.unload_behind("m");
    eventually(|| rig.states() == "d").await;
    latch.open();
    unloading.await.unwrap().unwrap();
    assert_eq!(rig.states(), "u");
    assert!(rig.engine.is_ready());
}

/// Loads, unloads, requests and registrations at random: in the end everything is settled and the books balance.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn whatever_races_ends_in_a_settled_state() {
    let scripts = ["m", "n", "o"].map(|id| Script::new(id).takes(40, 0));
    let models = [&scripts[0], &scripts[1], &scripts[2]].map(|script| script.model(false).on(&[0, 1]));
    let rig = Arc::new(Rig::new(models.into(), RigSettings { memory: vec![100, 50], ..settings() }));
    let tasks = (0..60_u32).map(|task| {
        let rig = Arc::clone(&rig);
        tokio::spawn(async move {
            let id = ["m", "n", "o"][task as usize % 3];
            for round in 0..10 {
                match (task / 3 + round) % 5 {
                    // The second device has room for one model only: another replica may be evicted, none is refused.
                    0 => assert!(matches!(rig.engine.pool().load(id).await, Ok(()) | Err(LoadError::Unloading))),
                    1 => rig.engine.pool().unload(id).await.unwrap(),
                    2 => drop(rig.engine.pool().open(id, Retry::AfterPause).await.unwrap()),
                    _ => match rig.engine.submit(work(id, Class::Interactive, vec![ids(task, 10)])) {
                        Ok(ticket) => assert_eq!(ticket.wait().await.unwrap().forward_passes, 1),
                        Err(refusal) => assert!(matches!(
                            refusal,
                            Refusal::Unloading | Refusal::Busy { .. } | Refusal::NotOpened(_)
                        )),
                    },
                }
            }
        })
    });
    for task in tasks.collect::<Vec<_>>() {
        task.await.unwrap();
    }
    rig.assert_idle().await;
    eventually(|| rig.states().chars().all(|state| "ur".contains(state))).await;
    let status = rig.engine.pool().status();
    for (script, model) in scripts.iter().zip(&status) {
        assert_eq!(script.copies(), model.resident.len());
        assert_eq!(model.state == ModelState::Ready, !model.resident.is_empty());
    }
    for device in 0..2 {
        let resident = status.iter().filter(|model| model.resident.contains(&device)).count();
        assert_eq!(rig.memory_used(device), 40 * resident as u64);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn who_waits_for_a_model_hears_of_the_end() {
    let (script, latch) = slow_to_load("m");
    let (other, busy) = latched("n");
    let rig = Rig::new(vec![script.model(true), other.model(true).on(&[1])], super::rig::two_devices());
    let stuck = rig.submit(work("n", Class::Interactive, vec![ids(1, 10)]));
    latch.reached().await;
    busy.reached().await;
    let loading = rig.load_behind("m");
    let unloading = rig.unload_behind("n");
    eventually(|| rig.states() == "ld").await;
    let ending = rig.shutdown_behind(Duration::ZERO);
    assert_eq!(loading.await.unwrap(), Err(LoadError::Ended(Ended::ShuttingDown)));
    assert_eq!(unloading.await.unwrap(), Err(UnloadError::Ended(Ended::ShuttingDown)));
    latch.open();
    busy.open();
    ending.await.unwrap();
    stuck.wait().await.unwrap();
    assert_eq!(rig.engine.pool().load("m").await, Err(LoadError::Ended(Ended::ShuttingDown)));
    assert_eq!(rig.engine.pool().unload("m").await, Err(UnloadError::Ended(Ended::ShuttingDown)));
    assert_eq!(script.copies() + other.copies(), 0);
    rig.engine.shutdown(LONG);
}
