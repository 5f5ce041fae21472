//! Ownership: a job or a dataset of one key does not exist for another, by whatever route. The routes are those of the
//! committed document, so that a new one without the check fails here, and so does a new kind of job that has none here.

mod owners;

use crate::common::client::{Answer, Client, send};
use crate::common::keys::clients;
use owners::{Operation, Owners, operations, unknown};
use reqwest::Method;
use serde_json::{Value, json};

async fn ask(client: &Client, method: &Method, path: &str) -> Answer {
    send(client.request(method.clone(), path).header("x-request-id", "the-same")).await
}

/// All that an answer tells, but for the id that was asked for, the time, and the trace that begins with the request.
fn told(answer: &Answer, id: &str) -> (u16, Vec<(String, String)>, String) {
    let headers = answer.headers.iter().filter(|(name, _)| *name != "date" && *name != "traceparent");
    let headers = headers.map(|(name, value)| (name.to_string(), value.to_str().unwrap().to_owned()));
    (answer.status, headers.collect(), answer.text().replace(id, "ID"))
}

#[tokio::test(flavor = "multi_thread")]
async fn no_route_tells_what_is_anothers_from_what_is_not_there() {
    let owners = Owners::new().await;
    let before = owners.all_of_alice().await;
    for operation in operations().iter().filter(|operation| operation.names_property()) {
        let Operation { method, path, collection, is_administrative, .. } = operation;
        let unknown = unknown(collection);
        // Of what takes an administrator, bob has none; the administrators see what is each other's.
        let (foreign, own, refused, (client, theirs)) = match is_administrative {
            true => {
                let id = &owners.of_administrator[collection];
                (id, &unknown, 403, (&owners.deputy, id))
            }
            false => {
                let own = &owners.of_bob[collection];
                (&owners.of_alice[collection], own, 404, (&owners.bob, own))
            }
        };
        let paths = operation.foreign_paths(foreign, own);
        for (foreign_path, unknown_path) in paths.iter().zip(operation.foreign_paths(&unknown, own)) {
            let there = ask(&owners.bob, method, foreign_path).await;
            let not_there = ask(&owners.bob, method, &unknown_path).await;
            there.problem(refused);
            assert_eq!(told(&there, foreign), told(&not_there, &unknown), "{method} {path}");
        }
        // It is there for whom it is there.
        let answer = ask(client, method, &operation.own_path(theirs)).await;
        assert!([200, 204, 409].contains(&answer.status), "{method} {path}: {}", answer.text());
    }
    assert_eq!(owners.all_of_alice().await, before);
}

#[tokio::test(flavor = "multi_thread")]
async fn lists_have_ones_own_alone() {
    let owners = Owners::new().await;
    let listed = async |client: &Client, path: &str| {
        let page = client.get(path).await.ok();
        let (_, list) = page.as_object().unwrap().iter().find(|(_, value)| value.is_array()).expect("a list");
        let ids: Vec<String> =
            list.as_array().unwrap().iter().map(|entry| entry["id"].as_str().unwrap().to_owned()).collect();
        (ids, page.get("next").is_some())
    };
    let mut lists = 0;
    for Operation { path, collection, is_administrative, .. } in
        operations().iter().filter(|operation| operation.method == Method::GET && !operation.path.contains('{'))
    {
        let (alice, bob) = match (owners.of_alice.get(collection), owners.of_bob.get(collection)) {
            (Some(alice), Some(bob)) => (alice.clone(), bob.clone()),
            // A list for administrators, or one of things without an owner.
            _ => {
                let known = owners.of_administrator.get(collection);
                assert_eq!(known.is_some(), *is_administrative, "`{path}` lists what has no owner in this test");
                if let Some(id) = known {
                    owners.bob.get(path).await.problem(403);
                    assert_eq!(listed(&owners.deputy, path).await.0, std::slice::from_ref(id));
                    lists += 1;
                }
                continue;
            }
        };
        lists += 1;
        assert_eq!(listed(&owners.alice, path).await, (vec![alice.clone()], false), "{path}");
        assert_eq!(listed(&owners.bob, path).await, (vec![bob.clone()], false), "{path}");
        assert_eq!(listed(&owners.administrator, path).await, (vec![alice, bob.clone()], false), "{path}");
        // Entries of others take no place in a page, and do not follow it.
        let page = format!("{path}?limit=1");
        assert_eq!(listed(&owners.bob, &page).await, (vec![bob], false), "{page}");
        assert!(listed(&owners.administrator, &page).await.1, "{page}");
    }
    assert_eq!(lists, owners.of_alice.len() + owners.of_administrator.len());
}

#[tokio::test(flavor = "multi_thread")]
async fn an_administrator_sees_all_and_deletes_no_datasets_of_others() {
    let owners = Owners::new().await;
    for (collection, id) in &owners.of_alice {
        let path = format!("/v1/{collection}/{id}");
        assert_eq!(owners.administrator.get(&path).await.ok()["owner"], "alice", "{collection}");
        assert!(owners.alice.get(&path).await.ok().get("owner").is_none(), "{collection}");
        // Hers is the newest.
        let page = owners.administrator.get(&format!("/v1/{collection}?limit=1")).await.ok();
        let list = page.as_object().unwrap().values().find_map(Value::as_array).expect("a list");
        assert_eq!(list[0]["owner"], "alice", "{collection}");
    }
    for (collection, id) in &owners.of_administrator {
        let job = owners.deputy.get(&format!("/v1/{collection}/{id}")).await.ok();
        assert_eq!(job["owner"], "root", "{collection}");
    }
    for operation in operations().iter().filter(|operation| operation.names_property()) {
        let Operation { method, path, collection, .. } = operation;
        let Some(id) = owners.of_alice.get(collection) else { continue };
        let expected = match (method.as_str(), collection.as_str()) {
            ("GET", _) => 200,
            // It has ended.
            ("POST", _) => 409,
            ("DELETE", "datasets") => 404,
            ("DELETE", _) => 204,
            _ => panic!("{method} {path}"),
        };
        let answer = ask(&owners.administrator, method, &operation.own_path(id)).await;
        assert_eq!(answer.status, expected, "{method} {path}: {}", answer.text());
    }
    for (collection, id) in &owners.of_alice {
        let expected = if collection == "datasets" { 200 } else { 404 };
        assert_eq!(owners.alice.get(&format!("/v1/{collection}/{id}")).await.status, expected, "{collection}");
    }
    // An adapter has no owner: whoever scores may name it, and who tunes none may not delete it.
    for client in [&owners.alice, &owners.bob] {
        let scored = client.score(&json!({ "model": "tiny:shared", "inputs": "A text.", "methods": ["loss"] })).await;
        assert_eq!(scored["model"]["id"], "tiny:shared");
        client.delete("/v1/models/tiny/adapters/shared").await.problem(403);
    }
    owners.app.get("/v1/models").await.problem(401);
}

/// A body of each route, but for what it names.
fn naming(path: &str, field: &str) -> Value {
    match (path, field) {
        ("/v1/score", _) => json!({ "inputs": "A text.", "methods": ["loss"] }),
        ("/v1/audits" | "/v1/plans", "dataset") => json!({ "methods": ["loss"], "control": null }),
        ("/v1/audits" | "/v1/plans", _) => json!({ "samples": [{ "text": "A text." }], "methods": ["loss"] }),
        ("/v1/calibrations", _) => json!({ "methods": ["loss"] }),
        ("/v1/tests", _) => json!({ "kind": "dataset", "methods": ["loss"], "control": null }),
        ("/v1/memorization", _) => json!({ "prefix": 4, "suffix": 2, "stride": 2 }),
        ("/v1/finetunes", _) => json!({ "name": "other" }),
        _ => panic!("`{path}` names a {field} in no body of this test"),
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_another_key_owns_cannot_be_named() {
    let owners = Owners::new().await;
    let mut named = 0;
    for Operation { path, is_administrative, fields, .. } in
        operations().iter().filter(|operation| operation.method == Method::POST)
    {
        for (field, collection) in [("dataset", "datasets"), ("calibration", "calibrations")] {
            if !fields.contains(field) {
                continue;
            }
            named += 1;
            let post = async |client: &Client, id: &str| {
                let mut body = naming(path, field);
                body[field] = json!(id);
                send(client.request(Method::POST, path).header("x-request-id", "the-same").json(&body)).await
            };
            let (id, unknown) = (&owners.of_alice[collection], unknown(collection));
            let owner = if *is_administrative { &owners.deputy } else { &owners.alice };
            // The owner first: what is at hand afterwards is at hand for the owner alone. An administrator sees all.
            for client in [owner, &owners.administrator] {
                let answer = post(client, id).await;
                // It does not matter here whether it fits.
                assert!([200, 201, 202, 409, 422].contains(&answer.status), "{path} {field}: {}", answer.text());
            }
            let (there, not_there) = (post(&owners.bob, id).await, post(&owners.bob, &unknown).await);
            there.problem(if *is_administrative { 403 } else { 404 });
            assert_eq!(told(&there, id), told(&not_there, &unknown), "{path} {field}");
        }
    }
    assert!(named >= 7, "{named}");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_unfinished_job_of_another_key_runs_on() {
    let (_keys, _app, [alice, bob]) = clients(["alice", "bob"]).await;
    // None of them is cached, so that it does not end at once.
    let sample =
        |number: usize| json!({ "text": format!("{number} is the number of this sample, and {number} again") });
    let samples: Vec<Value> = (0..20_000).map(sample).collect();
    let audit = alice.post("/v1/audits", &json!({ "samples": samples, "methods": ["loss"] })).await.json();
    let path = format!("/v1/audits/{}", audit["id"].as_str().unwrap());
    bob.delete(&path).await.problem(404);
    bob.post(&format!("{path}/cancel"), &json!({})).await.problem(404);
    for status in ["queued", "running"] {
        assert_eq!(bob.get(&format!("/v1/audits?status={status}")).await.ok()["audits"], json!([]));
    }
    let audit = alice.get(&path).await.ok();
    assert!(["queued", "running"].contains(&audit["status"].as_str().unwrap()), "{audit}");
    alice.delete(&path).await.problem(409);
    assert_eq!(alice.post(&format!("{path}/cancel"), &json!({})).await.ok()["status"], "cancelled");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_two_keys_call_the_same_is_not_the_same() {
    let (_keys, _app, [alice, bob]) = clients(["alice", "bob"]).await;
    // The same content is another dataset, and deleting it takes nothing from anybody.
    let upload = async |client: &Client| {
        let lines = "{\"text\": \"One text.\", \"label\": 1}\n{\"text\": \"Another one.\", \"label\": 0}\n";
        client.post_bytes("/v1/datasets", Some("application/x-ndjson"), lines.into()).await.json()
    };
    let dataset = upload(&alice).await;
    let path = format!("/v1/datasets/{}", dataset["id"].as_str().unwrap());
    bob.get(&path).await.problem(404);
    assert_eq!(upload(&bob).await["id"], dataset["id"]);
    assert_eq!(bob.delete(&path).await.status, 204);
    assert_eq!((bob.get(&path).await.status, alice.get(&path).await.status), (404, 200));

    // A submission under the same name is another one, whatever its body.
    let submit = async |client: &Client, text: &str| {
        let body = json!({ "samples": [{ "text": text }], "methods": ["loss"] });
        let request = client.request(Method::POST, "/v1/audits").header("idempotency-key", "k");
        send(request.header("prefer", "wait=60").json(&body)).await.ok()["id"].clone()
    };
    let first = submit(&alice, "A text of some words.").await;
    let second = submit(&bob, "A text of some words.").await;
    assert_ne!(first, second);
    assert_eq!(submit(&alice, "A text of some words.").await, first);
    assert_eq!(submit(&bob, "A text of some words.").await, second);
}
