//! Documents over HTTP: uploaded, cut into passages, audited as works.

use crate::calibrations::calibrated;
use crate::common::app::App;
use crate::common::client::Answer;
use serde_json::{Value, json};

/// A book of two chapters, with what every edition of Project Gutenberg has around it.
const BOOK: &str = "The Project Gutenberg eBook of Sand\n\n*** START OF THE PROJECT GUTENBERG EBOOK SAND ***\n\n\
    CHAPTER I.\n\nThe tide had gone out, and the boats lay on their sides.\n\nNobody had seen the keeper of the light since Friday.\n\n\
    CHAPTER II.\n\nA letter came. It had no stamp, and the ink had run.\n\n\
    *** END OF THE PROJECT GUTENBERG EBOOK SAND ***\n\nThis eBook is for the use of anyone anywhere.\n";

async fn upload(app: &App, query: &str, media: &str, body: &[u8]) -> Answer {
    app.post_bytes(&format!("/v1/datasets{query}"), Some(media), body.to_vec()).await
}

/// The dataset of an upload.
async fn stored(app: &App, query: &str, media: &str, body: &[u8]) -> Value {
    let answer = upload(app, query, media, body).await;
    assert_eq!(answer.status, 201, "{}", answer.text());
    answer.json()
}

fn form(parts: &[(&str, &str, &str)]) -> Vec<u8> {
    let part = |(name, media, content): &(&str, &str, &str)| {
        format!(
            "--XX\r\nContent-Disposition: form-data; name=\"file\"; filename=\"{name}\"\r\nContent-Type: {media}\r\n\r\n{content}\r\n"
        )
    };
    format!("{}--XX--\r\n", parts.iter().map(part).collect::<String>()).into_bytes()
}

/// The scores of an audit of a dataset, line by line.
async fn audited(app: &App, dataset: &Value) -> Vec<Value> {
    let audit = app.audit(&json!({ "dataset": dataset["id"], "methods": ["loss"], "overflow": "truncate" })).await.ok();
    let lines = app.get(&format!("/v1/audits/{}/scores", audit["id"].as_str().unwrap())).await;
    lines.text().lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_document_is_cut_into_passages_that_can_be_found_again() {
    let app = App::start().await;
    let dataset = stored(&app, "?cut=20&name=sand.txt", "text/plain; charset=utf-8", BOOK.as_bytes()).await;
    let cut = &dataset["cut"];
    assert_eq!((&cut["documents"], &cut["skipped"]), (&json!(1), &json!([])), "{dataset}");
    assert!(cut["dropped"]["gutenberg"]["words"].as_u64().unwrap() > 5, "{dataset}");
    assert_eq!((&dataset["samples"], &dataset["columns"]), (&cut["passages"], &json!(["offset", "length"])));
    let lines = audited(&app, &dataset).await;
    assert_eq!(lines.len() as u64, cut["passages"].as_u64().unwrap());
    assert!(lines.len() > 1 && lines.iter().all(|line| line["document"] == "sand.txt" && line["cluster"] == 0));
    let slice = |line: &Value| -> String {
        let [offset, length] = ["offset", "length"].map(|name| line["columns"][name].as_u64().unwrap() as usize);
        BOOK.chars().skip(offset).take(length).collect()
    };
    assert!(slice(&lines[0]).starts_with("CHAPTER I.\n\nThe tide"), "{}", slice(&lines[0]));
    // A form, and bytes without a type, are the same dataset.
    let media = "multipart/form-data; boundary=XX";
    for (media, body) in [(media, form(&[("sand.txt", "text/plain", BOOK)])), ("application/octet-stream", BOOK.into())]
    {
        let same = stored(&app, "?cut=20&name=sand.txt", media, &body).await;
        assert_eq!(same["id"], dataset["id"], "{media}");
    }
    let named = stored(&app, "?cut=20", media, &form(&[("sand.txt", "application/octet-stream", BOOK)])).await;
    assert_eq!(named["id"], dataset["id"]);
    let page =
        "<html><head><title>Sand</title></head><body><p>The tide had gone out.</p><script>x()</script></body></html>";
    let html = stored(&app, "", "text/html", page.as_bytes()).await;
    assert_eq!(html["samples"], 1);
    // Samples in a form are samples.
    let lines = "{\"text\": \"a b\"}\n{\"text\": \"c d\"}\n";
    let samples = stored(&app, "", media, &form(&[("lines.jsonl", "application/x-ndjson", lines)])).await;
    assert_eq!((&samples["samples"], samples.get("cut")), (&json!(2), None));
}

#[tokio::test(flavor = "multi_thread")]
async fn documents_that_cannot_be_read_are_refused() {
    let app = App::start().await;
    let form_media = "multipart/form-data; boundary=XX";
    let two = form(&[("a.txt", "text/plain", "one"), ("b.txt", "text/plain", "two")]);
    for (query, media, body, status, words) in [
        ("", "text/plain", &b"%PDF-1.7 binary"[..], 422, "pdftotext -layout"),
        ("", "text/plain", b"caf\xe9", 422, "not UTF-8"),
        ("", "text/plain", b"", 422, "is empty"),
        ("", "text/plain", b"--- 1 2 3 ---", 422, "is empty"),
        ("", "application/epub+zip", b"no archive", 422, "no ZIP file"),
        ("", "application/zip", b"PK\x03\x04broken", 422, "damaged"),
        ("?cut=0", "text/plain", b"a", 422, "1 to 100000 words"),
        ("?cut=4&overlap=4", "text/plain", b"a", 422, "overlap"),
        ("?cut=x", "text/plain", b"a", 422, "whole number"),
        ("?at=chapter", "text/plain", b"a", 422, "`paragraph`"),
        ("?name=a", "application/x-ndjson", b"{\"text\": \"a\"}", 422, "a file of samples"),
        ("", form_media, &two, 400, "another part"),
        ("", form_media, b"--XX--\r\n", 400, "no part"),
        ("", form_media, b"no form", 400, "form"),
        ("", "multipart/form-data", b"", 415, "boundary"),
        ("", "application/pdf", b"", 415, "pdftotext -layout"),
        ("", "image/png", b"", 415, "it may be"),
        ("?overlap=4", "text/plain", b"a", 422, "add `cut`"),
        ("?at=sentence", "application/x-ndjson", b"{\"text\": \"a\"}", 422, "add `cut`"),
    ] {
        let answer = upload(&app, query, media, body).await;
        assert_eq!(answer.status, status, "{media} {query}: {}", answer.text());
        assert!(answer.text().contains(words), "{media} {query}: {}", answer.text());
    }
    assert_eq!(app.get("/v1/datasets").await.ok()["datasets"], json!([]));
}

#[tokio::test(flavor = "multi_thread")]
async fn samples_are_cut_in_the_request() {
    let app = App::start().await;
    let text = "One two three. Four five six. Seven eight nine ten.";
    let cut = json!({ "words": 4, "at": "sentence" });
    let samples = json!([
        { "text": text, "id": "a", "label": 1, "columns": { "year": 1999 } },
        { "text": "Eleven twelve.", "label": 0, "document": "b" },
    ]);
    let audit = app.audit(&json!({ "samples": samples, "cut": cut, "methods": ["loss"] })).await.ok();
    let path = format!("/v1/audits/{}/scores", audit["id"].as_str().unwrap());
    let lines = app.get(&path).await;
    let lines: Vec<Value> = lines.text().lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let places: Vec<(&Value, &Value, &Value)> =
        lines.iter().map(|line| (&line["document"], &line["columns"]["offset"], &line["label"])).collect();
    let [zero, first, second, third] = [json!(0), json!(15), json!(30), json!("a")];
    let expected = [
        (&third, &zero, &json!(1)),
        (&third, &first, &json!(1)),
        (&third, &second, &json!(1)),
        (&json!("b"), &zero, &json!(0)),
    ];
    assert_eq!(places, expected);
    assert_eq!(lines[0]["columns"]["year"], 1999);
    for (body, pointer, words) in [
        (
            json!({ "samples": [{ "text": text, "context": "c" }], "cut": cut }),
            "/samples/0/context",
            "leave out either",
        ),
        (json!({ "samples": samples, "cut": { "words": 0 } }), "/cut", "1 to 100000"),
        (json!({ "samples": samples, "cut": { "words": 8, "overlap": 5 } }), "/cut", "more than half"),
        (
            json!({ "samples": [{ "text": text }, { "text": "1 2 3" }], "cut": cut }),
            "/samples/1/text",
            "no passage is left",
        ),
        (json!({ "samples": samples, "cut": { "word": 1 } }), "/cut", "unknown field"),
        (json!({ "dataset": "sha256:0", "cut": cut }), "/dataset", ""),
        (json!({ "samples": [{ "text": text, "label": 2 }], "cut": cut }), "/samples/0/label", "0 or 1"),
    ] {
        let problem = app.post("/v1/audits", &body).await.json();
        let error = &problem["errors"][0];
        let pointed =
            error["pointer"].as_str().is_some_and(|given| given.starts_with(pointer)) || problem["status"] == 404;
        assert!(pointed && problem.to_string().contains(words), "{problem}");
    }
}

/// The passages of a document, of 40 words each; no other range of numbers has these words.
fn passages(document: &str, words: std::ops::Range<usize>) -> Vec<Value> {
    let words: Vec<String> = words.map(|number| format!("w{number}")).collect();
    words.chunks(40).map(|text| json!({ "text": text.join(" "), "document": document })).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn text_that_known_works_share_is_left_out_whatever_the_cut() {
    let app = App::start().await;
    let mut known: Vec<Value> =
        (0..20).flat_map(|work| passages(&format!("known {work}"), work * 1_000..work * 1_000 + 320)).collect();
    // 24 words in a row of the book that is tested, at the end of a passage.
    let quotation = passages("", 50_130..50_154)[0]["text"].clone();
    let quoting = &mut known[5 * 8 + 1]["text"];
    *quoting = json!(format!("{} {}", quoting.as_str().unwrap(), quotation.as_str().unwrap()));
    let options = json!({ "methods": ["loss"], "overflow": "truncate" });
    let with = |samples: Vec<Value>| {
        let mut body = options.clone();
        body["samples"] = samples.into();
        body
    };
    let calibration = calibrated(&app, &with(known)).await;
    // The edition begins within a passage of the known work.
    let edition = passages("edition", 3_017..3_137);
    let mut body = with([edition, passages("book", 50_000..50_320)].concat());
    body["calibration"] = calibration["id"].clone();
    let audit = app.audit(&body).await.ok();
    let results = &audit["results"];
    let shared = &results["shared_text"];
    assert_eq!((&shared["state"], &shared["shortest_run"]), (&json!("checked"), &json!(20)), "{shared}");
    let left_out = &shared["left_out"][0];
    assert_eq!((&shared["works"], &left_out["document"]), (&json!(1), &json!("known 3")), "{shared}");
    assert!(left_out["with"] == "edition" && left_out["longest_run"].as_u64().unwrap() > 60, "{left_out}");
    assert_eq!((&shared["known_passages"], &shared["tested_passages"]), (&json!(1), &json!(1)));
    assert_eq!(results["methods"][0]["calibration"]["clusters"], 19);
    let counted: Vec<(&Value, &Value)> =
        results["works"].as_array().unwrap().iter().map(|work| (&work["document"], &work["passages"])).collect();
    assert_eq!(counted, [(&json!("edition"), &json!(3)), (&json!("book"), &json!(7))]);
    let warnings = results["warnings"].to_string();
    assert!(warnings.contains("1 known work shares text with the works tested and is left out (known 3"), "{warnings}");
    let forecast = &audit["progress"]["forecast"];
    let expected = [
        ("works", json!(2)),
        ("known_works", json!(19)),
        ("smallest_p", json!(0.05)),
        ("known_works_needed", json!(99)),
    ];
    assert!(expected.iter().all(|(name, value)| forecast[name] == *value), "{forecast}");
    assert!(forecast["estimated_tokens"].as_u64().unwrap() > 500, "{forecast}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_cut_of_samples_says_what_it_leaves_out() {
    let app = App::start().await;
    let lines = "{\"text\": \"One two three. 1 2 3 4. One two three.\"}\n{\"text\": \"Four five.\"}\n";
    let dataset = stored(&app, "?cut=4&at=sentence", "application/x-ndjson", lines.as_bytes()).await;
    let cut = &dataset["cut"];
    assert_eq!((&cut["documents"], &cut["passages"], &dataset["samples"]), (&json!(2), &json!(2), &json!(2)), "{cut}");
    let pieces = ["symbols", "repeated", "gutenberg"].map(|kind| cut["dropped"][kind]["pieces"].as_u64().unwrap());
    assert_eq!(pieces, [1, 1, 0], "{cut}");
}
