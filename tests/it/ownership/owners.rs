//! The operations of the committed document, and clients who own something of every kind that it knows.

use crate::common::app::App;
use crate::common::client::{Client, send};
use crate::common::keys::{Keys, SCORING};
use pdr_audit::access::{ClientLimits, KeyScope};
use reqwest::Method;
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};

const ADMINISTRATION: &[KeyScope] = &[KeyScope::Score, KeyScope::Audit, KeyScope::Admin];

/// An operation of the document.
pub struct Operation {
    pub method: Method,
    pub path: String,
    /// The part of the path after `/v1/`, which is what jobs of a kind are listed under.
    pub collection: String,
    /// True if it requires the scope `admin`.
    pub is_administrative: bool,
    /// Of the JSON body, by name.
    pub fields: BTreeSet<String>,
}

impl Operation {
    /// True if its path names something that has an owner. Models have none.
    pub fn names_property(&self) -> bool {
        self.path.contains('{') && self.collection != "models"
    }

    /// Its path with one's own in every place.
    pub fn own_path(&self, own: &str) -> String {
        let part = |part| if is_place(part) { own } else { part };
        self.path.split('/').map(part).collect::<Vec<_>>().join("/")
    }

    /// Its paths with something foreign in one place, and one's own in the others.
    pub fn foreign_paths(&self, foreign: &str, own: &str) -> Vec<String> {
        let parts: Vec<&str> = self.path.split('/').collect();
        let path = |place: usize| {
            let part = |(at, part)| match is_place(part) {
                true if at == place => foreign,
                true => own,
                false => part,
            };
            parts.iter().copied().enumerate().map(part).collect::<Vec<_>>().join("/")
        };
        (0..parts.len()).filter(|&place| is_place(parts[place])).map(path).collect()
    }
}

fn is_place(part: &str) -> bool {
    part.starts_with('{')
}

/// All operations under `/v1`, those that delete at the end.
pub fn operations() -> Vec<Operation> {
    let document: Value = serde_json::from_str(include_str!("../../../openapi/openapi.json")).unwrap();
    let mut operations = Vec::new();
    for (path, item) in document["paths"].as_object().unwrap() {
        let Some(collection) = path.strip_prefix("/v1/").and_then(|rest| rest.split('/').next()) else { continue };
        for (method, operation) in item.as_object().unwrap() {
            let schema = operation["requestBody"]["content"]["application/json"]["schema"]["$ref"].as_str();
            let schema = schema.and_then(|schema| document.pointer(schema.trim_start_matches('#')));
            let fields = schema.and_then(|schema| schema["properties"].as_object());
            let scopes = operation["security"].as_array().into_iter().flatten().find_map(|one| one["key"].as_array());
            operations.push(Operation {
                method: method.to_uppercase().parse().unwrap(),
                path: path.clone(),
                collection: collection.to_owned(),
                is_administrative: scopes.expect("the scopes of a route").contains(&json!("admin")),
                fields: fields.into_iter().flat_map(|fields| fields.keys().cloned()).collect(),
            });
        }
    }
    operations.sort_by_key(|operation| operation.method == Method::DELETE);
    operations
}

/// An id that no entry of a collection has.
pub fn unknown(collection: &str) -> String {
    match collection {
        "datasets" => format!("sha256:{}", "0".repeat(64)),
        _ => "01a20295-b1f8-7331-b7f3-b1ed78fe0ef8".to_owned(),
    }
}

/// `count` texts that nobody else has.
fn texts(owner: &str, count: usize) -> Vec<String> {
    (0..count).map(|number| format!("Text number {number} belongs to {owner}, and so does the next.")).collect()
}

fn unlabelled(owner: &str, count: usize) -> Vec<Value> {
    texts(owner, count).iter().map(|text| json!({ "text": text })).collect()
}

fn labelled(owner: &str, count: usize) -> Vec<Value> {
    texts(owner, count).iter().enumerate().map(|(at, text)| json!({ "text": text, "label": at % 2 })).collect()
}

/// A job of each kind.
fn job(collection: &str, owner: &str) -> Value {
    match collection {
        "audits" => json!({ "samples": labelled(owner, 8), "methods": ["loss"], "control": null }),
        "calibrations" => json!({ "samples": unlabelled(owner, 24), "methods": ["loss"] }),
        "tests" => {
            let texts = texts(owner, 3);
            json!({ "kind": "rank", "canaries": [{ "text": texts[0], "twins": texts[1..] }], "methods": ["loss"] })
        }
        "memorization" => json!({ "texts": texts(owner, 1), "prefix": 4, "suffix": 2, "stride": 2 }),
        "finetunes" => json!({ "name": "shared", "samples": unlabelled(owner, 16), "lora": { "rank": 2 },
            "optimizer": { "epochs": 1, "warmup_steps": 1 } }),
        other => panic!("what is in `{other}` has no owner in this test"),
    }
}

/// Makes something in a collection; its id.
async fn make(client: &Client, collection: &str, owner: &str) -> String {
    let path = format!("/v1/{collection}");
    let made = if collection == "datasets" {
        let lines: String = labelled(owner, 8).iter().map(|sample| format!("{sample}\n")).collect();
        client.post_bytes(&path, Some("application/x-ndjson"), lines.into_bytes()).await.json()
    } else {
        let request = client.request(Method::POST, &path).header("prefer", "wait=60").json(&job(collection, owner));
        let done = send(request).await.ok();
        assert_eq!(done["status"], "succeeded", "{collection}: {done}");
        done
    };
    made["id"].as_str().expect("an id").to_owned()
}

/// By collection, the id of what somebody owns there.
pub type Property = BTreeMap<String, String>;

/// A service with two clients who own something in every collection, but where that takes an administrator, who owns it then.
pub struct Owners {
    pub app: App,
    /// Its directory has the record of the service.
    _keys: Keys,
    pub alice: Client,
    pub bob: Client,
    pub administrator: Client,
    /// Another one.
    pub deputy: Client,
    pub of_alice: Property,
    pub of_bob: Property,
    pub of_administrator: Property,
}

impl Owners {
    pub async fn new() -> Self {
        let mut keys = Keys::new();
        let [alice, bob] = ["alice", "bob"].map(|name| keys.add(name, SCORING, ClientLimits::default()));
        let [root, deputy] = ["root", "deputy"].map(|name| keys.add(name, ADMINISTRATION, ClientLimits::default()));
        let app = keys.app().await;
        let [alice, bob, administrator, deputy] = [alice, bob, root, deputy].map(|key| app.with_key(&key));
        let [mut of_alice, mut of_bob, mut of_administrator] = [const { Property::new() }; 3];
        for operation in operations().iter().filter(|operation| operation.names_property()) {
            let collection = &operation.collection;
            // Older entries come later in lists.
            let owners = match operation.is_administrative {
                true => vec![(&mut of_administrator, &administrator, "root")],
                false => vec![(&mut of_bob, &bob, "bob"), (&mut of_alice, &alice, "alice")],
            };
            for (property, client, owner) in owners {
                if !property.contains_key(collection) {
                    property.insert(collection.clone(), make(client, collection, owner).await);
                }
            }
        }
        assert!(of_alice.len() >= 5 && of_alice.len() == of_bob.len() && !of_administrator.is_empty(), "{of_alice:?}");
        Self { app, _keys: keys, alice, bob, administrator, deputy, of_alice, of_bob, of_administrator }
    }

    /// Everything that alice owns, as it stands.
    pub async fn all_of_alice(&self) -> Vec<Value> {
        let mut found = Vec::new();
        for (collection, id) in &self.of_alice {
            found.push(self.alice.get(&format!("/v1/{collection}/{id}")).await.ok());
        }
        found
    }
}
