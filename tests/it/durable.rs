//! Audits that outlive the processes that run them: the program is killed at any moment, and the results are those of an audit
//! that nobody disturbed.
//!
//! `PDR_AUDIT_TEST_POSTGRES` names a PostgreSQL to use as well, and `PDR_AUDIT_TEST_ROUNDS` says how often to kill.

use crate::common::client::Answer;
use crate::common::service::{PATIENCE, Service, places};
use serde_json::{Value, json};
use std::process::Command;
use std::time::{Duration, Instant};
use uuid::Uuid;

/// An audit of `samples` short texts, one in ten of which comes twice.
fn request(samples: usize) -> Value {
    let sample = |number: usize| {
        let text = format!("Sample {} stands on the shelf beside the brass clock.", number - number % 10 / 9);
        json!({ "id": number, "text": text, "label": number % 2, "group": (number % 3).to_string() })
    };
    let by_entropy = json!({ "name": "loss", "pdr": { "decay": "entropy_dataset" } });
    let samples: Vec<Value> = (0..samples).map(sample).collect();
    json!({ "samples": samples, "methods": ["loss", "min_k", by_entropy], "control": null, "metrics": { "bootstrap": { "replicates": 20 } } })
}

/// The parts of an audit that must not depend on interruptions.
fn findings(audit: &Value) -> Value {
    assert_eq!(audit["status"], "succeeded", "{audit}");
    let mut results = audit["results"].clone();
    let parts = results.as_object_mut().unwrap();
    ["usage", "plan"].into_iter().for_each(|field| drop(parts.remove(field)));
    results
}

fn rounds() -> usize {
    std::env::var("PDR_AUDIT_TEST_ROUNDS").map_or(1, |rounds| rounds.parse().unwrap())
}

fn id(answer: &Answer) -> String {
    answer.json()["id"].as_str().unwrap().to_owned()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_process_killed_at_any_moment_changes_no_result() {
    const SAMPLES: usize = 1_000;
    let directory = tempfile::tempdir().unwrap();
    let statistics = || directory.path().join(Uuid::new_v4().to_string());
    let request = request(SAMPLES);
    for (kind, place) in places(directory.path()).await.into_iter().enumerate() {
        let undisturbed = Service::start(&place, &statistics());
        let begun = Instant::now();
        let audit = id(&undisturbed.submit(&request, None).await);
        let (expected, took) = (findings(&undisturbed.ended(&audit).await), begun.elapsed());
        let scores = undisturbed.scores(&audit).await;
        assert_eq!(scores.lines().count(), SAMPLES);
        undisturbed.kill();
        for round in 0..rounds() {
            let (place, statistics) = (places(directory.path()).await.swap_remove(kind), statistics());
            let service = Service::start(&place, &statistics);
            let audit = id(&service.submit(&request, None).await);
            // From at once to about the end.
            let share = ((round as f64 + 0.6) * 0.618_034).fract();
            tokio::time::sleep(took.mul_f64(share)).await;
            service.kill();
            let service = Service::start(&place, &statistics);
            let again = service.ended(&audit).await;
            assert_eq!(findings(&again), expected, "killed at {share:.2} of the time");
            assert_eq!(service.scores(&audit).await, scores, "killed at {share:.2} of the time");
            service.kill();
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_audit_of_texts_that_another_process_scored_runs_no_pass() {
    let directory = tempfile::tempdir().unwrap();
    let place = places(directory.path()).await.swap_remove(0);
    let statistics = directory.path().join("statistics");
    // Entropy weights take a second round.
    for (passes, cached) in [(270, 270), (0, 540)] {
        let service = Service::start(&place, &statistics);
        let audit = id(&service.submit(&request(300), None).await);
        let usage = service.ended(&audit).await["results"]["usage"].clone();
        assert_eq!((&usage["forward_passes"], &usage["cached_passes"]), (&json!(passes), &json!(cached)), "{usage}");
        // Statistics are written every second.
        tokio::time::sleep(Duration::from_millis(1_500)).await;
        service.kill();
    }
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "slow: `.ci/full` runs it"]
async fn what_was_scored_before_is_not_scored_again() {
    const SAMPLES: usize = 10_000;
    let directory = tempfile::tempdir().unwrap();
    let place = places(directory.path()).await.swap_remove(0);
    let statistics = directory.path().join("statistics");
    let service = Service::start(&place, &statistics);
    let audit = id(&service.submit(&request(SAMPLES), None).await);
    let begun = Instant::now();
    let done = loop {
        let done = service.audit(&audit).await["progress"]["done"].as_u64().unwrap();
        // In the first of two rounds.
        if done >= SAMPLES as u64 / 20 {
            break done;
        }
        assert!(begun.elapsed() < PATIENCE);
        tokio::time::sleep(Duration::from_millis(5)).await;
    };
    // Statistics are written every second, and more are scored until then.
    tokio::time::sleep(Duration::from_secs(3)).await;
    assert_eq!(service.audit(&audit).await["status"], "running", "else nothing is interrupted");
    service.kill();
    let service = Service::start(&place, &statistics);
    let ended = service.ended(&audit).await;
    let usage = &ended["results"]["usage"];
    let distinct = SAMPLES as u64 * 9 / 10;
    // Progress counts both rounds and all copies of a text.
    let before = (2 * done * 9 / 10).min(distinct);
    let again = before.saturating_sub(distinct - usage["forward_passes"].as_u64().unwrap());
    assert!(again * 10 <= before, "{again} of {before} sequences ran again: {usage}");
    service.kill();
}

/// Another type gives other bits, so nothing of before is used, and the report says so.
#[tokio::test(flavor = "multi_thread")]
#[ignore = "slow: `.ci/full` runs it"]
async fn an_audit_under_other_numerics_is_begun_anew_and_says_so() {
    let directory = tempfile::tempdir().unwrap();
    let place = places(directory.path()).await.swap_remove(0);
    let statistics = directory.path().join("statistics");
    let service = Service::start(&place, &statistics);
    let audit = id(&service.submit(&request(10_000), None).await);
    let begun = Instant::now();
    while service.audit(&audit).await["progress"]["done"].as_u64().unwrap() < 100 {
        assert!(begun.elapsed() < PATIENCE);
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    // The numerics are stored with the progress.
    tokio::time::sleep(Duration::from_secs(2)).await;
    assert_eq!(service.audit(&audit).await["status"], "running", "else nothing is interrupted");
    service.kill();
    let service = Service::start_in(&place, &statistics, "bf16");
    let ended = service.ended(&audit).await;
    let warnings = ended["results"]["warnings"].as_array().unwrap();
    assert!(warnings.iter().any(|warning| warning["code"] == "started_over"), "{warnings:?}");
    assert_eq!(ended["results"]["usage"]["cached_passes"], 9_000, "only those of the second round");
    service.kill();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_signal_gives_the_audit_to_the_next_process() {
    let directory = tempfile::tempdir().unwrap();
    for place in places(directory.path()).await {
        let statistics = directory.path().join(Uuid::new_v4().to_string());
        let mut service = Service::start(&place, &statistics);
        let key = Some("the same submission");
        let audit = id(&service.submit(&request(1_000), key).await);
        let begun = Instant::now();
        while service.audit(&audit).await["status"] == "queued" {
            assert!(begun.elapsed() < PATIENCE);
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        let pid = service.process.id().to_string();
        assert!(Command::new("kill").args(["-TERM", &pid]).status().unwrap().success());
        assert!(service.process.wait().unwrap().success());
        // As many times as an audit may be claimed without an end: these ends do not count.
        for _ in 0..3 {
            let mut service = Service::start(&place, &statistics);
            // Once it answers, it has been told what to do on a signal.
            assert_eq!(service.client.get("/livez").await.status, 200);
            tokio::time::sleep(Duration::from_millis(200)).await;
            let pid = service.process.id().to_string();
            assert!(Command::new("kill").args(["-TERM", &pid]).status().unwrap().success());
            assert!(service.process.wait().unwrap().success());
        }
        let service = Service::start(&place, &statistics);
        assert_eq!(id(&service.submit(&request(1_000), key).await), audit, "the same key is the same audit");
        assert_eq!(service.ended(&audit).await["status"], "succeeded");
        service.kill();
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn two_processes_share_a_database() {
    let directory = tempfile::tempdir().unwrap();
    let places = places(directory.path()).await;
    let Some(place) = places.get(1) else { return };
    let statistics = || directory.path().join(Uuid::new_v4().to_string());
    let (first, second) = (Service::start(place, &statistics()), Service::start(place, &statistics()));
    let request = request(2_000);
    let (a, b) = tokio::join!(first.submit(&request, Some("k")), second.submit(&request, Some("k")));
    let audit = id(&a);
    assert_eq!(audit, id(&b), "the same key on both is one audit");
    let undisturbed = findings(&second.ended(&audit).await);
    assert_eq!(first.audit(&audit).await["results"], second.audit(&audit).await["results"]);

    // More audits than one process runs at once, so both have some when one of them dies.
    let mut audits = Vec::new();
    for _ in 0..6 {
        audits.push(id(&first.submit(&request, None).await));
    }
    tokio::time::sleep(Duration::from_millis(300)).await;
    first.kill();
    for audit in &audits {
        assert_eq!(findings(&second.ended(audit).await), undisturbed);
    }
    second.kill();
}
