//! `gap_k`, `surp` and `dc_pdd` from the tokens that an answer lists, and the weights by entropy.

use super::rig::{assert_same, code, column, mean, results, score, serve, settings, texts, tokenizer};
use crate::common::app::App;
use pdr_audit::config::TokenCountsSettings;
use pdr_audit::scorer::{CountsFile, FORMAT};
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::path::Path;

const TARGETS: [&str; 2] = ["gptj", "llama-gqa"];

/// A column of the scored tokens by name.
struct Columns {
    lp: Vec<f64>,
    entropy: Vec<f64>,
    sigma: Vec<f64>,
    max_lp: Vec<f64>,
    ids: Vec<usize>,
}

impl Columns {
    fn of(result: &Value) -> Self {
        let tokens = result["tokens"].as_array().unwrap().iter();
        let ids = tokens.filter(|token| token["lp"].is_number()).map(|token| token["id"].as_u64().unwrap() as usize);
        Self {
            lp: column(result, "lp"),
            entropy: column(result, "mu").iter().map(|mu| -mu).collect(),
            sigma: column(result, "sigma"),
            max_lp: column(result, "max_lp"),
            ids: ids.collect(),
        }
    }

    fn gap_k(&self, k: f64, window: usize) -> f64 {
        let gap = |at: usize| (self.lp[at] - self.max_lp[at]) / self.sigma[at];
        let raw: Vec<f64> = (0..self.lp.len()).map(gap).collect();
        let smooth = if raw.len() < window { raw } else { raw.windows(window).map(mean).collect() };
        mean(&lowest(&smooth, k).into_iter().map(|at| smooth[at]).collect::<Vec<_>>())
    }

    fn surp(&self, k: f64, max_entropy: f64) -> Option<f64> {
        let sure = lowest(&self.lp, k).into_iter().filter(|&at| self.entropy[at] < max_entropy);
        let lps: Vec<f64> = sure.map(|at| self.lp[at]).collect();
        if lps.is_empty() { None } else { Some(mean(&lps)) }
    }

    fn dc_pdd(&self, counts: &[u64], a: f64) -> f64 {
        let total = counts.iter().sum::<u64>() as f64 + counts.len() as f64;
        let mut seen = BTreeSet::new();
        let first: Vec<usize> = (0..self.ids.len()).filter(|&at| seen.insert(self.ids[at])).collect();
        let calibrated = |&at: &usize| {
            let frequency = (counts[self.ids[at]] as f64 + 1.0) / total;
            (self.lp[at].exp() * (1.0 / frequency).ln()).min(a)
        };
        mean(&first.iter().map(calibrated).collect::<Vec<_>>())
    }
}

/// The places of the share k of the lowest values, at least one.
fn lowest(values: &[f64], k: f64) -> Vec<usize> {
    let mut places: Vec<usize> = (0..values.len()).collect();
    places.sort_by(|&a, &b| values[a].total_cmp(&values[b]));
    places.truncate(((values.len() as f64 * k) as usize).max(1));
    places
}

fn inputs(name: &str) -> Vec<Value> {
    texts(name).iter().map(|text| text["text"].clone()).collect()
}

async fn ask(app: &App, name: &str, methods: Value) -> Vec<Value> {
    let inputs = inputs(name);
    let request =
        json!({ "model": name, "inputs": inputs, "methods": methods, "details": ["tokens"], "overflow": "truncate" });
    let answer = app.score(&request).await;
    let scored = results(&answer).iter().filter(|result| result["scored_tokens"] != 0);
    scored.cloned().collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn gap_k_is_what_the_tokens_say() {
    let app = serve(&TARGETS).await;
    for name in TARGETS {
        let wide = json!({ "name": "gap_k", "k": 0.7, "window": 7, "label": "wide" });
        let raw = json!({ "name": "gap_k", "k": 0.5, "window": 1, "label": "raw" });
        let found = ask(&app, name, json!(["gap_k", wide, raw])).await;
        assert!(found.len() >= 16);
        for result in found {
            let columns = Columns::of(&result);
            for (label, k, window) in [("gap_k(k=0.2,window=3)", 0.2, 3), ("wide", 0.7, 7), ("raw", 0.5, 1)] {
                assert_same(&format!("{name} {label}"), score(&result, label), columns.gap_k(k, window));
            }
            assert_eq!(result["tokens"][1]["contributions"], json!({}), "no sum over tokens");
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn surp_is_what_the_tokens_say() {
    let app = serve(&TARGETS).await;
    for name in TARGETS {
        // The goldens are unsure almost throughout, so one bound lies within their entropies.
        let probe = ask(&app, name, json!(["loss"])).await;
        let mut entropies: Vec<f64> = probe.iter().flat_map(|result| Columns::of(result).entropy).collect();
        entropies.sort_by(f64::total_cmp);
        let bound = entropies[entropies.len() / 3];
        let bounded = json!({ "name": "surp", "k": 0.4, "max_entropy": bound, "label": "bounded" });
        let open = json!({ "name": "surp", "k": 0.4, "max_entropy": 1000.0, "label": "open" });
        let (mut found, mut nothing) = (0, 0);
        for result in ask(&app, name, json!([bounded, open, { "name": "min_k", "k": 0.4 }, "surp"])).await {
            let columns = Columns::of(&result);
            for (label, bound) in [("bounded", bound), ("surp(k=0.4,max_entropy=2)", 2.0)] {
                match columns.surp(0.4, bound) {
                    Some(want) => {
                        assert_same(name, score(&result, label), want);
                        found += 1;
                    }
                    None => {
                        assert_eq!(code(&result, label), "nothing_selected", "{name} {label}");
                        nothing += 1;
                    }
                }
            }
            assert_eq!(score(&result, "open").to_bits(), score(&result, "min_k(k=0.4)").to_bits(), "sure of all");
        }
        assert!(found > 8 && nothing > 0, "{name}: {found} and {nothing}");
    }
}

/// Some tokens often, some seldom, most never: a corpus of the golden's own first texts.
pub fn counts(name: &str, directory: &Path) -> (TokenCountsSettings, Vec<u64>) {
    let tokenizer = tokenizer(name);
    let mut counts = vec![0u64; tokenizer.id_bound()];
    let corpus = &texts(name)[..4];
    for text in corpus {
        for &id in tokenizer.encode(text["text"].as_str().unwrap()).unwrap().ids.iter() {
            counts[id as usize] += 1;
        }
    }
    let made = CountsFile {
        format: FORMAT.to_owned(),
        tokenizer: tokenizer.fingerprint().unwrap().to_owned(),
        model: name.to_owned(),
        texts: corpus.len() as u64,
        tokens: counts.iter().sum(),
        counts: counts.clone(),
    };
    let file = directory.join(format!("{name}.json"));
    std::fs::write(&file, serde_json::to_vec(&made).unwrap()).unwrap();
    (TokenCountsSettings { id: format!("counts of {name}"), file }, counts)
}

#[tokio::test(flavor = "multi_thread")]
async fn dc_pdd_is_what_the_tokens_and_the_counts_say() {
    let place = tempfile::tempdir().unwrap();
    for name in TARGETS {
        let (declared, counts) = counts(name, place.path());
        let mut settings = settings(&[name]);
        settings.token_counts = vec![declared];
        let app = App::start_as_it_is(&settings).await;
        let capped = json!({ "name": "dc_pdd", "counts": format!("counts of {name}"), "a": 1e-4, "label": "capped" });
        let open = json!({ "name": "dc_pdd", "a": 100.0, "label": "open" });
        let request = json!(["dc_pdd", capped, open]);
        let (mut differ, default) = (0, format!("dc_pdd(counts=counts of {name},a=0.01)"));
        for result in ask(&app, name, request).await {
            let columns = Columns::of(&result);
            for (label, a) in [(default.as_str(), 0.01), ("capped", 1e-4), ("open", 100.0)] {
                assert_same(&format!("{name} {label}"), score(&result, label), columns.dc_pdd(&counts, a));
            }
            differ += usize::from(score(&result, "capped") < score(&result, "open"));
        }
        assert!(differ > 8, "{name}: the cap matters in {differ} texts");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn weights_by_entropy_are_those_of_the_tokens() {
    let app = serve(&TARGETS).await;
    for name in TARGETS {
        let pdr = json!({ "decay": "entropy_sample" });
        let normalized = json!({ "decay": "entropy_sample", "normalize": true });
        let methods = json!([{ "name": "loss", "pdr": pdr, "label": "loss" }, { "name": "loss", "pdr": normalized, "label": "share" }]);
        for result in ask(&app, name, methods).await {
            let columns = Columns::of(&result);
            let most = columns.entropy.iter().copied().fold(0.0, f64::max);
            let weights: Vec<f64> = columns.entropy.iter().map(|entropy| entropy / most).collect();
            let sum: f64 = columns.lp.iter().zip(&weights).map(|(lp, weight)| lp * weight).sum();
            assert_same(name, score(&result, "loss"), sum / columns.lp.len() as f64);
            assert_same(name, score(&result, "share"), sum / weights.iter().sum::<f64>());
            let listed: Vec<f64> =
                result["tokens"].as_array().unwrap().iter().filter_map(|t| t["weights"]["loss"].as_f64()).collect();
            assert_eq!(listed, weights);
        }
    }
}
