//! Texts longer than the context, read in windows, against every window run by itself.

use super::rig::{Local, assert_same, code, column, linear_mean, mean, results, score, serve, text, texts};
use crate::common::app::App;
use mia::TokenStats;
use serde_json::{Value, json};

/// Learned positions; rotary ones, without BOS and with.
const MODELS: [(&str, &str); 3] =
    [("gpt2", "gpt_neo"), ("gptneox-parallel", "gptneox-sequential"), ("llama-gqa", "mistral")];

/// For each id but the first the statistics of the window that gives it the most left context, and how many windows
/// there are: windows of `context` ids, each half a window after the one before, until one reaches the end.
fn by_hand(model: &Local, ids: &[u32]) -> (Vec<TokenStats>, usize) {
    let context = model.context.unwrap();
    let starts: Vec<usize> =
        (0..).map(|at| at * (context / 2)).take_while(|&start| start == 0 || start + context / 2 < ids.len()).collect();
    let windows: Vec<(usize, Vec<TokenStats>)> =
        starts.iter().map(|&start| (start, model.stats(&ids[start..ids.len().min(start + context)]))).collect();
    let best = |at: usize| {
        // A window gives the id at its place p the p ids before it.
        let seen = windows.iter().filter(|(start, stats)| at > *start && at - start <= stats.len());
        let (start, stats) = seen.max_by_key(|(start, _)| at - start).unwrap();
        stats[at - start - 1]
    };
    ((1..ids.len()).map(best).collect(), windows.len())
}

fn lps(stats: &[TokenStats]) -> Vec<f64> {
    stats.iter().map(|stats| stats.lp).collect()
}

fn long_texts(name: &str) -> [String; 2] {
    let long = text(name, "longer_than_context");
    [long.clone(), format!("{long} {} {long}", text(name, "sentence_medium"))]
}

async fn ask(app: &App, model: &str, inputs: &[String], methods: Value) -> Value {
    let request =
        json!({ "model": model, "inputs": inputs, "methods": methods, "overflow": "window", "details": ["tokens"] });
    app.score(&request).await
}

#[tokio::test(flavor = "multi_thread")]
async fn every_token_of_a_long_text_has_the_most_context_that_a_window_gives_it() {
    let app = serve(&MODELS.map(|(model, reference)| [model, reference]).concat()).await;
    for (name, reference) in MODELS {
        let (target, other) = (Local::open(name), Local::open(reference));
        let linear = json!({ "decay": "linear", "alpha": 1.0 });
        let methods = json!(["loss", "zlib", "ref", "lowercase", "min_k",
            { "name": "loss", "pdr": linear, "label": "loss linear" }, { "name": "ref", "pdr": linear, "label": "ref linear" },
            { "name": "zlib", "pdr": linear, "label": "zlib linear" }]);
        let inputs = long_texts(name);
        let answer = ask(&app, name, &inputs, methods).await;
        let mut run = 0;
        for (input, result) in inputs.iter().zip(results(&answer)) {
            let ids = target.ids(input);
            let (own, windows) = by_hand(&target, &ids);
            let (lower, lower_windows) = by_hand(&target, &target.ids(&input.to_lowercase()));
            let reference = lps(&by_hand(&other, &ids).0);
            run += 2 * windows + lower_windows;
            assert!(windows >= 3, "{name}: {} ids", ids.len());
            assert_eq!((&result["windows"], &result["truncated"]), (&json!(windows), &json!(false)), "{name}");
            assert_eq!((result["scored_tokens"].as_u64(), &result["errors"]), (Some(ids.len() as u64 - 1), &json!([])));
            // The token details of an answer equal those of the model, bit for bit.
            type Field = fn(&TokenStats) -> f64;
            let fields: [(&str, Field); 4] =
                [("lp", |s| s.lp), ("mu", |s| s.mu), ("sigma", TokenStats::sigma), ("max_lp", |s| s.max_lp)];
            for (field, of) in fields {
                assert_eq!(column(result, field), own.iter().map(of).collect::<Vec<_>>(), "{name} {field}");
            }
            let own = lps(&own);
            let ratio: Vec<f64> = own.iter().zip(&reference).map(|(own, reference)| own - reference).collect();
            let zlib = mia::methods::zlib_bytes(input) as f64;
            let mut sorted = own.clone();
            sorted.sort_by(f64::total_cmp);
            let fifth = (own.len() as f64 * 0.2) as usize;
            for (label, want) in [
                ("loss", mean(&own)),
                ("zlib", mean(&own) / zlib),
                ("min_k(k=0.2)", mean(&sorted[..fifth])),
                ("loss linear", linear_mean(&own)),
                ("zlib linear", linear_mean(&own) / zlib),
                (&format!("ref(reference={reference_id})", reference_id = reference_of(name)), mean(&ratio)),
                ("ref linear", linear_mean(&ratio)),
                ("lowercase", mean(&lps(&lower)) / mean(&own)),
            ] {
                assert_same(&format!("{name} {label}"), score(result, label), want);
            }
        }
        // The longer text begins with the shorter one, whose windows it shares but for the last.
        let passes = answer["usage"]["forward_passes"].as_u64().unwrap() as usize;
        assert!(passes <= run && passes > run / 2, "{name}: {passes} of {run}");
    }
}

fn reference_of(name: &str) -> &str {
    MODELS.iter().find(|(model, _)| *model == name).unwrap().1
}

#[tokio::test(flavor = "multi_thread")]
async fn a_text_that_fits_scores_the_same_bits() {
    let app = serve(&["gptneox-parallel", "gptneox-sequential"]).await;
    let all: Vec<Value> = texts("gptneox-parallel").iter().map(|text| text["text"].clone()).collect();
    let methods = json!(["loss", "zlib", "ref", "lowercase", "min_k", "min_k_plus_plus", "gap_k",
        { "name": "loss", "pdr": { "decay": "exponential", "alpha": 0.02 } }, { "name": "min_k", "pdr": { "decay": "slope" } }]);
    let ask =
        async |overflow: &str| app.score(&json!({ "inputs": all, "methods": methods, "overflow": overflow })).await;
    let (plain, windowed) = (ask("error").await, ask("window").await);
    let mut fitting = 0;
    for (plain, windowed) in results(&plain).iter().zip(results(&windowed)) {
        assert!(plain.get("windows").is_none());
        if plain["errors"] == json!([]) {
            let mut windowed = windowed.clone();
            assert_eq!(windowed.as_object_mut().unwrap().shift_remove("windows"), Some(json!(1)));
            assert_eq!(&windowed, plain);
            fitting += 1;
        } else if plain["errors"][0]["code"] == "too_short" {
            assert_eq!(windowed, plain);
        }
    }
    assert_eq!(fitting, 15, "of eighteen two are too short and one is too long");
}

/// A model without a limit on a text, and a reference with one.
#[tokio::test(flavor = "multi_thread")]
async fn the_reference_alone_may_need_windows() {
    let app = serve(&["mamba", "gptneox-parallel"]).await;
    let (target, reference) = (Local::open("mamba"), Local::open("gptneox-parallel"));
    let input = text("mamba", "longer_than_context");
    let answer =
        ask(&app, "mamba", std::slice::from_ref(&input), json!(["loss", { "name": "ref", "label": "ref" }])).await;
    let result = &results(&answer)[0];
    let ids = target.ids(&input);
    let own = target.lps(&ids);
    let (others, windows) = by_hand(&reference, &ids);
    assert_eq!(result["windows"], 1);
    assert_same("loss", score(result, "loss"), mean(&own));
    assert_same("ref", score(result, "ref"), mean(&own) - mean(&lps(&others)));
    assert_eq!(answer["usage"]["forward_passes"], 1 + windows);
    // Not in windows, the reference cannot run, and it is the only one that cannot.
    for overflow in ["error", "truncate"] {
        let methods = json!(["loss", { "name": "ref", "label": "ref" }]);
        let answer = app.score(&json!({ "inputs": input, "methods": methods, "overflow": overflow })).await;
        let result = &results(&answer)[0];
        assert_eq!((code(result, "ref"), &result["truncated"]), ("too_long", &json!(false)));
        assert_same("loss", score(result, "loss"), mean(&own));
    }
}

/// A method's view of a text can be too long where the text itself is not.
#[tokio::test(flavor = "multi_thread")]
async fn a_view_that_is_too_long_fails_its_method_alone() {
    let app = serve(&["gpt2", "gpt_neo"]).await;
    let model = Local::open("gpt2");
    // A letter that becomes two when it is lower-cased.
    let letters = "\u{130}".repeat(45);
    let (plain, lower) = (model.ids(&letters), model.ids(&letters.to_lowercase()));
    assert!(plain.len() <= 128 && lower.len() > 128, "{} and {} ids", plain.len(), lower.len());
    let recall = |prefix: &str| json!({ "name": "recall", "prefix": [prefix], "label": "recall" });
    let neighbor = json!({ "text": letters, "neighbors": ["a b", text("gpt2", "longer_than_context")] });
    let request = |overflow: &str| {
        let methods = json!(["loss", "lowercase", "neighbor", recall(&text("gpt2", "sentence_long"))]);
        json!({ "inputs": [neighbor], "methods": methods, "overflow": overflow })
    };
    let answer = app.score(&request("error")).await;
    let result = &results(&answer)[0];
    assert_eq!(["lowercase", "neighbor", "recall"].map(|label| code(result, label)), ["too_long"; 3]);
    assert_eq!((result["scores"].as_object().unwrap().len(), result["errors"].as_array().unwrap().len()), (1, 3));
    let detail = result["errors"][0]["detail"].as_str().unwrap();
    assert!(detail.contains(&format!("{} tokens", lower.len())) && detail.contains("128"), "{detail}");

    // In windows there is a way for all but the prefix, which every token must see.
    let answer = app.score(&request("window")).await;
    let result = &results(&answer)[0];
    assert_eq!((code(result, "recall"), result["errors"].as_array().unwrap().len()), ("too_long", 1));
    assert_same(
        "lowercase",
        score(result, "lowercase"),
        mean(&lps(&by_hand(&model, &lower).0)) / mean(&model.lps(&plain)),
    );
    // The text fits and is not cut, so what is made of it is not cut either: half of a pair would be compared.
    let answer = app.score(&request("truncate")).await;
    let result = &results(&answer)[0];
    assert_eq!(["lowercase", "neighbor", "recall"].map(|label| code(result, label)), ["too_long"; 3]);
    assert_eq!((&result["truncated"], result["scores"].as_object().unwrap().len()), (&json!(false), 1));
    // A prefix that fits does not fail in windows.
    let methods = json!([recall("a short one")]);
    let answer = app.score(&json!({ "inputs": "and a text", "methods": methods, "overflow": "window" })).await;
    assert!(score(&results(&answer)[0], "recall").is_finite());
}
