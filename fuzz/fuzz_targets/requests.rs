//! Feeds the body of a POST to the router of the service, over golden models and a store in memory.
//!
//! The first byte chooses the operation; its highest bit asks to wait for the end of a job. The rest is the body or, for
//! an operation that has none, the name in its path. What a request leaves behind is looked at, cancelled and deleted.
//!
//! No panic on any thread, no status 500, and every refusal is a problem that says what is wrong.

#![no_main]

use axum::http::Request;
use axum::http::request::Builder;
use libfuzzer_sys::fuzz_target;
use pdr_audit_fuzz::{allow_panics_of, bound_memory, choice, service};

/// What a longer body finds, a shorter one finds as well.
const LONGEST: usize = 4 << 10;

const JSON: &str = "application/json";

/// Operations with a body: path and media type.
const BODIES: [(&str, &str); 11] = [
    ("/v1/score", JSON),
    ("/v1/token-stats", JSON),
    ("/v1/audits", JSON),
    ("/v1/calibrations", JSON),
    ("/v1/tests", JSON),
    ("/v1/finetunes", JSON),
    ("/v1/memorization", JSON),
    ("/v1/datasets", JSON),
    ("/v1/datasets", "application/x-ndjson"),
    ("/v1/datasets", "text/csv"),
    ("/v1/datasets", "application/vnd.apache.parquet"),
];

/// Operations with a name in their path, and none with a body.
const NAMES: [(&str, &str); 7] = [
    ("/v1/audits/", "/cancel"),
    ("/v1/calibrations/", "/cancel"),
    ("/v1/tests/", "/cancel"),
    ("/v1/finetunes/", "/cancel"),
    ("/v1/memorization/", "/cancel"),
    ("/v1/models/", "/load"),
    ("/v1/models/", "/unload"),
];

const WAITS: usize = 0x80;

fuzz_target!(init: { bound_memory(); allow_panics_of(&["parquet"]) }, |data: &[u8]| {
    let Some((choice, body)) = choice(data).filter(|(_, body)| body.len() <= LONGEST) else { return };
    let (waits, operation) = (choice & WAITS != 0, (choice & !WAITS) % (BODIES.len() + NAMES.len()));
    match BODIES.get(operation) {
        Some(&(path, media)) => post_body(path, media, waits, body),
        None => post_name(NAMES[operation - BODIES.len()], body),
    }
});

fn post_body(path: &str, media: &str, waits: bool, body: &[u8]) {
    let mut request = Request::post(path).header("content-type", media);
    // A fine-tune that ends leaves an adapter behind.
    if waits && path != "/v1/finetunes" {
        request = request.header("prefer", "wait=1");
    }
    let Some(location) = service().send(request, body).location else { return };
    let send = |request: Builder| service().send(request, b"");
    send(Request::get(&location));
    if path != "/v1/datasets" {
        send(Request::post(format!("{location}/cancel")));
    }
    send(Request::delete(&location));
}

fn post_name((before, after): (&str, &str), name: &[u8]) {
    let name: String = name.iter().map(|byte| format!("%{byte:02x}")).collect();
    let answer = service().send(Request::post(format!("{before}{name}{after}")), b"");
    if after == "/unload" && answer.status.is_success() {
        // Later inputs need the model.
        service().send(Request::post(format!("{before}{name}/load")), b"");
    }
}
