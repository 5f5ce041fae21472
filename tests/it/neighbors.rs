//! Neighbours by the golden masked models, from the text through the pool to the text, against `expected.json`.

use crate::common::app::golden;
use crate::common::goldens::directory;
use lm::hub::Hub;
use pdr_audit::app::start_scorer;
use pdr_audit::config::{DeviceChoice, ModelSettings as Configured, Settings};
use pdr_audit::engine::{Class, Refusal};
use pdr_audit::pool::{Model, Retry};
use pdr_audit::scorer::{Generated, Scorer, ScorerError, TextError};
use serde_json::Value;
use std::sync::Arc;
use std::time::{Duration, Instant};

const BERT: &str = "bert-mlm";
const MODERN: &str = "modernbert-mlm";
const CAUSAL: &str = "gpt2";

/// As for the probabilities they are made of, which both sides compute in f32 and which were seen to differ by 2e-6. One
/// score and the next differ by 5e-5 at least, so the order is sure.
const TOLERANCE: f64 = 1e-5;

fn scorer(change: impl FnOnce(&mut Settings)) -> Scorer {
    let mut settings = Settings::default();
    settings.engine.device = DeviceChoice::Cpu;
    settings.engine.threads = 1;
    settings.engine.max_batch_tokens = Some(128);
    let lazy = |name: &str| Configured { load: pdr_audit::config::LoadPolicy::Lazy, ..golden(name, name) };
    settings.models = [BERT, MODERN, CAUSAL].map(lazy).into();
    change(&mut settings);
    start_scorer(&settings, Hub::from_environment(|_| None)).unwrap()
}

async fn open(scorer: &Scorer, id: &str) -> Arc<Model> {
    scorer.pool().open(id, Retry::Now).await.unwrap()
}

type Answers = Result<Vec<Result<Generated, TextError>>, ScorerError>;

async fn ask(scorer: &Scorer, model: &Arc<Model>, texts: &[&str], class: Class) -> Answers {
    let texts = texts.iter().map(|text| Arc::from(*text)).collect();
    scorer.neighbors(model, texts, 25, class, None).await
}

fn expected(name: &str) -> Value {
    serde_json::from_slice(&std::fs::read(directory(name).join("expected.json")).unwrap()).unwrap()
}

/// The same neighbours in the same order, and one pass for each word.
fn assert_golden(found: &Generated, case: &Value, what: &str) {
    let neighbors = case["neighbors"].as_array().unwrap();
    assert_eq!(found.neighbors.len(), neighbors.len(), "{what}");
    for (found, expected) in found.neighbors.iter().zip(neighbors) {
        let swap = (expected["position"].as_u64().unwrap() as usize, expected["id"].as_u64().unwrap() as u32);
        assert_eq!((found.position, found.id), swap, "{what}");
        assert_eq!(expected["text"], found.text, "{what}");
        let score = expected["score"].as_f64().unwrap();
        assert!((found.score - score).abs() < TOLERANCE, "{what}: {} instead of {score}", found.score);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn neighbours_are_the_goldens() {
    let scorer = scorer(|_| ());
    for name in [BERT, MODERN] {
        let (model, expected) = (open(&scorer, name).await, expected(name));
        let cases = expected["texts"].as_array().unwrap();
        let texts: Vec<&str> = cases.iter().map(|case| case["text"].as_str().unwrap()).collect();
        for (class, again) in [(Class::Interactive, false), (Class::Batch, true)] {
            let answers = ask(&scorer, &model, &texts, class).await.unwrap();
            for (found, case) in answers.into_iter().zip(cases) {
                let (found, words) = (found.unwrap(), case["masked"].as_array().unwrap().len());
                assert_golden(&found, case, name);
                let passes = (found.forward_passes, found.cached_passes);
                assert_eq!(passes, if again { (0, words) } else { (words, 0) });
            }
        }
    }
    assert_eq!(scorer.engine().status().interactive_tokens, 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_text_has_its_neighbours_whatever_runs_beside_it() {
    let expected = expected(BERT);
    let texts: Vec<&str> = expected["texts"].as_array().unwrap().iter().map(|c| c["text"].as_str().unwrap()).collect();
    let alone = async |text: &str| {
        // A scorer of its own: nothing is remembered.
        let scorer = scorer(|_| ());
        ask(&scorer, &open(&scorer, BERT).await, &[text], Class::Batch).await.unwrap().remove(0).unwrap()
    };
    let scorer = scorer(|settings| settings.engine.max_batch_tokens = Some(4096));
    let together = ask(&scorer, &open(&scorer, BERT).await, &texts, Class::Interactive).await.unwrap();
    for (text, found) in texts.iter().zip(together) {
        assert_eq!(found.unwrap(), alone(text).await, "bit for bit");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn fewer_are_the_first_of_more() {
    let scorer = scorer(|_| ());
    let model = open(&scorer, MODERN).await;
    let text: Arc<str> = "Rain fell all night, and the river rose.".into();
    let mut lists = Vec::new();
    for (count, known) in [(25, false), (5, true), (1000, true)] {
        let texts = vec![Arc::clone(&text)];
        let found = scorer.neighbors(&model, texts, count, Class::Interactive, None).await.unwrap().remove(0).unwrap();
        // The words are masked once, however many are wanted.
        assert_eq!((found.forward_passes, found.cached_passes), if known { (0, 4) } else { (4, 0) });
        lists.push(found.neighbors);
    }
    assert_eq!(lists[1], lists[0][..5]);
    assert_eq!(lists[2].len(), 24, "six for each of four words");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_text_that_comes_twice_is_masked_once() {
    let scorer = scorer(|_| ());
    let model = open(&scorer, MODERN).await;
    let texts = ["Rain fell all night.", "The river rose.", "Rain fell all night."];
    let found = ask(&scorer, &model, &texts, Class::Interactive).await.unwrap();
    let found: Vec<Generated> = found.into_iter().map(Result::unwrap).collect();
    assert_eq!(found[0].neighbors, found[2].neighbors);
    assert!(found[0].forward_passes > 0 && found[1].forward_passes > 0);
    assert_eq!((found[2].forward_passes, found[2].cached_passes), (0, 0));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_bad_text_fails_alone() {
    let scorer = scorer(|_| ());
    let model = open(&scorer, BERT).await;
    let long = "the ".repeat(63);
    let texts = ["", "[SEP][MASK]", &long, "the 都 😀.", "brown"];
    let answers = ask(&scorer, &model, &texts, Class::Interactive).await.unwrap();
    let codes: Vec<&str> = answers.iter().map(|answer| answer.as_ref().map_or_else(|e| &*e.code, |_| "ok")).collect();
    assert_eq!(codes, ["no_neighbors", "no_neighbors", "too_long", "ok", "no_neighbors"]);
    let detail = &answers[2].as_ref().unwrap_err().detail;
    assert_eq!(detail, "the text has 65 tokens for the mask model `bert-mlm`; its context is 64");
    let found = answers[3].as_ref().unwrap();
    assert_eq!((found.neighbors.len(), found.forward_passes), (24, 4));
    for neighbor in &found.neighbors {
        let kept: Vec<&str> = ["the ", " 都 ", " 😀", "."].into_iter().filter(|p| neighbor.text.contains(p)).collect();
        assert!(kept.len() >= 2, "one word changes, the rest stays: {}", neighbor.text);
    }
    // The longest text that fits.
    let fits = "the ".repeat(62);
    let found = ask(&scorer, &model, &[&fits], Class::Batch).await.unwrap().remove(0).unwrap();
    assert_eq!((found.forward_passes, found.neighbors.len()), (62, 25));
    assert!(ask(&scorer, &model, &[], Class::Interactive).await.unwrap().is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn requests_that_cannot_run_say_why() {
    let scorer = scorer(|settings| settings.engine.max_queue_tokens = Some(100));
    let text = "Rain fell all night, and the river rose.";
    let causal = open(&scorer, CAUSAL).await;
    let error = ask(&scorer, &causal, &[text], Class::Interactive).await.unwrap_err();
    assert_eq!(error.to_string(), "model `gpt2` is a causal model, which fills no masked positions");
    let bert = open(&scorer, BERT).await;
    // Six copies of 21 tokens; an audit's are fed in.
    let six = "The quick brown fox jumps over the lazy dog.";
    let error = ask(&scorer, &bert, &[six], Class::Interactive).await.unwrap_err();
    let too_large = Refusal::TooLarge { limit: "queue", allowed: 100, requested: 126 };
    assert!(matches!(error, ScorerError::Refused(refusal) if refusal == too_large));
    assert!(ask(&scorer, &bert, &[six], Class::Batch).await.unwrap()[0].is_ok());
    let late = Instant::now().checked_sub(Duration::from_millis(1));
    let texts = vec![Arc::from(text)];
    let error = scorer.neighbors(&bert, texts, 25, Class::Interactive, late).await.unwrap_err();
    assert_eq!(error.to_string(), "the deadline passed");
}
