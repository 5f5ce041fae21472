//! Memorization jobs over HTTP: numbers, the control, refusals, and their life as a job.

use crate::common::app::{App, TINY, golden};
use crate::common::client::{Answer, send};
use crate::common::service::{Service, places};
use pdr_audit::config::{ByteSize, ModelSettings};
use reqwest::Method;
use serde_json::{Value, json};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// A window as transformers has it: where it begins, where its suffix begins, where it ends, log-probability, greedy.
type Reference = (usize, usize, usize, f64, bool);

/// The first two texts of `models/demo/audit.jsonl` under that model, in windows of 8 + 4 tokens, one every 8: printed by
/// `tests/interop/extraction_windows.py`.
const DEMO: [&[Reference]; 2] = [
    &[
        (0, 18, 27, -3.6383598670167445, false),
        (18, 43, 61, -3.8176721147922237, false),
        (43, 71, 79, -4.774637041977034, false),
        (71, 93, 106, -4.320829592881169, false),
        (93, 121, 139, -19.15133899975814, false),
    ],
    &[
        (0, 22, 35, -0.221751397654688, true),
        (22, 48, 62, -12.727026336609482, false),
        (48, 79, 100, -5.658589216078494, false),
        (79, 109, 129, -6.207654966827764, false),
        (109, 144, 154, -6.054671064631365, false),
        (144, 163, 175, -16.802589412955165, false),
    ],
];

/// A text whose characters and bytes differ, under a golden model whose tokenizer puts a token before it, in windows of 6 + 3
/// tokens, one every 7; likewise.
const WITH_BOS: &str = "Le caf\u{e9} de la gare \u{2014} na\u{ef}ve and bright: a dozen people came to see the clock.";
const WINDOWS_WITH_BOS: &[Reference] = &[
    (0, 6, 10, -22.460880863874593, false),
    (7, 16, 20, -23.32678308942984, false),
    (18, 24, 32, -26.74148080355188, false),
    (26, 40, 44, -21.063320218069542, false),
    (42, 50, 55, -28.482521741291944, false),
    (51, 64, 71, -29.0716703435096, false),
];

fn demo() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("models/demo")
}

/// The first texts of the demo model, each with its id.
fn texts(count: usize) -> Vec<Value> {
    let file = std::fs::read_to_string(demo().join("audit.jsonl")).unwrap();
    let text = |line: &str| {
        let sample: Value = serde_json::from_str(line).unwrap();
        json!({ "id": sample["id"], "text": sample["text"] })
    };
    file.lines().take(count).map(text).collect()
}

/// The demo model and some goldens.
async fn app() -> App {
    App::with(|settings| {
        let mut model = golden("demo", "gptneox-parallel");
        (model.source.path, model.source.text) = (demo(), demo().display().to_string());
        let others = ["llama-tied", "bert-mlm"].map(|name| golden(name, name));
        settings.models.extend::<Vec<ModelSettings>>([vec![model], others.to_vec()].concat());
    })
    .await
}

async fn submit(app: &App, body: &Value, key: Option<&str>) -> Answer {
    let request = app.request(Method::POST, "/v1/memorization").header("prefer", "wait=60").json(body);
    send(key.into_iter().fold(request, |request, key| request.header("idempotency-key", key))).await
}

/// The results of a job that succeeds.
async fn results(app: &App, body: &Value) -> Value {
    let done = submit(app, body, None).await.ok();
    assert_eq!(done["status"], "succeeded", "{}", done["error"]);
    done["results"].clone()
}

fn path(job: &Value) -> String {
    format!("/v1/memorization/{}", job["id"].as_str().unwrap())
}

fn assert_windows(text: &Value, expected: &[Reference]) {
    let windows = text["windows"].as_array().unwrap();
    assert_eq!(windows.len(), expected.len(), "{text}");
    for (window, (start, suffix_start, end, log_p, greedy)) in windows.iter().zip(expected) {
        let place = (&window["start"], &window["suffix_start"], &window["end"]);
        assert_eq!(place, (&json!(start), &json!(suffix_start), &json!(end)), "{window}");
        let distance = (window["log_p"].as_f64().unwrap() - log_p).abs();
        assert!(distance < 2e-4 && window["greedy"] == *greedy, "{window} is not {log_p}, {greedy}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn windows_are_those_of_transformers() {
    let app = app().await;
    let body = json!({ "model": "demo", "texts": texts(2), "prefix": 8, "suffix": 4, "stride": 8 });
    let found = results(&app, &body).await;
    for (text, expected) in found["texts"].as_array().unwrap().iter().zip(DEMO) {
        assert_windows(text, expected);
    }
    let body = json!({ "model": "llama-tied", "texts": [WITH_BOS], "prefix": 6, "suffix": 3, "stride": 7 });
    let found = results(&app, &body).await;
    assert_windows(&found["texts"][0], WINDOWS_WITH_BOS);
    assert_eq!((&found["texts"][0]["tokens"], &found["texts"][0]["characters"]), (&json!(49), &json!(76)));
}

#[tokio::test(flavor = "multi_thread")]
async fn tries_coverage_and_summary_follow_from_the_windows() {
    let app = app().await;
    let [one, other] = [texts(2)[0].clone(), texts(2)[1].clone()];
    let body = json!({ "model": "demo", "texts": [other], "control": [one], "prefix": 8, "suffix": 4, "stride": 8 });
    let found = results(&app, &body).await;
    let (text, control) = (&found["texts"][0], &found["control"][0]);
    assert_eq!((&text["id"], &control["id"]), (&json!("n000"), &json!("m000")));
    // ln(1/2) / ln(1 - p) is 0.43, 233,400.7, 198.4, 343.8, 295.0 and 13,743,499.0, for the log_p of transformers.
    let windows = text["windows"].as_array().unwrap().iter();
    let tries: Vec<u64> = windows.map(|window| window["tries_for_half"].as_u64().unwrap()).collect();
    assert_eq!([tries[0], tries[2], tries[3]], [1, 199, 344]);
    assert!(tries[1].abs_diff(233_401) < 50 && tries[4].abs_diff(295) < 2 && tries[5].abs_diff(13_743_499) < 3_000);
    // From p = 0.001 on: 0 to 35 and 48 to 154 of 184 characters; of the other, 0 to 106 of 173.
    let share =
        |value: &Value, part: f64| assert!((value.as_f64().unwrap() - part).abs() < 1e-12, "{value} is not {part}");
    share(&text["coverage"], 141.0 / 184.0);
    share(&control["coverage"], 106.0 / 173.0);
    let (texts, control) = (&found["summary"]["texts"], &found["summary"]["control"]);
    share(&texts["coverage"], 141.0 / 184.0);
    share(&texts["greedy_share"], 1.0 / 6.0);
    assert_eq!(
        (&texts["windows"], &texts["greedy_windows"], &texts["tries_for_half"]),
        (&json!(6), &json!(1), &json!(1))
    );
    assert_eq!(
        (&control["windows"], &control["greedy_windows"], &control["characters"]),
        (&json!(5), &json!(0), &json!(173))
    );
    assert_eq!(texts["largest_log_p"], text["windows"][0]["log_p"]);
    let reading = found["summary"]["reading"].as_str().unwrap();
    assert!(reading.contains("in 1 of 6 windows by greedy decoding"), "{reading}");
    assert!(reading.contains("it does so in 0 of 5 windows"), "{reading}");
    assert_eq!((&found["model"]["id"], &found["windows"]["stride"]), (&json!("demo"), &json!(8)));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_window_is_scored_as_a_text_of_its_own() {
    let app = App::start().await;
    // Its tokens are those of the window, whatever comes before and after.
    let (before, window, after) = ("One two three.", " Seven boats came back.", " Nobody asked.");
    let long = format!("{before}{window}{after}");
    let tokens = async |text: &str| {
        let scored = app.score(&json!({ "inputs": [text], "methods": ["loss"], "details": ["tokens"] })).await;
        scored["results"][0]["tokens"].as_array().unwrap().clone()
    };
    let alone = tokens(window).await;
    let first = tokens(before).await.len();
    let suffix = alone.len() - 3;
    let body = json!({ "texts": [long], "prefix": 3, "suffix": suffix, "stride": first, "passes": "separate" });
    let found = results(&app, &body).await;
    let found = &found["texts"][0]["windows"][1];
    let place = |name: &str| found[name].as_u64().unwrap() as usize;
    assert_eq!(long[place("start")..place("end")].trim(), window.trim());
    let expected: f64 = alone[3..].iter().map(|token| token["lp"].as_f64().unwrap()).sum();
    assert_eq!(found["log_p"].as_f64().unwrap(), expected, "the same bits");
}

#[tokio::test(flavor = "multi_thread")]
async fn windows_of_a_shared_pass_are_given_all_that_it_has_before_them() {
    let app = app().await;
    let body = json!({ "model": "demo", "texts": texts(1), "prefix": 6, "suffix": 3, "stride": 2, "run_text": true });
    let found = results(&app, &body).await;
    let text = &found["texts"][0];
    let windows = text["windows"].as_array().unwrap();
    let given: Vec<u64> = windows.iter().map(|window| window["given"].as_u64().unwrap_or(6)).collect();
    let expected: Vec<u64> = (0..windows.len() as u64).map(|window| 6 + window % 3 * 2).collect();
    assert_eq!(given, expected);
    let cost = &found["cost"];
    assert_eq!((&cost["windows_per_pass"], &cost["passes"]), (&json!(3), &json!(windows.len().div_ceil(3))));
    // A window that begins a pass has the number of a pass of its own; the others have more before them.
    let mut separate = body.clone();
    separate["passes"] = json!("separate");
    let separate = results(&app, &separate).await;
    let mut differing = 0;
    for (window, (shared, alone)) in windows.iter().zip(separate["texts"][0]["windows"].as_array().unwrap()).enumerate()
    {
        assert_eq!((&shared["start"], &shared["end"]), (&alone["start"], &alone["end"]));
        let distance = (shared["log_p"].as_f64().unwrap() - alone["log_p"].as_f64().unwrap()).abs();
        assert!(window % 3 > 0 || distance < 1e-4, "{shared} is not {alone}");
        differing += usize::from(distance > 1e-3);
    }
    assert!(differing > 0, "nothing is shared");
    // A prefix that is longer by the stride gives a suffix the tokens that the shared pass has before it, and so the same number.
    let shifted =
        json!({ "model": "demo", "texts": texts(1), "prefix": 8, "suffix": 3, "stride": 6, "passes": "separate" });
    let shifted = results(&app, &shifted).await;
    for (pass, window) in shifted["texts"][0]["windows"].as_array().unwrap().iter().enumerate() {
        let shared = &windows[pass * 3 + 1];
        assert_eq!(shared["suffix_start"], window["suffix_start"]);
        let distance = (shared["log_p"].as_f64().unwrap() - window["log_p"].as_f64().unwrap()).abs();
        assert!(distance < 1e-4, "{shared} is not {window}");
    }
    let run = &text["longest_run"];
    let place = |name: &str| run[name].as_u64().unwrap() as usize;
    let whole = texts(1)[0]["text"].as_str().unwrap().to_owned();
    let passage: String = whole.chars().skip(place("start")).take(place("end") - place("start")).collect();
    assert_eq!(run["text"], json!(passage));
    assert!(place("tokens") > 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_text_stands_among_the_works_of_the_control() {
    let app = app().await;
    let all = texts(30);
    let (texts, control) = all.split_at(2);
    let body = json!({ "model": "demo", "texts": texts, "control": control, "prefix": 8, "suffix": 4, "stride": 4 });
    let found = results(&app, &body).await;
    let known = &found["summary"]["known_works"];
    assert_eq!((&known["works"], &known["smallest_p_value"]), (&json!(28), &json!(1.0 / 29.0)));
    // Every third window is disjoint from the one before, and every second one begins a pass; as many count as the shortest text has.
    let disjoint = |text: &Value| text["windows"].as_array().unwrap().len().div_ceil(4);
    let everything = || ["texts", "control"].iter().flat_map(|list| found[list].as_array().unwrap());
    let count = everything().map(disjoint).min().unwrap();
    assert_eq!(known["windows_per_work"], count);
    let largest = |text: &Value| {
        let log_p = |window: usize| {
            let window = &text["windows"][(2 * window + 1) * disjoint(text) / (2 * count) * 4];
            assert!(window.get("given").is_none());
            window["log_p"].as_f64().unwrap()
        };
        (0..count).map(log_p).fold(f64::NEG_INFINITY, f64::max)
    };
    let known: Vec<f64> = found["control"].as_array().unwrap().iter().map(largest).collect();
    for text in found["texts"].as_array().unwrap() {
        let above = known.iter().filter(|known| **known >= largest(text)).count();
        assert_eq!(text["p_value"], (above + 1) as f64 / 29.0);
    }
    assert!(found["control"][0].get("p_value").is_none());
    let reading = found["summary"]["reading"].as_str().unwrap();
    assert!(reading.contains("the text and 28 works of the control") && reading.contains("below 0.0345"), "{reading}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_text_is_continued_greedily_from_a_window() {
    let app = app().await;
    let all = texts(2);
    let (control, texts) = all.split_at(1);
    let mut body = json!({
        "model": "demo", "texts": texts, "control": control, "prefix": 8, "suffix": 4, "stride": 8,
        "continuation": { "tokens": 30, "from": "start", "least_words": 1 },
    });
    let found = results(&app, &body).await;
    let continuation = &found["texts"][0]["continuation"];
    assert_eq!((&continuation["seed_start"], &continuation["seed_end"]), (&json!(0), &json!(22)));
    // The first window is greedy, and so the first four tokens are those of the text.
    let verbatim = continuation["verbatim_tokens"].as_u64().unwrap();
    assert!((4..30).contains(&verbatim) && continuation["tokens"] == 30, "{continuation}");
    let text = texts[0]["text"].as_str().unwrap();
    let written = continuation["text"].as_str().unwrap();
    assert!(written.trim_start().starts_with(&text[22..35]), "{written}");
    for block in continuation["blocks"].as_array().unwrap() {
        let place = |name: &str| block[name].as_u64().unwrap() as usize;
        let (part, given) =
            (&text[place("start")..place("end")], &written[place("written_start")..place("written_end")]);
        let words = |text: &str| text.split_whitespace().map(str::to_lowercase).collect::<Vec<_>>();
        assert_eq!((words(part)[0].clone(), words(part).pop()), (words(given)[0].clone(), words(given).pop()));
    }
    assert!(!continuation["blocks"].as_array().unwrap().is_empty(), "{continuation}");
    assert_eq!(found["control"][0]["continuation"]["tokens"], 30);
    let reading = found["summary"]["reading"].as_str().unwrap();
    assert!(
        reading.contains(
            "up to 30 tokens, 1 of 1 texts with at least 1 word behind the seed passage come back near-verbatim; of"
        ),
        "{reading}"
    );
    // A window whose suffix has so many tokens is greedy, and one with a token more is not.
    body["continuation"] = Value::Null;
    for (suffix, greedy) in [(verbatim, true), (verbatim + 1, false)] {
        body["suffix"] = json!(suffix);
        assert_eq!(results(&app, &body).await["texts"][0]["windows"][0]["greedy"], greedy);
    }
    // From the most probable window by default, and from none of a text that is too short.
    body["suffix"] = json!(4);
    (body["texts"], body["continuation"]) = (json!([texts[0], "A."]), json!({ "tokens": 50 }));
    let found = results(&app, &body).await;
    assert_eq!(found["texts"][0]["continuation"]["seed_start"], 0);
    assert!(found["texts"][1].get("continuation").is_none());
    assert_eq!(found["continuation"], json!({ "tokens": 50, "from": "most_probable" }));
}

#[tokio::test(flavor = "multi_thread")]
async fn texts_of_more_passes_than_run_at_once_are_continued() {
    let app = app().await;
    let all: Vec<String> = texts(160).iter().map(|text| text["text"].as_str().unwrap().to_owned()).collect();
    let (one, other) = all.split_at(80);
    let body = json!({
        "model": "demo", "texts": [one.join(" "), other.join(" ")], "stride": 5, "prefix": 40, "suffix": 40, "passes": "separate",
        "continuation": { "tokens": 5, "least_words": 2 },
    });
    let found = results(&app, &body).await;
    assert!(found["cost"]["tokens"].as_u64().unwrap() > 2 * 8_192, "{}", found["cost"]);
    for text in found["texts"].as_array().unwrap() {
        assert_eq!(text["continuation"]["tokens"], 5);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_map_has_the_windows_of_the_report() {
    let app = app().await;
    let control = json!([{ "id": "=1+1", "text": texts(3)[2]["text"] }]);
    let body = json!({ "model": "demo", "texts": texts(2), "control": control, "prefix": 8, "suffix": 4, "stride": 3 });
    let done = submit(&app, &body, None).await.ok();
    let map = format!("{}/map", path(&done));
    let lines = app.get(&map).await;
    assert_eq!(lines.headers["content-type"], "application/x-ndjson");
    let rows: Vec<Value> = lines.text().lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let mut expected = Vec::new();
    for (list, control) in [("texts", false), ("control", true)] {
        for text in done["results"][list].as_array().unwrap() {
            expected.extend(text["windows"].as_array().unwrap().iter().map(|window| {
                let mut row = json!({ "index": text["index"], "id": text["id"], "control": control });
                for name in ["start", "suffix_start", "end", "log_p", "greedy"] {
                    row[name] = window[name].clone();
                }
                row
            }));
        }
    }
    assert_eq!(rows.len(), expected.len());
    for (row, expected) in rows.iter().zip(&expected) {
        for (name, value) in expected.as_object().unwrap() {
            assert_eq!(&row[name], value, "{name} of {row}");
        }
    }
    let csv = send(app.request(Method::GET, &map).header("accept", "text/csv")).await;
    assert_eq!(csv.headers["content-type"], "text/csv; charset=utf-8");
    let csv = csv.text();
    assert!(
        csv.starts_with("index,id,control,start,suffix_start,end,given,log_p,greedy,tries_for_half,in_longest_run\n")
    );
    assert_eq!(csv.lines().count(), rows.len() + 1);
    assert!(csv.lines().last().unwrap().starts_with("0,'=1+1,true,"), "{csv}");
    send(app.request(Method::GET, &map).header("accept", "text/html")).await.problem(406);

    let long: Vec<String> = (0..400).map(|i| format!("{i} {}", "boats came back with herring ".repeat(40))).collect();
    let submitted = app.post("/v1/memorization", &json!({ "model": "demo", "texts": long, "stride": 1 })).await.json();
    let problem = app.get(&format!("{}/map", path(&submitted))).await.problem(409);
    assert!(problem["detail"].as_str().unwrap().ends_with("there is a map once it has succeeded"), "{problem}");
    app.post(&format!("{}/cancel", path(&submitted)), &json!({})).await.ok();
    app.get(&format!("/v1/memorization/{}/map", uuid::Uuid::nil())).await.problem(404);
}

#[tokio::test(flavor = "multi_thread")]
async fn texts_without_windows_say_why_and_do_not_count() {
    let app = App::with(|settings| settings.limits.text = ByteSize::b(200)).await;
    let long = "The boats of the harbour came back with seven baskets of herring and a goat.";
    let body = json!({ "texts": ["A.", long, "x".repeat(300), ""], "control": ["B."], "prefix": 5, "suffix": 5 });
    let found = results(&app, &body).await;
    let codes: Vec<&Value> = found["texts"].as_array().unwrap().iter().map(|text| &text["error"]["code"]).collect();
    assert_eq!(codes, [&json!("too_short"), &Value::Null, &json!("too_long"), &json!("too_short")]);
    let detail = found["texts"][0]["error"]["detail"].as_str().unwrap();
    assert_eq!(detail, "the text has 2 tokens; a window takes 5 for the prefix and 5 to follow");
    let (texts, control) = (&found["summary"]["texts"], &found["summary"]["control"]);
    assert_eq!(
        (&texts["texts"], &texts["without_windows"], &texts["characters"]),
        (&json!(1), &json!(3), &json!(long.len()))
    );
    assert_eq!((&control["texts"], &control["windows"], control.get("coverage")), (&json!(0), &json!(0), None));
    assert!(found["summary"]["reading"].as_str().unwrap().contains("No text of the control has a window"));
}

#[tokio::test(flavor = "multi_thread")]
async fn what_cannot_be_looked_at_is_refused_by_name() {
    let app = app().await;
    let text = "The boats of the harbour came back with seven baskets of herring.";
    for (body, pointer, detail) in [
        (json!({ "texts": [text], "prefix": 0 }), "/prefix", "0 tokens, expected at least 1"),
        (json!({ "texts": [text], "suffix": 0 }), "/suffix", "0 tokens, expected at least 1"),
        (json!({ "texts": [text], "stride": 0 }), "/stride", "0 tokens, expected at least 1"),
        (json!({ "texts": [text], "stride": -1 }), "/stride", "invalid value"),
        (
            json!({ "texts": [text], "passes": "own" }),
            "/passes",
            "unknown variant `own`, expected `shared` or `separate`",
        ),
        (json!({ "texts": [text], "run_text": 1 }), "/run_text", "expected a boolean"),
        (
            json!({ "texts": [text], "continuation": { "tokens": 0 } }),
            "/continuation/tokens",
            "0 is outside 1 to 10000",
        ),
        (json!({ "texts": [text], "continuation": { "from": "end" } }), "/continuation/from", "unknown variant `end`"),
        (json!({ "texts": [text], "continuation": { "token": 3 } }), "/continuation/token", "unknown field"),
        // The last token runs through no pass.
        (
            json!({ "texts": [text], "continuation": { "tokens": 80, "least_words": 9 } }),
            "/continuation/tokens",
            "129 tokens; the context",
        ),
        (json!({ "texts": vec!["a"; 1_001], "continuation": {} }), "/texts", "writes 200200; the limit is 200000"),
        (json!({ "texts": [] }), "/texts", "there are no texts"),
        (json!({ "texts": [text], "control": [] }), "/control", "the list is empty"),
        (json!({}), "", "neither `texts` nor `dataset`"),
        (json!({ "texts": [text, 7] }), "/texts/1", "expected a text, or an object"),
        (json!({ "texts": [{ "text": text, "neighbors": [] }] }), "/texts/0/neighbors", "unknown field"),
        (json!({ "texts": [text], "prefx": 5 }), "/prefx", "unknown field"),
        (json!({ "texts": [text], "timeout_seconds": 0 }), "/timeout_seconds", "outside 1 to"),
        (json!({ "texts": [text], "prefix": 100 }), "/prefix", "150 tokens; the context of model `tiny` is 128"),
        // 128 tokens, and one that stands before them.
        (json!({ "model": "llama-tied", "texts": [text], "prefix": 78 }), "/prefix", "129 tokens; the context"),
        (json!({ "model": "bert-mlm", "texts": [text] }), "/model", "is a masked model"),
    ] {
        let problem = app.post("/v1/memorization", &body).await.problem(422);
        let fault = &problem["errors"][0];
        assert_eq!(fault["pointer"], pointer, "{problem}");
        assert!(fault["detail"].as_str().unwrap().contains(detail), "{fault}");
    }
    let all = json!({ "texts": [], "prefix": 0, "suffix": "x", "stride": 0 });
    let pointers = app.post("/v1/memorization", &all).await.pointers();
    assert_eq!(pointers, ["/suffix", "/prefix", "/stride", "/texts"]);
    app.post("/v1/memorization", &json!({ "model": "absent", "texts": [text] })).await.problem(404);
    app.post("/v1/memorization", &json!({ "dataset": "sha256:00" })).await.problem(404);
    // Faults found in the texts fail the job.
    let twice = submit(&app, &json!({ "texts": ["A."], "control": ["B.", "C.", "B."] }), None).await.ok();
    let detail = twice["error"]["errors"][0]["detail"].as_str().unwrap();
    assert_eq!(detail, "text 2 of the control is also text 0 of it; each work counts once");
    let same = submit(&app, &json!({ "texts": ["A.", text], "control": ["B.", "C.", text] }), None).await.ok();
    let detail = same["error"]["errors"][0]["detail"].as_str().unwrap();
    assert_eq!(detail, "text 2 of the control is also text 1 of those that it is to be compared with");
    let many = vec!["a ".repeat(500_000); 3];
    let many = submit(&app, &json!({ "texts": many, "prefix": 1, "suffix": 1, "stride": 1 }), None).await.ok();
    assert_eq!((&many["status"], &many["error"]["status"]), (&json!("failed"), &json!(413)), "{many}");
    let detail = many["error"]["detail"].as_str().unwrap();
    assert!(detail.ends_with("windows; the limit of a job is 1000000; a larger `stride` makes fewer"), "{detail}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_dataset_takes_the_place_of_texts_and_a_key_outlives_it() {
    let app = App::start().await;
    let lines: String = texts(3).iter().map(|text| text.to_string() + "\n").collect();
    let dataset = app.post_bytes("/v1/datasets", Some("application/x-ndjson"), lines.into_bytes()).await.json();
    let shape = json!({ "prefix": 10, "suffix": 10 });
    let with = |name: &str, value: &Value| {
        let mut body = shape.clone();
        body[name] = value.clone();
        body
    };
    let body = with("dataset", &dataset["id"]);
    let first = submit(&app, &body, Some("k")).await.ok();
    assert_eq!((&first["status"], &first["dataset"]), (&json!("succeeded"), &dataset["id"]), "{}", first["error"]);
    assert_eq!((&first["texts"], &first["control"], &first["progress"]["done"]), (&json!(3), &json!(0), &json!(3)));
    let inline = results(&app, &with("texts", &json!(texts(3)))).await;
    assert_eq!(first["results"], inline);
    assert_eq!(app.delete(&format!("/v1/datasets/{}", dataset["id"].as_str().unwrap())).await.status, 204);
    assert_eq!(submit(&app, &body, Some("k")).await.ok()["id"], first["id"]);
    submit(&app, &with("texts", &json!(["A."])), Some("k")).await.problem(422);
    submit(&app, &body, None).await.problem(404);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_job_is_listed_followed_cancelled_and_deleted() {
    let app = App::start().await;
    let done = submit(&app, &json!({ "texts": texts(4), "prefix": 10, "suffix": 10 }), None).await.ok();
    let windows = done["results"]["summary"]["texts"]["windows"].clone();
    let tokens = done["results"]["cost"]["tokens"].clone();
    let progress =
        json!({ "done": 4, "total": 4, "windows": windows, "total_windows": windows, "total_tokens": tokens });
    assert_eq!(done["progress"], progress);
    let events = app.get(&format!("{}/events", path(&done))).await;
    let data = |name: &str| {
        let block =
            events.text().split("\n\n").filter(|block| block.contains(&format!("event: {name}"))).last().unwrap();
        let line = block.lines().find_map(|line| line.strip_prefix("data: ")).unwrap();
        serde_json::from_str::<Value>(line).unwrap()
    };
    assert_eq!((data("status"), data("progress")), (json!({ "status": "succeeded" }), progress));

    let long: Vec<String> = (0..400).map(|i| format!("{i} {}", "boats came back with herring ".repeat(40))).collect();
    let submitted = app.post("/v1/memorization", &json!({ "texts": long, "stride": 1 })).await.json();
    assert_eq!(app.delete(&path(&submitted)).await.status, 409);
    let cancelled = app.post(&format!("{}/cancel", path(&submitted)), &json!({})).await.ok();
    assert_eq!((&cancelled["status"], &cancelled["results"]), (&json!("cancelled"), &Value::Null));
    let listed = app.get("/v1/memorization").await.ok();
    let ids: Vec<&Value> = listed["memorizations"].as_array().unwrap().iter().map(|job| &job["id"]).collect();
    assert_eq!(ids, [&submitted["id"], &done["id"]]);
    assert_eq!(
        app.get(&format!("/v1/memorization?status=succeeded&model={TINY}")).await.ok()["memorizations"]
            .as_array()
            .unwrap()
            .len(),
        1
    );
    // An audit is no memorization job.
    app.get(&format!("/v1/audits/{}", done["id"].as_str().unwrap())).await.problem(404);
    assert_eq!(app.delete(&path(&done)).await.status, 204);
    let gone = app.get(&path(&done)).await.problem(404);
    assert_eq!(gone["detail"], "there is no memorization job of this id");
    app.assert_nothing_is_left().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_model_that_is_unloaded_meanwhile_is_waited_for() {
    // Without a cache every window runs.
    let app = App::with(|settings| settings.engine.cache = ByteSize::b(0)).await;
    let texts: Vec<String> = (0..4).map(|i| format!("{i} {}", "boats came back with herring ".repeat(40))).collect();
    let body = json!({ "texts": texts, "prefix": 60, "suffix": 60, "stride": 1 });
    let submitted = app.post("/v1/memorization", &body).await.json();
    let mut unloaded = 0;
    let done = loop {
        let job = app.get(&path(&submitted)).await.ok();
        if !["queued", "running"].contains(&job["status"].as_str().unwrap()) {
            break job;
        }
        if unloaded < 3 && job["progress"]["windows"].as_u64().is_some_and(|windows| windows > 0) {
            unloaded += usize::from(app.post("/v1/models/tiny/unload", &json!({})).await.status == 200);
        }
        tokio::time::sleep(Duration::from_millis(5)).await;
    };
    assert_eq!(done["status"], "succeeded", "{}", done["error"]);
    assert!(unloaded > 0, "the job ended before the model was unloaded");
    assert_eq!(done["results"], results(&app, &body).await);
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "slow: `.ci/full` runs it"]
async fn a_killed_process_makes_no_difference_to_the_report() {
    let directory = tempfile::tempdir().unwrap();
    for place in places(directory.path()).await {
        let (texts, statistics) = (texts(100), directory.path().join("statistics"));
        let (texts, control) = texts.split_at(80);
        let body = json!({ "texts": texts, "control": control, "prefix": 8, "suffix": 8, "stride": 2 });
        let begin = async |service: &Service| {
            let answer = service.client.post("/v1/memorization", &body).await;
            assert_eq!(answer.status, 202, "{}", answer.text());
            path(&answer.json())
        };
        let service = Service::start(&place, &statistics);
        let job = begin(&service).await;
        while service.client.get(&job).await.ok()["progress"]["done"] == 0 {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        service.kill();
        let service = Service::start(&place, &statistics);
        let done = service.ended_at(&job).await;
        assert_eq!(done["status"], "succeeded", "{done}");
        // The same again, from nothing.
        let other = format!("sqlite://{}/{}.db", directory.path().display(), uuid::Uuid::new_v4());
        let alone = Service::start(&other, &directory.path().join("others"));
        let undisturbed = alone.ended_at(&begin(&alone).await).await;
        assert_eq!(done["results"], undisturbed["results"]);
        alone.kill();
        service.kill();
    }
}
