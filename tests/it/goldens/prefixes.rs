//! `recall` and `con_recall` against ids that are put together by hand.

use super::rig::{Local, assert_same, code, linear_mean, mean, results, score, serve};
use serde_json::{Value, json};

const NON_MEMBERS: [&str; 2] = ["Rain fell all night.", " The river rose"];
const MEMBERS: [&str; 1] = ["Call me Ishmael."];
const TEXT: &str = "It was the best of times.";

/// The text's log-probabilities after a prefix: all that it has there, of `own` ids.
fn after(model: &Local, prefix: &[&str], specials: usize) -> Vec<f64> {
    let text = model.ids(TEXT);
    let mut ids = text[..specials].to_vec();
    for part in prefix {
        // Special tokens that the tokenizer puts before a text are left out in the middle.
        let part = model.ids(part);
        ids.extend(&part[specials..]);
    }
    let before = ids.len();
    ids.extend(&text[specials..]);
    model.lps(&ids)[before - 1..].to_vec()
}

fn recall(align: Option<&str>, label: &str) -> Value {
    let mut method = json!({ "name": "recall", "prefix": NON_MEMBERS, "label": label });
    if let Some(align) = align {
        method["align"] = json!(align);
    }
    method
}

fn con_recall(gamma: f64, label: &str) -> Value {
    json!({ "name": "con_recall", "non_members": NON_MEMBERS, "members": MEMBERS, "gamma": gamma, "label": label })
}

fn linear(mut method: Value, label: &str) -> Value {
    method["pdr"] = json!({ "decay": "linear", "alpha": 1.0 });
    method["label"] = json!(label);
    method
}

#[tokio::test(flavor = "multi_thread")]
async fn a_text_is_scored_after_a_prefix_in_one_sequence() {
    // Without BOS: the first token has a probability only after a prefix. With one it always has.
    for (name, specials) in [("gpt_neo", 0), ("llama-gqa", 1)] {
        let (app, model) = (serve(&[name]).await, Local::open(name));
        let methods = json!([
            recall(None, "default"),
            recall(Some("shared"), "shared"),
            recall(Some("official"), "official"),
            con_recall(0.5, "half"),
            con_recall(0.0, "none"),
            linear(recall(Some("shared"), ""), "shared linear"),
            linear(recall(Some("official"), ""), "official linear"),
            linear(con_recall(2.0, ""), "double linear"),
        ]);
        let answer = app.score(&json!({ "inputs": TEXT, "methods": methods })).await;
        let result = &results(&answer)[0];
        assert_eq!((&result["errors"], &result["bos_prepended"]), (&json!([]), &json!(specials == 1)));

        let alone = model.lps(&model.ids(TEXT));
        let (behind, behind_members) = (after(&model, &NON_MEMBERS, specials), after(&model, &MEMBERS, specials));
        assert_eq!(behind.len(), alone.len() + 1 - specials, "{name}: with BOS all tokens have one anyway");
        let shared = &behind[behind.len() - alone.len()..];
        for (label, want) in [
            ("default", mean(shared) / mean(&alone)),
            ("shared", mean(shared) / mean(&alone)),
            ("official", mean(&behind) / mean(&alone)),
            ("half", (mean(&behind) - 0.5 * mean(&behind_members)) / mean(&alone)),
            ("none", mean(&behind) / mean(&alone)),
            ("shared linear", linear_mean(shared) / linear_mean(&alone)),
            ("official linear", linear_mean(&behind) / linear_mean(&alone)),
            ("double linear", (linear_mean(&behind) - 2.0 * linear_mean(&behind_members)) / linear_mean(&alone)),
        ] {
            assert_same(&format!("{name} {label}"), score(result, label), want);
        }
        let differ = score(result, "shared") != score(result, "official");
        assert_eq!(differ, specials == 0, "{name}: the alignments differ where there is a token to differ by");
        let echo = &answer["methods"];
        assert_eq!((&echo[0]["align"], &echo[0]["prefix"]), (&json!("shared"), &json!(NON_MEMBERS)));
        assert!(echo[0].get("extension").is_none() && echo[5]["extension"] == true);
        assert_eq!(answer["usage"]["forward_passes"], 3);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_prefix_that_leaves_no_room_fails_its_methods_alone() {
    let app = serve(&["gpt2"]).await;
    let model = Local::open("gpt2");
    let long = "and so on ".repeat(20);
    let room = 128 - model.ids(&long).len();
    assert!(room > 2 && room < 60);
    let recall = |texts: &[&str], label: &str| json!({ "name": "recall", "prefix": texts, "label": label });
    // The text that just fits behind the prefix, and the next longer one.
    let word = |count: usize| vec!["!"; count].join(" ");
    let fitting = (1..200).rfind(|&count| model.ids(&word(count)).len() <= room).unwrap();
    let inputs = json!([word(fitting), word(fitting + 1)]);
    let con_recall = json!({ "name": "con_recall", "non_members": ["short"], "members": [long], "label": "both" });
    for overflow in ["error", "truncate", "window"] {
        let methods = json!(["loss", recall(&[&long], "long"), recall(&["short"], "short"), con_recall]);
        let answer = app.score(&json!({ "inputs": inputs, "methods": methods, "overflow": overflow })).await;
        let codes: Vec<[&str; 4]> = results(&answer)
            .iter()
            .map(|result| ["loss", "long", "short", "both"].map(|label| code(result, label)))
            .collect();
        assert_eq!(codes, [["", "", "", ""], ["", "too_long", "", "too_long"]], "{overflow}");
    }
}
