//! Memory of a device, through the engine: who goes, who stays, who is refused.

use super::rig::{Rig, Script, answered, client, eventually, ids, latched, memory, work};
use crate::engine::{Class, EngineError};
use crate::pool::{LoadError, ModelState};
use lm::models::ModelError;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Four models of 40 bytes.
fn four() -> [Script; 4] {
    ["m", "n", "o", "p"].map(|id| Script::new(id).takes(40, 0))
}

#[tokio::test]
async fn the_least_recently_used_model_makes_room() {
    let scripts = four();
    let rig = Rig::new(scripts.iter().map(|script| script.model(false)).collect(), memory(100));
    for id in ["m", "n", "m", "o"] {
        rig.ask(id).await.unwrap();
    }
    assert_eq!(rig.states(), "ruru", "the forward pass counts, not the load");
    assert_eq!((rig.memory_used(0), rig.trims(0)), (80, 1));
    assert_eq!(scripts.each_ref().map(Script::copies), [1, 0, 1, 0]);
    rig.ask("p").await.unwrap();
    assert_eq!(rig.states(), "uurr");
    rig.ask("n").await.unwrap();
    assert_eq!(rig.states(), "urur");
    let evictions = ["m", "n", "o", "p"].map(|id| rig.metric(&format!("model_evictions_total{{model={id}}}")));
    assert_eq!(evictions, [1.0, 1.0, 1.0, 0.0]);
    let status = rig.engine.pool().status();
    assert!(status[0].loaded_at.is_none() && rig.activity(0).last_used.is_some());
    assert!(status[1].loaded_at.is_some());
    assert!(rig.engine.is_ready());
    rig.assert_idle().await;
}

#[tokio::test]
async fn eager_and_pinned_models_stay() {
    let [m, n, o, p] = four();
    let models = vec![m.model(true), n.model(false).pinned(), o.model(false), p.model(false)];
    let rig = Rig::new(models, memory(120));
    rig.engine.wait_until_loaded().await.unwrap();
    for id in ["n", "o", "p", "o", "p"] {
        rig.ask(id).await.unwrap();
    }
    assert_eq!(rig.states(), "rrur");
    assert!(rig.engine.is_ready());
}

#[tokio::test]
async fn a_model_without_room_is_refused_with_numbers_and_nobody_goes() {
    let [m, n, _, _] = four();
    let big = Script::new("big").takes(30 << 20, 1 << 10);
    let pinned = Script::new("pinned").takes(3 << 20, 0);
    let models = vec![m.model(false), n.model(false), pinned.model(true), big.model(false)];
    let rig = Rig::new(models, memory(32 << 20));
    rig.engine.wait_until_loaded().await.unwrap();
    for id in ["m", "n"] {
        rig.ask(id).await.unwrap();
    }
    let reason = "needs 30.0 MiB (30.0 MiB of weights and at least 0.0 MiB to run) and the device has 32.0 MiB, \
                  of which pinned models hold 3.0 MiB (`pinned` 3.0 MiB)";
    assert_eq!(rig.ask("big").await, Err(EngineError::LoadFailed(reason.to_owned())));
    assert_eq!(rig.engine.pool().load("big").await, Err(LoadError::Failed(reason.to_owned())));
    assert_eq!(rig.state(3), ModelState::Failed(reason.to_owned()));
    assert_eq!(rig.states(), "rrrf");
    assert_eq!((rig.memory_used(0), rig.trims(0), big.copies()), (80 + (3 << 20), 2, 0));
    assert_eq!(rig.metric("model_evictions_total{model=m}"), 0.0);
    // When the pinned model is unloaded by hand there is room.
    rig.engine.pool().unload("pinned").await.unwrap();
    rig.ask("big").await.unwrap();
    assert_eq!(rig.states(), "rrur");
}

#[tokio::test]
async fn models_with_work_go_last_and_their_work_is_done() {
    let (m, latch) = latched("m");
    let m = m.takes(40, 0);
    let [_, n, o, _] = four();
    let rig = Rig::new(vec![m.model(false), n.model(false), o.model(false)], memory(100));
    rig.ask("n").await.unwrap();
    // In order of age: `o` needs room while `m` has more work than the batch in flight, and `n` was used before it.
    let first = rig.submit(client(vec![ids(1, 100)]));
    latch.reached().await;
    let other = rig.submit(work("o", Class::Interactive, vec![ids(1, 10)]));
    let second = rig.submit(client(vec![ids(2, 100)]));
    latch.open();
    answered([first, other, second]).await;
    assert_eq!(rig.states(), "rur");
    assert_eq!(rig.metric("model_loads_total{model=m,outcome=ok}"), 1.0);
}

#[tokio::test]
async fn where_nothing_else_frees_enough_models_with_work_go_too() {
    let (m, latch) = latched("m");
    let (m, n) = (m.takes(60, 0), Script::new("n").takes(60, 0));
    let rig = Rig::new(vec![m.model(false), n.model(false)], memory(100));
    let first = rig.submit(client(vec![ids(1, 100)]));
    latch.reached().await;
    let other = rig.submit(work("n", Class::Interactive, vec![ids(1, 10)]));
    let second = rig.submit(client(vec![ids(2, 100)]));
    latch.open();
    answered([first, other, second]).await;
    assert_eq!(m.firsts(), [[1], [2]]);
    assert_eq!(rig.metric("model_loads_total{model=m,outcome=ok}"), 2.0);
    assert_eq!(rig.states(), "ru");
    rig.assert_idle().await;
}

#[tokio::test]
async fn out_of_memory_at_load_evicts_and_tries_again() {
    let [m, n, _, _] = four();
    // The books say that there is room for all; the device has it when two are gone.
    let copies = Arc::new({
        let (m, n) = (m.clone(), n.clone());
        move || m.copies() + n.copies()
    });
    let greedy = Script::new("o").takes(1, 0).on_load(move || match copies() {
        0 => Ok(()),
        left => Err(ModelError::OutOfMemory(format!("{left} in the way"))),
    });
    let pinned = Script::new("p");
    let models = vec![m.model(false), n.model(false), greedy.model(false), pinned.model(false).pinned()];
    let rig = Rig::new(models, memory(1000));
    for id in ["p", "m", "n", "o"] {
        rig.ask(id).await.unwrap();
    }
    assert_eq!(rig.states(), "uurr");
    assert_eq!((rig.memory_used(0), rig.trims(0)), (1, 2));
    assert_eq!(rig.metric("model_loads_total{model=o,outcome=ok}"), 1.0);
    assert_eq!(rig.metric("model_loads_total{model=o,outcome=failed}"), 0.0);
}

#[tokio::test]
async fn out_of_memory_at_load_fails_when_there_is_nothing_left_to_give() {
    let attempts = Arc::new(AtomicUsize::new(0));
    let seen = Arc::clone(&attempts);
    let hopeless = Script::new("n").on_load(move || {
        seen.fetch_add(1, Ordering::SeqCst);
        Err(ModelError::OutOfMemory("no".to_owned()))
    });
    let [m, ..] = four();
    let rig = Rig::new(vec![m.model(true), hopeless.model(false)], memory(1000));
    rig.engine.wait_until_loaded().await.unwrap();
    let no = "out of memory: no".to_owned();
    assert_eq!(rig.engine.pool().load("n").await, Err(LoadError::Failed(no)));
    assert_eq!(attempts.load(Ordering::SeqCst), 1);
    assert_eq!(rig.states(), "rf");
}

#[tokio::test]
async fn batches_shrink_to_what_fits_beside_the_weights_and_grow_back() {
    let m = Script::new("m").takes(40, 1);
    let n = Script::new("n").takes(30, 1);
    // Alone `m` has room for batches of 60 tokens; with `n` beside it, of 30.
    let rig = Rig::new(vec![m.model(true), n.model(false)], memory(100));
    let run = async || {
        let sequences = (1..=12).map(|n| ids(n, 10)).collect();
        let before = m.forwards().len();
        rig.run(client(sequences)).await;
        m.forwards()[before..].iter().map(Vec::len).collect::<Vec<_>>()
    };
    assert_eq!(run().await, [6, 6]);
    rig.ask("n").await.unwrap();
    assert_eq!(rig.states(), "rr");
    assert_eq!(run().await, [3, 3, 3, 3]);
    rig.engine.pool().unload("n").await.unwrap();
    assert_eq!(run().await, [6, 6]);
}

/// Two models share memory for one, and the oldest work alternates between them: a device that has loaded one stays with it
/// for a turn, so there are few loads, and both are served.
#[tokio::test]
async fn models_that_share_memory_for_one_take_turns_and_not_batches() {
    let load = || std::thread::sleep(std::time::Duration::from_millis(100));
    let slow = |id| {
        Script::new(id).takes(60, 0).on_load(move || {
            load();
            Ok(())
        })
    };
    let (m, n) = (slow("m"), slow("n"));
    let rig = Rig::new(vec![m.model(false), n.model(false)], memory(100));
    let requests: Vec<_> = (0..40_u32)
        .map(|number| {
            let model = ["m", "n"][number as usize % 2];
            rig.submit(work(model, Class::Interactive, vec![ids(number, 20)]))
        })
        .collect();
    answered(requests).await;
    // Without turns each of the eight batches needs a load of its own; with them the batches of a turn take no time.
    let loads = |id| rig.metric(&format!("model_loads_total{{model={id},outcome=ok}}"));
    let (m, n) = (loads("m"), loads("n"));
    assert!(m >= 1.0 && n >= 1.0 && m + n <= 4.0, "{m} and {n} loads");
    rig.assert_idle().await;
}

/// The same for two audits, whose work is fed in as there is room.
#[tokio::test]
async fn audits_of_models_that_share_memory_for_one_take_turns() {
    let slow = |id| {
        let sleep = |millis| std::thread::sleep(std::time::Duration::from_millis(millis));
        let script = Script::new(id).takes(60, 0).on_load(move || {
            sleep(100);
            Ok(())
        });
        // Long enough for the next texts to be fed in meanwhile.
        script.on_forward(move |_| {
            sleep(5);
            Ok(())
        })
    };
    let (m, n) = (slow("m"), slow("n"));
    let rig = Rig::new(vec![m.model(false), n.model(false)], memory(100));
    let run = async |model: &str| {
        // Five windows of 400 tokens.
        let sequences = (0..100).map(|number| ids(number, 20)).collect();
        let pending = rig.engine.submit_when_room(work(model, Class::Batch, sequences)).await.unwrap();
        pending.wait().await.unwrap();
    };
    tokio::join!(run("m"), run("n"));
    let loads = |id| rig.metric(&format!("model_loads_total{{model={id},outcome=ok}}"));
    let (m, n) = (loads("m"), loads("n"));
    // Without turns each of the forty batches may need a load of its own; a turn is long enough for twenty of them.
    assert!(m >= 1.0 && n >= 1.0 && m + n <= 12.0, "{m} and {n} loads");
    rig.assert_idle().await;
}

/// Three models that share memory for two, asked for in turn by many: each answer is right, and the books balance.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn models_that_crowd_each_other_out_all_answer() {
    let scripts = four();
    let rig = Arc::new(Rig::new(scripts.iter().map(|script| script.model(false)).collect(), memory(90)));
    let clients = (0..40_u32).map(|client| {
        let rig = Arc::clone(&rig);
        tokio::spawn(async move {
            for round in 0..5 {
                rig.ask(["m", "n", "o", "p"][((client + round) % 4) as usize]).await.unwrap();
            }
        })
    });
    for client in clients.collect::<Vec<_>>() {
        client.await.unwrap();
    }
    eventually(|| rig.engine.status().interactive_tokens == 0).await;
    let copies: usize = scripts.iter().map(Script::copies).sum();
    assert!((1..=2).contains(&copies));
    assert_eq!(rig.memory_used(0), 40 * copies as u64);
    rig.assert_idle().await;
}
