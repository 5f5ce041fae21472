//! The methods of models that run elsewhere, as the table in `docs/served.md` has them.

use super::fake_echo::EchoManners;
use super::fake_server::{FakeServer, NAME};
use super::{FRONT, served};
use crate::common::app::{App, GOLDEN, TINY};
use pdr_audit::config::ServedKind;
use serde_json::Value;
use std::collections::BTreeMap;

const DOCUMENT: &str = include_str!("../../../docs/served.md");
const HEADING: &str = "| methods and weightings | ";

/// Why each method and each weighting is not to be had, by its name; what is to be had has no reason.
type Lacks = BTreeMap<String, Option<String>>;

/// The table, by column.
fn documented() -> Vec<Lacks> {
    let (_, table) = DOCUMENT.split_once(HEADING).unwrap();
    let rows = table.lines().skip(2).take_while(|line| line.starts_with('|'));
    let mut columns: Vec<Lacks> = Vec::new();
    for row in rows {
        let cells: Vec<&str> = row.trim_matches('|').split('|').map(str::trim).collect();
        columns.resize(cells.len() - 1, Lacks::new());
        for name in cells[0].split([',', ';']).map(|name| name.trim().trim_matches('`')) {
            for (column, cell) in columns.iter_mut().zip(&cells[1..]) {
                let lack = (*cell != "yes").then(|| format!("it {cell},"));
                assert!(column.insert(name.to_owned(), lack).is_none(), "{name} is listed twice");
            }
        }
    }
    columns
}

/// What the service says of a model; a reason up to its first comma.
async fn said(app: &App, model: &str) -> Lacks {
    let catalogue = app.get(&format!("/v1/methods?model={model}")).await.ok();
    let entries = ["methods", "decays"].map(|list| catalogue[list].as_array().unwrap().clone()).concat();
    let lack = |entry: &Value| {
        entry["unavailable"].as_str().and_then(|said| said.split_inclusive(',').next()).map(str::to_owned)
    };
    entries.iter().map(|entry| (entry["name"].as_str().unwrap().to_owned(), lack(entry))).collect()
}

async fn front(kind: ServedKind, best: usize, moments: bool, top_logprobs: bool) -> App {
    let server = FakeServer::of(GOLDEN).await;
    {
        let mut state = server.state.lock().unwrap();
        (state.plugin, state.echo) = (true, EchoManners { best, ..EchoManners::default() });
    }
    App::with(|settings| {
        served(settings, kind, NAME, GOLDEN, &[server.url()]);
        let settings = settings.models[0].served.as_mut().unwrap();
        (settings.moments, settings.top_logprobs) = (moments, top_logprobs);
    })
    .await
}

#[tokio::test(flavor = "multi_thread")]
async fn the_documented_methods_are_those_that_the_service_has() {
    let columns = documented();
    let [here, with_plugin, ids_alone, echo, without_best] = columns.as_slice() else {
        panic!("{} columns", columns.len())
    };
    assert_eq!(&said(&App::start().await, TINY).await, here);
    let served = [
        (ServedKind::Vllm, 1, true, true, with_plugin),
        (ServedKind::Vllm, 1, false, true, ids_alone),
        (ServedKind::Sglang, 1, false, true, ids_alone),
        (ServedKind::Openai, 1, false, true, echo),
        (ServedKind::Openai, 0, false, false, without_best),
    ];
    for (kind, best, moments, top_logprobs, column) in served {
        let front = front(kind, best, moments, top_logprobs).await;
        assert_eq!(&said(&front, FRONT).await, column);
    }
}
