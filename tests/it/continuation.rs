//! Greedy continuations by models that run here.

use crate::common::app::{GOLDEN, golden};
use lm::hub::Hub;
use lm::models::{Continuation, Ending};
use pdr_audit::app::start_scorer;
use pdr_audit::config::{AdapterSettings, DeviceChoice, ModelSettings, Settings};
use pdr_audit::scorer::{Bound, Overflow, Plan, Scorer, ScorerError};
use pdr_audit::telemetry::MetricsExporter;
use serde_json::Value;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

/// A scorer by these settings, its eager models loaded.
pub async fn started(settings: &Settings) -> Scorer {
    MetricsExporter::install().unwrap();
    let scorer = start_scorer(settings, Hub::from_environment(|_| None)).unwrap();
    scorer.engine().wait_until_loaded().await.unwrap();
    scorer
}

/// A plan without a method, bound to a model.
pub async fn bound(scorer: &Scorer, model: &str) -> Arc<Bound> {
    let (methods, splits) = (Arc::new([]), Arc::new([]));
    let plan = Plan { model: model.to_owned(), methods, overflow: Overflow::Error, tokens: false, splits };
    scorer.bind(&plan).await.unwrap()
}

async fn over(goldens: &[&str]) -> Scorer {
    let models = goldens.iter().map(|name| golden(name, name)).collect();
    let mut settings = Settings { models, ..Settings::default() };
    settings.engine.device = DeviceChoice::Cpu;
    settings.engine.threads = 1;
    started(&settings).await
}

/// The ids of an array.
fn ids(value: &Value) -> Vec<u32> {
    value.as_array().unwrap().iter().map(|id| id.as_u64().unwrap() as u32).collect()
}

/// Cases of transformers for a golden whose text does not end.
fn cases(golden: &str) -> Vec<(Vec<u32>, Vec<u32>)> {
    let cases: Vec<Value> = serde_json::from_str(include_str!("../fixtures/continuations.json")).unwrap();
    let is_wanted = |case: &&Value| case["golden"] == golden && case["ended"] == false;
    cases.iter().filter(is_wanted).map(|case| (ids(&case["ids"]), ids(&case["continuation"]))).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn the_service_continues_as_transformers_does() {
    let goldens = [GOLDEN, "llama-gqa", "mamba"];
    let scorer = over(&goldens).await;
    for golden in goldens {
        let bound = bound(&scorer, golden).await;
        for (ids, expected) in cases(golden) {
            let other: Vec<u32> = expected.iter().rev().copied().collect();
            for draft in [&expected[..], &expected[..7], &other, &[]] {
                let draft: Arc<[u32]> = draft.into();
                let continuation = scorer.continue_ids(&bound, &ids, &draft, expected.len()).await.unwrap();
                let expected = Continuation { ids: expected.clone(), ended: Ending::Length };
                assert_eq!(continuation, expected, "{golden}");
            }
        }
    }
}

/// A window is greedy in a memorization report where every token is the most probable one: that is what is written.
#[tokio::test(flavor = "multi_thread")]
async fn what_is_written_is_greedy_by_the_statistics_also_under_an_adapter() {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/lora").join(GOLDEN);
    let adapters = vec![AdapterSettings { name: "tuned".into(), source }];
    let models = vec![ModelSettings { adapters, ..golden(GOLDEN, GOLDEN) }];
    let mut settings = Settings { models, ..Settings::default() };
    settings.engine.device = DeviceChoice::Cpu;
    let scorer = started(&settings).await;
    let (ids, _) = &cases(GOLDEN)[0];
    let mut written = Vec::new();
    for model in [GOLDEN, &format!("{GOLDEN}:tuned")] {
        let bound = bound(&scorer, model).await;
        let draft: Arc<[u32]> = (5..60).collect();
        let continuation = scorer.continue_ids(&bound, ids, &draft, 60).await.unwrap();
        let whole: Arc<[u32]> = [&ids[..], &continuation.ids].concat().into();
        let stats = scorer.score_ids_behind(&bound, &whole).await.unwrap();
        assert!(stats[ids.len() - 1..].iter().all(|token| token.lp == token.max_lp), "{model}");
        written.push(continuation.ids);
    }
    assert_ne!(written[0], written[1]);
}

#[tokio::test(flavor = "multi_thread")]
async fn many_at_once_have_each_its_own() {
    let scorer = over(&[GOLDEN]).await;
    let bound = bound(&scorer, GOLDEN).await;
    let cases = cases(GOLDEN);
    let run = |number: usize| {
        let (ids, expected) = &cases[number % cases.len()];
        let (scorer, bound, wanted) = (&scorer, &bound, 1 + number % expected.len());
        async move {
            let continuation = scorer.continue_ids(bound, ids, &Arc::from([].as_slice()), wanted).await.unwrap();
            assert_eq!(continuation.ids, expected[..wanted]);
        }
    };
    futures::future::join_all((0..30).map(run)).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_continuation_is_text_as_it_stands_behind_the_prefix() {
    let scorer = over(&[GOLDEN, "llama-gqa"]).await;
    for golden in [GOLDEN, "llama-gqa"] {
        let bound = bound(&scorer, golden).await;
        let encoded = scorer.encode(&bound, "Some words of a text, and caf\u{e9}s.".into()).await.unwrap().unwrap();
        for given in encoded.specials_before..encoded.ids.len() {
            let continuation = Continuation { ids: encoded.ids[given..].to_vec(), ended: Ending::Length };
            let text = scorer.continuation_text(&bound, &encoded.ids[..given], &continuation).await.unwrap().unwrap();
            assert!("Some words of a text, and caf\u{e9}s.".ends_with(&text) && !text.is_empty(), "{golden}: {text:?}");
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_cannot_be_continued_says_why() {
    let scorer = over(&[GOLDEN, "mamba"]).await;
    let bounds = (bound(&scorer, GOLDEN).await, bound(&scorer, "mamba").await);
    let none: Arc<[u32]> = [].into();
    let refused = async |bound: &Bound, given: usize, wanted: usize| -> ScorerError {
        scorer.continue_ids(bound, &vec![5; given], &none, wanted).await.unwrap_err()
    };
    let said = refused(&bounds.0, 0, 3).await.to_string();
    assert_eq!(said, format!("model `{GOLDEN}` cannot continue the text: it has no tokens to begin with"));
    let said = refused(&bounds.0, 100, 30).await.to_string();
    let too_long = format!("129 tokens; the context of model `{GOLDEN}` is 128");
    assert_eq!(said, format!("model `{GOLDEN}` cannot continue the text: {too_long}"));
    assert!(scorer.continue_ids(&bounds.0, &[5; 100], &none, 29).await.is_ok());
    assert!(scorer.continue_ids(&bounds.0, &[5; 128], &none, 1).await.is_ok());
    assert!(scorer.continue_ids(&bounds.1, &[5; 300], &none, 2).await.is_ok(), "a model without a limit");
    assert_eq!(scorer.continue_ids(&bounds.0, &[5], &none, 0).await.unwrap(), Continuation::default());
    let failed = scorer.continue_ids(&bounds.0, &[99_999], &none, 2).await.unwrap_err().to_string();
    assert!(failed.contains("token id 99999 is outside the model's vocabulary"), "{failed}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_continuation_that_is_dropped_ends() {
    let scorer = over(&[GOLDEN]).await;
    let bound = bound(&scorer, GOLDEN).await;
    let (ids, _) = &cases(GOLDEN)[0];
    let none: Arc<[u32]> = [].into();
    let dropped = tokio::time::timeout(Duration::ZERO, scorer.continue_ids(&bound, ids, &none, 100)).await;
    assert!(dropped.is_err());
    for _ in 0..1000 {
        if scorer.engine().status().batch_tokens == 0 {
            return;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    panic!("tokens are left in the queue");
}
