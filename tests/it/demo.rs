//! The demo that ships with the program: small, detectable, and honest.

use mia::statistics::{LabelledScore, auroc};
use serde::Deserialize;
use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::process::Command;

const FOLDS: usize = 10;

#[derive(Deserialize)]
struct Labelled {
    text: String,
    label: u8,
}

fn models() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("models")
}

fn samples() -> Vec<Labelled> {
    let file = std::fs::read_to_string(models().join("demo/audit.jsonl")).unwrap();
    file.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

fn words(text: &str) -> impl Iterator<Item = String> + '_ {
    text.split(|c: char| !c.is_alphanumeric()).filter(|w| !w.is_empty()).map(str::to_lowercase)
}

/// Multinomial naive Bayes over words (add-one smoothing), each tenth scored by a classifier trained on the rest.
fn bag_of_words_auroc(samples: &[Labelled]) -> f64 {
    let mut scored = Vec::new();
    for fold in 0..FOLDS {
        // Members and non-members alternate in the file; pairs go to the same fold, so that both classes stay even.
        let held_out = |i: usize| (i / 2) % FOLDS == fold;
        let mut counts: [HashMap<String, f64>; 2] = Default::default();
        for (_, sample) in samples.iter().enumerate().filter(|(i, _)| !held_out(*i)) {
            for word in words(&sample.text) {
                *counts[sample.label as usize].entry(word).or_default() += 1.0;
            }
        }
        let vocabulary: std::collections::HashSet<&String> = counts.iter().flat_map(HashMap::keys).collect();
        let totals = [0, 1].map(|class| counts[class].values().sum::<f64>() + vocabulary.len() as f64);
        let log = |class: usize, word: &str| ((counts[class].get(word).unwrap_or(&0.0) + 1.0) / totals[class]).ln();
        for (_, sample) in samples.iter().enumerate().filter(|(i, _)| held_out(*i)) {
            let score = words(&sample.text).map(|w| log(1, &w) - log(0, &w)).sum();
            scored.push(LabelledScore { score, member: sample.label == 1 });
        }
    }
    auroc(&scored).unwrap()
}

#[test]
fn the_words_alone_do_not_tell_members_from_non_members() {
    let samples = samples();
    let members = samples.iter().filter(|s| s.label == 1).count();
    assert_eq!((samples.len(), members), (1000, 500));
    let auroc = bag_of_words_auroc(&samples);
    println!("bag of words: AUROC {auroc:.3}");
    assert!((0.45..=0.55).contains(&auroc), "{auroc}");
}

#[test]
fn the_classifier_of_that_test_finds_a_difference_where_there_is_one() {
    let mut samples = samples();
    for (i, sample) in samples.iter_mut().enumerate() {
        // A word of its own for three quarters of the members.
        if sample.label == 1 && i % 8 != 0 {
            sample.text.push_str(" shibboleth");
        }
    }
    let auroc = bag_of_words_auroc(&samples);
    assert!(auroc > 0.7, "{auroc}");
}

#[test]
fn an_audit_of_the_demo_finds_its_members() {
    let audit = Command::new(env!("CARGO_BIN_EXE_pdr-audit"))
        .args(["audit", "--format", "json"])
        .arg(models().join("demo/audit.jsonl"))
        .output()
        .unwrap();
    assert!(audit.status.success(), "{}", String::from_utf8_lossy(&audit.stderr));
    let report: serde_json::Value = serde_json::from_slice(&audit.stdout).unwrap();
    assert_eq!(report["samples"]["excluded"], serde_json::json!([]));
    let methods = report["methods"].as_array().unwrap();
    let of = |label: &str| methods.iter().find(|m| m["label"] == label).unwrap()["auroc"].as_f64().unwrap();
    let auroc = of("min_k_plus_plus(k=0.2)");
    assert!((0.65..=0.95).contains(&auroc), "min_k_plus_plus: {auroc}");
    let versus = methods.iter().filter(|m| !m["versus_baseline"].is_null()).count();
    assert_eq!(versus, 4, "every method with PDR is compared with its baseline");
}

#[test]
fn what_ships_is_under_eight_megabytes() {
    let size = |dir: &str| -> u64 {
        let files = std::fs::read_dir(models().join(dir)).unwrap();
        files.map(|f| f.unwrap().metadata().unwrap().len()).sum()
    };
    let total = size("demo") + size("demo-reference");
    assert!(total < 8_000_000, "{total} bytes");
}
