//! The method `neighbor`: neighbours of the caller, and those that a masked golden makes.

use super::rig::{Local, assert_same, code, linear_mean, mean, results, score, serve, settings};
use crate::common::app::App;
use crate::common::goldens::expected;
use pdr_audit::config::ByteSize;
use serde_json::{Value, json};

const TARGET: &str = "gpt2";
const GENERATOR: &str = "bert-mlm";

/// Each text of the masked golden with its neighbours.
fn golden_texts() -> Vec<(String, Vec<String>)> {
    let text = |value: &Value| value["text"].as_str().unwrap().to_owned();
    let golden = expected(GENERATOR);
    let texts = golden["texts"].as_array().unwrap().iter();
    texts.map(|case| (text(case), case["neighbors"].as_array().unwrap().iter().map(text).collect())).collect()
}

fn decayed(label: &str, more: &Value) -> Value {
    let mut method = json!({ "name": "neighbor", "pdr": { "decay": "linear", "alpha": 1.0 }, "label": label });
    method.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    method
}

/// The losses of texts, asked for one by one.
async fn losses(app: &App, texts: &[String]) -> Vec<f64> {
    let mut losses = Vec::new();
    for text in texts {
        let answer = app.score(&json!({ "inputs": text, "methods": ["loss"] })).await;
        losses.push(score(&results(&answer)[0], "loss"));
    }
    losses
}

#[tokio::test(flavor = "multi_thread")]
async fn the_score_is_the_loss_less_the_mean_loss_of_the_callers_neighbours() {
    let app = serve(&[TARGET]).await;
    let model = Local::open(TARGET);
    let (linear, exponential) = (decayed("linear", &json!({})), json!({ "decay": "exponential", "alpha": 0.0 }));
    let flat = json!({ "name": "neighbor", "pdr": exponential, "label": "flat" });
    // Of different lengths, one of them the text itself.
    let (text, neighbors) =
        ("The ferry left at six.", ["The ferry left at dawn.", "Nothing left.", "The ferry left at six."]);
    let inputs = json!([{ "text": text, "neighbors": neighbors }]);
    let answer = app.score(&json!({ "inputs": inputs, "methods": ["neighbor", linear, flat] })).await;
    let result = &results(&answer)[0];
    let of = |statistic: fn(&[f64]) -> f64| {
        let each: Vec<f64> = neighbors.iter().map(|text| statistic(&model.lps(&model.ids(text)))).collect();
        statistic(&model.lps(&model.ids(text))) - mean(&each)
    };
    assert_same("neighbor", score(result, "neighbor"), of(mean));
    assert_same("with weights by each text's own length", score(result, "linear"), of(linear_mean));
    assert_eq!(score(result, "flat").to_bits(), score(result, "neighbor").to_bits());
    let echo = &answer["methods"];
    assert_eq!(echo[0], json!({ "label": "neighbor", "name": "neighbor" }), "plain, it is no extension");
    assert_eq!((&echo[1]["extension"], &echo[1]["pdr"]["decay"]), (&json!(true), &json!("linear")));
}

#[tokio::test(flavor = "multi_thread")]
async fn generated_neighbours_score_as_the_goldens_do_when_the_caller_sends_them() {
    let app = serve(&[TARGET, GENERATOR]).await;
    let generator = json!({ "generator": { "model": GENERATOR } });
    for (text, neighbors) in golden_texts() {
        let sent = json!([{ "text": text, "neighbors": neighbors }]);
        let answer =
            app.score(&json!({ "inputs": sent, "methods": ["loss", "neighbor", decayed("linear", &json!({}))] })).await;
        let sent = &results(&answer)[0];
        let plain = json!({ "name": "neighbor", "generator": { "model": GENERATOR }, "label": "neighbor" });
        let request = json!({ "inputs": text, "methods": [plain, decayed("linear", &generator)] });
        let answer = app.score(&request).await;
        let generated = &results(&answer)[0];
        let want = score(sent, "loss") - mean(&losses(&app, &neighbors).await);
        assert_same(&text, score(generated, "neighbor"), want);
        for label in ["neighbor", "linear"] {
            assert_eq!(score(generated, label).to_bits(), score(sent, label).to_bits(), "{label} of {text}");
        }
        assert_eq!(
            answer["methods"][0]["generator"],
            json!({ "model": GENERATOR, "count": 25 }),
            "the default is echoed"
        );

        // Fewer neighbours are the first of them.
        let few = json!({ "name": "neighbor", "generator": { "model": GENERATOR, "count": 3 }, "label": "few" });
        let answer = app.score(&json!({ "inputs": text, "methods": [few] })).await;
        let want = score(sent, "loss") - mean(&losses(&app, &neighbors[..3]).await);
        assert_same(&text, score(&results(&answer)[0], "few"), want);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_text_without_neighbours_fails_for_that_method_alone() {
    let app = serve(&[TARGET, GENERATOR]).await;
    let method = json!({ "name": "neighbor", "generator": { "model": GENERATOR }, "label": "generated" });
    // Pieces of a word and no whole one; more than the mask model's 64 tokens; and a good one among them.
    let inputs = json!(["brown", "the ".repeat(63), "The fox ran."]);
    let answer = app.score(&json!({ "inputs": inputs, "methods": ["loss", method] })).await;
    let codes: Vec<&str> = results(&answer).iter().map(|result| code(result, "generated")).collect();
    assert_eq!(codes, ["no_neighbors", "too_long", ""]);
    assert!(results(&answer).iter().all(|result| score(result, "loss").is_finite()));
    // A neighbour that cannot be scored is named.
    let inputs = json!([{ "text": "The fox ran.", "neighbors": ["The fox sat.", ""] }]);
    let answer = app.score(&json!({ "inputs": inputs, "methods": ["loss", "neighbor"] })).await;
    let result = &results(&answer)[0];
    assert_eq!((code(result, "neighbor"), score(result, "loss").is_finite()), ("too_short", true));
    assert!(result["errors"][0]["detail"].as_str().unwrap().contains("neighbour 1"), "{result}");
}

/// A text too long for the target would cost as many masked copies as it has words, and might fill the queue for nothing.
#[tokio::test(flavor = "multi_thread")]
async fn no_neighbours_are_made_of_a_text_that_cannot_be_scored() {
    let mut settings = settings(&["gpt2", GENERATOR]);
    settings.engine.max_queue_tokens = Some(600);
    settings.limits.text = ByteSize::b(400);
    let app = App::start_as_it_is(&settings).await;
    let method = json!({ "name": "neighbor", "generator": { "model": GENERATOR, "count": 4 }, "label": "generated" });
    // Forty words to the mask model, and more tokens than the target takes; and one beyond the limit of a text.
    let (long, large) = ("\u{1f600} ".repeat(40), "!".repeat(401));
    let model = Local::open(TARGET);
    assert!(model.ids(&long).len() > 128, "{}", model.ids(&long).len());
    let inputs = json!([long, "The fox ran.", large, ""]);
    let answer = app.score(&json!({ "inputs": inputs, "methods": [method] })).await;
    let codes: Vec<&Value> = results(&answer).iter().map(|result| &result["errors"][0]["code"]).collect();
    assert_eq!(codes, [&json!("too_long"), &Value::Null, &json!("too_long"), &json!("too_short")]);
    // A neighbour and a prefix are texts as well.
    let inputs = json!([{ "text": "The fox ran.", "neighbors": [large] }]);
    let answer = app.score(&json!({ "inputs": inputs, "methods": ["loss", "neighbor"] })).await;
    let result = &results(&answer)[0];
    assert_eq!(["loss", "neighbor"].map(|label| code(result, label)), ["", "too_long"]);
    assert!(result["errors"][0]["detail"].as_str().unwrap().contains("`limits.text`"));
    let recall = json!([{ "name": "recall", "prefix": ["a", large] }]);
    let refused = app.post("/v1/score", &json!({ "inputs": "The fox ran.", "methods": recall })).await;
    assert_eq!(refused.pointers(), ["/methods/0/prefix/1"]);
    assert!(refused.text().contains("`limits.text`"));
}
