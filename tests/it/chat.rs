//! Conversations in place of texts, over HTTP and on the command line.

use crate::common::app::{App, TINY, golden};
use crate::common::goldens::directory;
use pdr_audit::config::{ModelSettings, ModelSource, Settings};
use serde_json::{Value, json};
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use tempfile::TempDir;

/// The id of the model with a template.
const CHAT: &str = "chat";

/// The template begins with the token that the tokenizer adds itself.
const TEMPLATE: &str = "{{ bos_token }}{% for m in messages %}{% if m.role == 'tool' %}{{ raise_exception('no tools') }}{% endif %}<{{ m.role }}>\
                        {{ m.content | trim }}</{{ m.role }}>{% endfor %}{% if add_generation_prompt %}<assistant>{% endif %}";

/// A model whose tokenizer adds a token before each text, with the template.
fn chat_model(folder: &Path) -> PathBuf {
    let model = folder.join("model");
    std::fs::create_dir(&model).unwrap();
    for name in ["config.json", "model.safetensors", "tokenizer.json", "tokenizer_config.json"] {
        std::fs::copy(directory("llama-gqa").join(name), model.join(name)).unwrap();
    }
    std::fs::write(model.join("chat_template.jinja"), TEMPLATE).unwrap();
    model
}

fn with_chat(folder: &Path) -> impl FnOnce(&mut Settings) {
    let path = chat_model(folder);
    let source = ModelSource { text: path.display().to_string(), path };
    let chat = ModelSettings { source, ..golden(CHAT, "llama-gqa") };
    let masked = golden("masked", "bert-mlm");
    move |settings| settings.models.extend([chat, masked])
}

fn talk(question: &str, answer: &str) -> Value {
    json!([{ "role": "user", "content": question }, { "role": "assistant", "content": answer }])
}

/// The conversation as a client would render it.
fn text(question: &str, answer: &str) -> Value {
    let before = format!("<s><user>{question}</user><assistant>");
    let (start, length) = (before.chars().count(), answer.chars().count());
    json!({ "text": format!("{before}{answer}</assistant>"), "spans": [[start, start + length]] })
}

#[tokio::test(flavor = "multi_thread")]
async fn a_conversation_scores_as_its_text_with_spans() {
    let folder = TempDir::new().unwrap();
    let app = App::with(with_chat(folder.path())).await;
    let parts = json!([
        { "role": "user", "content": [{ "type": "text", "text": "Wh" }, { "type": "text", "text": "y?" }] },
        { "role": "assistant", "content": "  Because of the rain. \n" }
    ]);
    let inputs = json!([
        { "id": "a", "messages": talk("Why?", "Because of the rain.") },
        text("Why?", "Because of the rain."),
        { "messages": parts },
        "Because of the rain."
    ]);
    let request = json!({ "model": CHAT, "inputs": inputs, "methods": ["loss", "zlib"], "details": ["tokens"] });
    let answer = app.score(&request).await;
    let [chat, text, parts, alone] = [0, 1, 2, 3].map(|index| answer["results"][index].clone());
    assert_eq!(chat["id"], "a");
    assert_eq!((&chat["scores"], &chat["tokens"]), (&text["scores"], &text["tokens"]));
    assert_eq!(parts["scores"], text["scores"]);
    assert!(chat["scores"]["loss"].is_f64() && chat["scores"] != alone["scores"], "{answer}");
    // The first token is there once, though both the template and the tokenizer bring it.
    assert_eq!((&chat["bos_prepended"], &alone["bos_prepended"]), (&json!(true), &json!(true)));
    let ids: Vec<&Value> = chat["tokens"].as_array().unwrap().iter().map(|token| &token["id"]).collect();
    assert!(ids[0] == &alone["tokens"][0]["id"] && ids[1] != ids[0], "{ids:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn audits_and_datasets_keep_the_text_alone() {
    let folder = TempDir::new().unwrap();
    let app = App::with(with_chat(folder.path())).await;
    let answers = ["It rained all day.", "Nobody knows.", "The bridge was closed.", "She wrote it down."];
    let samples = |conversation: bool| -> Vec<Value> {
        let numbered = answers.iter().enumerate();
        let sample = |(index, answer): (usize, &&str)| {
            let mut sample =
                if conversation { json!({ "messages": talk("Why?", answer) }) } else { text("Why?", answer) };
            sample["label"] = json!(index % 2);
            sample
        };
        numbered.map(sample).collect()
    };
    let request =
        |conversation| json!({ "model": CHAT, "samples": samples(conversation), "methods": ["loss"], "control": null });
    let plan = async |conversation| app.post("/v1/plans", &request(conversation)).await.json()["id"].clone();
    assert_eq!(plan(true).await, plan(false).await);
    let audit = app.audit(&request(true)).await.ok();
    let expected = app.audit(&request(false)).await.ok();
    assert_eq!(audit["results"]["methods"], expected["results"]["methods"]);
    let lines: String = samples(true).iter().map(|sample| format!("{sample}\n")).collect();
    let upload = async |query: &str, lines: &str| {
        let path = format!("/v1/datasets{query}");
        app.post_bytes(&path, Some("application/x-ndjson"), lines.as_bytes().to_vec()).await
    };
    let dataset = upload("?chat_template=chat", &lines).await.json();
    let texts: String = samples(false).iter().map(|sample| format!("{sample}\n")).collect();
    assert_eq!(dataset["id"], upload("", &texts).await.json()["id"], "{dataset}");
    for (query, lines, words) in [
        (
            "",
            lines.as_str(),
            "line 1: `messages`: a conversation is rendered by the chat template of a model; name one as `chat_template`",
        ),
        (
            "?chat_template=tiny",
            &lines,
            "query parameter `chat_template`: model `tiny`: the tokenizer has no chat template",
        ),
        ("?chat_template=masked", &lines, "query parameter `chat_template`: model `masked` is a masked model"),
        ("?chat_template=chat&cut=8", &lines, "`messages`: it belongs to the whole text"),
        (
            "?chat_template=chat",
            "{\"messages\": [{\"role\": 7}], \"label\": 1}",
            "line 1: `messages[0].role`: invalid type",
        ),
        ("?chat_template=chat", "{\"messages\": [], \"text\": \"a\"}", "line 1: both `messages` and `text`"),
    ] {
        let problem = upload(query, lines).await.problem(422);
        assert!(problem["detail"].as_str().unwrap().contains(words), "{query}: {problem}");
    }
    assert_eq!(upload("?chat_template=none", &lines).await.status, 404);
    // Jobs on whole texts refuse the spans, and requests without a template refuse the conversation.
    let tuned = json!({ "model": CHAT, "name": "a", "dataset": dataset["id"] });
    let problem = app.post("/v1/finetunes", &tuned).await.problem(422);
    assert!(problem.to_string().contains("have `context` or `spans`"), "{problem}");
    let tuned = json!({ "model": CHAT, "name": "a", "samples": samples(true) });
    let problem = app.post("/v1/finetunes", &tuned).await.problem(422);
    assert_eq!(problem["errors"][0]["pointer"], "/samples/0/messages", "{problem}");
    let works = json!({ "model": CHAT, "dataset": dataset["id"] });
    let problem = app.post("/v1/memorization", &works).await.problem(422);
    assert!(problem.to_string().contains("`spans`"), "{problem}");
}

#[tokio::test(flavor = "multi_thread")]
async fn faults_have_their_pointer() {
    let folder = TempDir::new().unwrap();
    let app = App::with(with_chat(folder.path())).await;
    let said = talk("a", "b");
    let with = |name: &str, value: Value| {
        let mut input = json!({ "messages": said });
        input[name] = value;
        input
    };
    let many = vec![json!({ "role": "user", "content": "a" }); 10_000];
    for (input, pointer, words) in [
        (with("text", json!("a")), "/text", "there are `messages` as well"),
        (with("context", json!("a")), "/context", "there are `messages` as well"),
        (with("spans", json!([[0, 1]])), "/spans", "there are `messages` as well"),
        (json!({ "messages": [] }), "/messages", "the list of messages is empty"),
        (json!({ "messages": many }), "/messages", "at most 256"),
        (json!({ "messages": [{ "role": 1, "content": "a" }] }), "/messages/0/role", "expected a string"),
        (json!({ "messages": [{ "role": "assistant", "content": null }] }), "/messages/0/content", "only calls tools"),
        (
            json!({ "messages": [{ "role": "user", "content": "a" }] }),
            "/messages",
            "no message of the role `assistant`",
        ),
        (
            json!({ "messages": [{ "role": "tool", "content": "a" }, said[1]] }),
            "/messages",
            "refuses the conversation: no tools",
        ),
        (
            json!({ "messages": [{ "role": "assistant", "content": "a".repeat(2 << 20) }] }),
            "/messages",
            "`limits.text`",
        ),
        (json!({ "id": "a" }), "", "missing field `text`"),
        (json!({ "messages": null }), "", "missing field `text`"),
    ] {
        for (route, field) in [("/v1/score", "inputs"), ("/v1/audits", "samples")] {
            let problem = app.post(route, &json!({ "model": CHAT, field: [input] })).await.problem(422);
            let error = &problem["errors"][0];
            assert_eq!(error["pointer"], format!("/{field}/0{pointer}"), "{problem}");
            assert!(error["detail"].as_str().unwrap().contains(words), "{problem}");
        }
    }
    for (model, words) in [(TINY, "has no chat template: neither a file"), ("masked", "is a masked model")] {
        let problem =
            app.post("/v1/score", &json!({ "model": model, "inputs": [{ "messages": said }] })).await.problem(422);
        assert_eq!(problem["errors"][0]["pointer"], "/model", "{problem}");
        assert!(problem["errors"][0]["detail"].as_str().unwrap().contains(words), "{problem}");
    }
    let cut = json!({ "model": CHAT, "samples": [{ "messages": said }], "cut": {} });
    let problem = app.post("/v1/audits", &cut).await.problem(422);
    assert_eq!(problem["errors"][0]["pointer"], "/samples/0/messages", "{problem}");
    let nul = app
        .score(&json!({ "model": CHAT, "inputs": [{ "messages": talk("a\0", "b\0c d e") }], "methods": ["loss"] }))
        .await;
    assert!(nul["results"][0]["scores"]["loss"].is_f64(), "{nul}");
    app.assert_nothing_is_left().await;
}

#[test]
fn files_of_conversations_are_read_as_texts_with_spans() {
    let folder = TempDir::new().unwrap();
    let (model, file) = (chat_model(folder.path()), folder.path().join("chats.jsonl"));
    let model = model.to_str().unwrap();
    let lines = [
        json!({ "id": 7, "messages": talk("Why?", "Because of the rain."), "label": 1 }),
        json!({ "id": 8, "messages": [], "label": 0 }),
    ];
    std::fs::write(&file, format!("{}\n{}\n", lines[0], lines[1])).unwrap();
    let file = file.to_str().unwrap();
    let scored = run(&["score", file, "--model", model, "--methods", "loss"]);
    let rows: Vec<Value> = scored.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert!(rows[0]["id"] == 7 && rows[0]["scores"]["loss"].is_f64() && rows[0].get("messages").is_none(), "{scored}");
    assert_eq!((&rows[1]["id"], &rows[1]["errors"][0]["code"]), (&json!(8), &json!("invalid_line")));
    assert!(
        rows[1]["errors"][0]["detail"].as_str().unwrap().contains("line 2: `messages`: the list of messages is empty")
    );
    let texts = folder.path().join("one.jsonl");
    std::fs::write(&texts, format!("{}\n", lines[0])).unwrap();
    let texts = texts.to_str().unwrap();
    let written: Value = serde_json::from_str(&run(&["dataset", texts, "--chat-template", model])).unwrap();
    let expected = text("Why?", "Because of the rain.");
    assert_eq!((&written["text"], &written["spans"]), (&expected["text"], &expected["spans"]), "{written}");
    let refused = failed(&["dataset", texts]);
    assert!(
        refused.contains("line 1: `messages`: a conversation is rendered by the chat template of a model"),
        "{refused}"
    );
    let refused = failed(&["score", texts, "--model", directory("qwen2").to_str().unwrap(), "--methods", "loss"]);
    assert!(refused.contains("has no chat template"), "{refused}");
}

fn output(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_pdr-audit")).args(arguments).output().unwrap()
}

/// Standard output of a command that succeeds.
fn run(arguments: &[&str]) -> String {
    let output = output(arguments);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

/// Standard error of a command that fails.
fn failed(arguments: &[&str]) -> String {
    let output = output(arguments);
    assert!(!output.status.success());
    String::from_utf8(output.stderr).unwrap()
}
