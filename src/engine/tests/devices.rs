//! Several devices: really at once, replicas that share a queue, and the end of one or all.

use super::rig::{
    Latch, Rig, RigSettings, Script, answered, client, eventually, fake_stats, fakes, ids, latched, settings,
    slow_to_load, stats, two_devices, work,
};
use crate::engine::{Class, EngineError, Refusal};
use crate::pool::{Ended, LoadError, ModelState};
use lm::models::ModelError;
use std::collections::BTreeMap;
use std::sync::{Arc, Barrier};
use std::time::Duration;

const LONG: Duration = Duration::from_secs(60);

/// Lets forward passes through in pairs.
fn in_pairs(id: &'static str, barrier: &Arc<Barrier>) -> Script {
    let barrier = Arc::clone(barrier);
    Script::new(id).on_forward(move |_| {
        barrier.wait();
        Ok(())
    })
}

#[tokio::test]
async fn two_models_answer_at_once_on_two_devices() {
    let barrier = Arc::new(Barrier::new(2));
    let (m, n) = (in_pairs("m", &barrier), in_pairs("n", &barrier));
    let rig = Rig::new(vec![m.model(true), n.model(true).on(&[1])], two_devices());
    rig.engine.wait_until_loaded().await.unwrap();
    let first = rig.submit(client(vec![ids(1, 10)]));
    let second = rig.submit(work("n", Class::Interactive, vec![ids(1, 10)]));
    // Neither forward pass ends before the other has begun.
    first.wait().await.unwrap();
    second.wait().await.unwrap();
    assert_eq!((m.forwards_on(0), n.forwards_on(1)), (1, 1));
    let status = rig.engine.status();
    assert_eq!([rig.resident(0), rig.resident(1)], [[0], [1]]);
    assert_eq!(status.devices.iter().map(|device| device.name.as_str()).collect::<Vec<_>>(), ["fake:0", "fake:1"]);
    rig.assert_idle().await;
}

#[tokio::test]
async fn a_load_keeps_its_own_device_busy_and_no_other() {
    let (slow, latch) = slow_to_load("m");
    let beside = Script::new("o");
    let models = vec![slow.model(true), Script::new("n").model(true).on(&[1]), beside.model(false)];
    let rig = Rig::new(models, two_devices());
    latch.reached().await;
    rig.ask("n").await.unwrap();
    let waits = rig.submit(work("o", Class::Interactive, vec![ids(1, 10)]));
    let mut late = client(vec![ids(1, 10)]);
    late.deadline = Some(std::time::Instant::now() + Duration::from_millis(5));
    let late = rig.submit(late);
    assert_eq!(late.wait().await, Err(EngineError::DeadlineExceeded), "one that waits for a load waits no longer");
    rig.ask("n").await.unwrap();
    assert!(beside.forwards().is_empty());
    latch.open();
    waits.wait().await.unwrap();
    rig.ask("m").await.unwrap();
    assert_eq!(slow.forwards().len(), 1, "the late one never ran");
}

#[tokio::test]
async fn replicas_share_one_queue_and_both_work() {
    let barrier = Arc::new(Barrier::new(2));
    let script = in_pairs("m", &barrier);
    let rig = Rig::new(vec![script.model(true).on(&[0, 1])], two_devices());
    eventually(|| rig.resident(0) == [0, 1]).await;
    // A batch each: neither ends before the other has begun.
    let output = rig.run(client(vec![ids(1, 100), ids(2, 100)])).await;
    assert_eq!(stats(&output), [fake_stats("m", &ids(1, 100)), fake_stats("m", &ids(2, 100))]);
    assert_eq!((script.forwards_on(0), script.forwards_on(1)), (1, 1));
    assert_eq!(script.copies(), 2);
    rig.assert_idle().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn replicas_lose_and_mix_nothing() {
    let script = Script::new("m");
    let other = Script::new("n");
    let models = vec![script.model(true).on(&[0, 1, 2]), other.model(false).on(&[1, 2])];
    let rig = Arc::new(Rig::new(models, RigSettings { memory: vec![u64::MAX; 3], ..settings() }));
    let clients = (0..100_u32).map(|client| {
        let rig = Arc::clone(&rig);
        tokio::spawn(async move {
            let model = ["m", "n"][client as usize % 2];
            let sequences: Vec<_> =
                (0..8).map(|n| ids(client * 8 + n, 2 + ((client * 31 + n * 17) % 90) as usize)).collect();
            let expected = fakes(model, &sequences);
            let ticket = rig.engine.submit_when_room(work(model, Class::Batch, sequences)).await.unwrap();
            assert_eq!(stats(&ticket.wait().await.unwrap()), expected);
        })
    });
    for client in clients.collect::<Vec<_>>() {
        client.await.unwrap();
    }
    for script in [&script, &other] {
        // Sequences are told apart by their first ids, which all differ.
        let mut runs = BTreeMap::new();
        for first in script.firsts().concat() {
            *runs.entry(first).or_insert(0) += 1;
        }
        assert_eq!(runs.len(), 400);
        assert!(runs.values().all(|count| *count == 1), "each ran once");
    }
    assert_eq!(other.copies(), 1, "a request loads a lazy model to one device");
    rig.assert_idle().await;
}

#[tokio::test]
async fn those_loaded_serve_while_others_are_loaded() {
    let latch = Arc::new(Latch::default());
    let inner = Arc::clone(&latch);
    let script = Script::new("m").on_load_of(move |device| {
        if device == 1 {
            inner.pass();
        }
        Ok(())
    });
    let rig = Rig::new(vec![script.model(true).on(&[0, 1])], two_devices());
    latch.reached().await;
    rig.engine.wait_until_loaded().await.unwrap();
    assert_eq!(rig.resident(0), [0]);
    rig.ask("m").await.unwrap();
    let all = rig.load_behind("m");
    rig.ask("m").await.unwrap();
    assert!(!all.is_finished(), "by hand means on all devices");
    latch.open();
    all.await.unwrap().unwrap();
    assert_eq!(rig.resident(0), [0, 1]);
    rig.engine.pool().unload("m").await.unwrap();
    assert_eq!((script.copies(), rig.trims(0), rig.trims(1)), (0, 1, 1));
    // An eager model comes back to all its devices.
    rig.ask("m").await.unwrap();
    eventually(|| rig.resident(0) == [0, 1]).await;
}

#[tokio::test]
async fn a_replica_that_cannot_be_loaded_leaves_the_work_to_the_others() {
    let script = Script::new("m").on_load_of(|device| match device {
        0 => Ok(()),
        _ => Err(ModelError::OutOfMemory("too small".to_owned())),
    });
    let rig = Rig::new(vec![script.model(true).on(&[0, 1])], two_devices());
    rig.engine.wait_until_loaded().await.unwrap();
    let reason = "out of memory: too small".to_owned();
    assert_eq!(rig.engine.pool().load("m").await, Err(LoadError::Failed(reason)));
    assert_eq!(rig.state(0), ModelState::Ready);
    assert!(rig.engine.is_ready());
    for _ in 0..5 {
        rig.ask("m").await.unwrap();
    }
    assert_eq!((script.forwards_on(0), script.forwards_on(1)), (5, 0));
}

#[tokio::test]
async fn a_lost_device_ends_all_of_them() {
    let (m, latch) = latched("m");
    let n = Script::new("n").on_forward(|_| Err(ModelError::Device("fell off the bus".to_owned())));
    let rig = Rig::new(vec![m.model(true), n.model(true).on(&[1])], two_devices());
    rig.engine.wait_until_loaded().await.unwrap();
    let running = rig.submit(client(vec![ids(1, 10)]));
    latch.reached().await;
    let queued = rig.submit(client(vec![ids(2, 10)]));
    let reason = "device: fell off the bus".to_owned();
    let lost = EngineError::DeviceLost(reason.clone());
    assert_eq!(rig.ask("n").await, Err(lost.clone()));
    assert_eq!(rig.engine.device_lost().await, reason);
    // A request that waits for the other device is told while that is still at work.
    assert_eq!(queued.wait().await, Err(lost.clone()));
    assert!(!rig.engine.is_ready());
    assert_eq!(rig.refusal(client(vec![ids(1, 10)])), Refusal::DeviceLost(reason.clone()));
    assert_eq!(rig.engine.pool().load("m").await, Err(LoadError::Ended(Ended::DeviceLost(reason.clone()))));
    latch.open();
    running.wait().await.unwrap();
    eventually(|| rig.engine.status().devices.iter().all(|device| !device.alive)).await;
    let status = rig.engine.status();
    assert_eq!(status.device_lost, Some(reason.clone()));
    assert_eq!((status.devices[0].lost.clone(), status.devices[1].lost.clone()), (None, Some(reason)));
    assert_eq!((status.interactive_tokens, status.batch_tokens), (0, 0));
    rig.engine.shutdown(LONG);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn shutdown_waits_for_all_devices_and_their_queues() {
    let ((m, first), (n, second)) = (latched("m"), latched("n"));
    let both = Script::new("o");
    let models = vec![m.model(true), n.model(true).on(&[1]), both.model(false).on(&[0, 1])];
    let rig = Rig::new(models, two_devices());
    let ask = |model, n| rig.submit(work(model, Class::Interactive, vec![ids(n, 100)]));
    let mut tickets = vec![ask("m", 1), ask("n", 1)];
    first.reached().await;
    second.reached().await;
    tickets.extend([ask("m", 2), ask("n", 2), ask("o", 1), ask("o", 2)]);
    let ending = rig.shutdown_behind(LONG);
    eventually(|| rig.engine.status().draining).await;
    first.open();
    // The first device serves what either may; the second still has work of its own.
    eventually(|| both.forwards().len() == 2).await;
    assert!(!ending.is_finished());
    assert!(rig.engine.status().devices[1].alive);
    second.open();
    ending.await.unwrap();
    answered(tickets).await;
    assert!(rig.engine.status().devices.iter().all(|device| !device.alive));
    assert_eq!(m.copies() + n.copies() + both.copies(), 0);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn shutdown_gives_up_on_all_devices_what_is_not_done_in_time() {
    let ((m, first), (n, second)) = (latched("m"), latched("n"));
    let rig = Rig::new(vec![m.model(true), n.model(true).on(&[1])], two_devices());
    let ask = |model, n| rig.submit(work(model, Class::Interactive, vec![ids(n, 100)]));
    let running = [ask("m", 1), ask("n", 1)];
    first.reached().await;
    second.reached().await;
    let waiting = [ask("m", 2), ask("n", 2)];
    let feeding = rig.feed(20);
    eventually(|| rig.engine.status().batch_tokens == 800).await;
    let ending = rig.shutdown_behind(Duration::ZERO);
    eventually(|| rig.engine.status().draining).await;
    // The feeder is woken, not left to wait for room that never comes.
    assert_eq!(feeding.await.unwrap().unwrap().wait().await, Err(EngineError::ShuttingDown));
    // Told at once, though both devices are at work.
    for ticket in waiting {
        assert_eq!(ticket.wait().await, Err(EngineError::ShuttingDown));
    }
    first.open();
    second.open();
    answered(running).await;
    ending.await.unwrap();
    assert_eq!((m.forwards().len(), n.forwards().len()), (1, 1));
}

#[tokio::test]
async fn a_device_beside_does_not_count_as_a_wait() {
    // At most 2,000 tokens a second each, on any machine.
    let slow = |id| {
        Script::new(id).on_forward(|sequences| {
            let tokens: usize = sequences.iter().map(|ids| ids.len()).sum();
            std::thread::sleep(Duration::from_micros(500) * tokens as u32);
            Ok(())
        })
    };
    let (m, n) = (slow("m"), slow("n"));
    let models = vec![m.model(true), n.model(true).on(&[1])];
    let rig = Rig::new(models, RigSettings { max_queue_tokens: 100_000, ..two_devices() });
    // As many as it takes until a speed is relied on.
    for (model, first) in ["m", "n"].into_iter().flat_map(|model| (1..=3).map(move |first| (model, first))) {
        let full = work(model, Class::Interactive, vec![ids(first, 100)]);
        rig.run(full).await;
    }
    // 40 s of work at best for the first device; none for the second.
    let queued = rig.submit(client((0..80).map(|n| ids(n, 1000)).collect()));
    let in_time = |model| {
        let mut work = work(model, Class::Interactive, vec![ids(7, 10)]);
        work.deadline = Some(std::time::Instant::now() + Duration::from_secs(20));
        rig.engine.submit(work)
    };
    assert!(matches!(in_time("m"), Err(Refusal::Busy { .. })));
    in_time("n").unwrap().wait().await.unwrap();
    drop(queued);
}

#[tokio::test]
async fn without_handles_all_devices_serve_their_queues_to_the_end() {
    let (script, latch) = latched("m");
    let rig = Rig::new(vec![script.model(true).on(&[0, 1])], two_devices());
    let tickets: Vec<_> = (1..=6).map(|n| rig.submit(client(vec![ids(n, 100)]))).collect();
    latch.reached().await;
    drop(rig);
    latch.open();
    answered(tickets).await;
    eventually(|| script.copies() == 0).await;
}
