//! Conversations against transformers: texts byte for byte, spans and ids.

use crate::common::goldens::directory;
use lm::chat::{ChatError, ChatMessages, ChatTemplate};
use lm::tokenizer::from_files;
use serde::Deserialize;
use std::collections::BTreeMap;
use std::path::Path;

#[derive(Deserialize)]
struct Fixture {
    conversations: BTreeMap<String, ChatMessages>,
    expected: Vec<ExpectedChats>,
}

#[derive(Deserialize)]
struct ExpectedChats {
    template: String,
    tokenizer: String,
    cases: Vec<ExpectedChat>,
}

#[derive(Deserialize)]
struct ExpectedChat {
    name: String,
    error: Option<String>,
    #[serde(default)]
    text: String,
    #[serde(default)]
    spans: Vec<[usize; 2]>,
    #[serde(default)]
    ids: Vec<u32>,
}

#[test]
fn conversations_are_rendered_as_transformers_does() {
    let fixture = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/fixtures/chat");
    let Fixture { conversations, expected } =
        serde_json::from_slice(&std::fs::read(fixture.join("expected.json")).unwrap()).unwrap();
    let mut with_bos = 0;
    for ExpectedChats { template: name, tokenizer, cases } in expected {
        let find = |file: &'static str| -> anyhow::Result<Option<Vec<u8>>> {
            let path = match file {
                "chat_template.jinja" => fixture.join(format!("templates/{name}.jinja")),
                file => directory(&tokenizer).join(file),
            };
            Ok(if path.exists() { Some(std::fs::read(path)?) } else { None })
        };
        let template = ChatTemplate::from_files(find).unwrap_or_else(|error| panic!("{name}: {error}"));
        let tokenizer = from_files(find).unwrap().0;
        for case in cases {
            let (rendered, place) =
                (template.render(&conversations[&case.name], 1 << 20), format!("{name}, {}", case.name));
            if let Some(raised) = case.error {
                assert_eq!(rendered, Err(ChatError::Raised(raised)), "{place}");
                continue;
            }
            let rendered = rendered.unwrap_or_else(|error| panic!("{place}: {error}"));
            assert_eq!((rendered.text.as_str(), rendered.spans), (case.text.as_str(), case.spans), "{place}");
            let encoded = tokenizer.encode_chat(&rendered.text).unwrap();
            let adds = tokenizer.encode("a").unwrap().specials_before;
            with_bos += usize::from(adds > 0);
            assert_eq!(encoded.ids[..], case.ids[..], "{place}");
            assert_eq!(encoded.specials_before, adds, "{place}");
        }
    }
    assert!(with_bos > 10, "only {with_bos} texts begin with what the tokenizer adds itself");
}
