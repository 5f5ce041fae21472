//! Requests: how they read, what is refused, what is echoed.

use super::*;
use serde_json::{Value, json};

fn parse(methods: Value) -> Vec<MethodRequest> {
    serde_json::from_value(methods).expect("well-typed methods")
}

fn resolved(methods: Value) -> Vec<LabelledMethod> {
    resolve(&parse(methods)).expect("valid methods")
}

/// Pointers of the faults, each detail checked to contain the given words.
#[track_caller]
fn assert_faults(methods: Value, expected: &[(&str, &[&str])]) {
    let faults = resolve(&parse(methods)).expect_err("faults");
    let pointers: Vec<&str> = faults.iter().map(|fault| fault.pointer.as_str()).collect();
    let expected_pointers: Vec<&str> = expected.iter().map(|(pointer, _)| *pointer).collect();
    assert_eq!(pointers, expected_pointers, "{faults:#?}");
    for (fault, (_, words)) in faults.iter().zip(expected) {
        for word in *words {
            assert!(fault.detail.contains(word), "{word} is not in {fault:?}");
        }
    }
}

#[test]
fn the_echo_has_every_parameter() {
    let methods = resolved(json!([
        "loss",
        { "name": "min_k_plus_plus", "k": 0.3, "pdr": { "decay": "linear", "alpha": 1 }, "label": "mine" },
        { "name": "zlib", "pdr": { "decay": "exponential", "alpha": 0.02, "normalize": true } },
        { "name": "min_k", "truncate": 0.5, "pdr": null },
        "min_k"
    ]));
    let expected = json!([
        { "label": "loss", "name": "loss" },
        { "label": "mine", "name": "min_k_plus_plus", "k": 0.3,
          "pdr": { "decay": "linear", "alpha": 1.0, "normalize": false } },
        { "label": "zlib+exponential(alpha=0.02,normalize)", "name": "zlib",
          "pdr": { "decay": "exponential", "alpha": 0.02, "normalize": true }, "extension": true },
        { "label": "min_k(k=0.2,truncate=0.5)", "name": "min_k", "k": 0.2, "truncate": 0.5 },
        { "label": "min_k(k=0.2)", "name": "min_k", "k": 0.2 }
    ]);
    assert_eq!(serde_json::to_value(methods).expect("JSON"), expected);
}

#[test]
fn default_methods_are_plain_and_linear() {
    let defaults = default_methods();
    let labels: Vec<&str> = defaults.iter().map(|method| &*method.label).collect();
    assert_eq!(
        labels,
        [
            "loss",
            "zlib",
            "min_k(k=0.2)",
            "min_k_plus_plus(k=0.2)",
            "loss+linear(alpha=1)",
            "zlib+linear(alpha=1)",
            "min_k(k=0.2)+linear(alpha=1)",
            "min_k_plus_plus(k=0.2)+linear(alpha=1)",
        ]
    );
    let (plain, decayed) = defaults.split_at(4);
    for (plain, decayed) in plain.iter().zip(decayed) {
        assert_eq!(plain.method.baseline(), None);
        assert_eq!(decayed.method.baseline().as_ref(), Some(&plain.method));
    }
}

#[test]
fn every_fault_is_found() {
    assert_faults(
        json!([
            "los",
            { "name": "loss", "k": 0.2, "truncate": 0 },
            { "name": "min_k", "k": 1.5, "truncate": -1, "pdr": { "decay": "linear", "alpha": 1.01 } },
            { "name": "zlib", "pdr": { "decay": "cubic" } },
            { "name": "nope", "truncate": 2, "pdr": { "decay": "exponential", "alpha": -0.1 }, "label": "" },
            { "name": "loss", "pdr": { "decay": "polynomial", "alpha": 0 } },
            { "name": "loss", "pdr": { "decay": "polynomial" } }
        ]),
        &[
            ("/0", &["`los`", "loss, zlib, min_k, min_k_plus_plus"]),
            ("/1/k", &["0.2", "`loss`"]),
            ("/1/truncate", &["0.0", "(0, 1]"]),
            ("/2/k", &["1.5", "(0, 1]"]),
            ("/2/truncate", &["-1", "(0, 1]"]),
            ("/2/pdr/alpha", &["1.01", "[0, 1]", "linear"]),
            ("/3/pdr/decay", &["`cubic`", "linear, exponential, polynomial"]),
            ("/3/pdr/alpha", &["missing"]),
            ("/4/name", &["`nope`"]),
            ("/4/truncate", &["2", "(0, 1]"]),
            ("/4/pdr/alpha", &["-0.1", "[0, inf)"]),
            ("/4/label", &["0 characters", "1 to 200"]),
            ("/5/pdr/alpha", &["0.0", "(0, inf)"]),
            ("/6/pdr/alpha", &["missing", "(0, inf)"]),
        ],
    );
    assert_faults(json!([]), &[("", &["empty", "at least one"])]);
}

#[test]
fn labels_are_unique_and_short() {
    assert_faults(
        json!([
            "min_k",
            { "name": "min_k", "k": 0.2 },
            { "name": "loss", "label": "min_k(k=0.2)" },
            { "name": "loss", "label": "é".repeat(201) },
            { "name": "loss", "label": "é".repeat(200) },
            { "name": "loss", "label": "loss" },
            "loss",
            { "name": "loss", "pdr": { "decay": "exponential", "alpha": 1e-300 } }
        ]),
        &[
            ("/1", &["min_k(k=0.2)", "/0"]),
            ("/2/label", &["min_k(k=0.2)", "/0"]),
            ("/3/label", &["201", "1 to 200"]),
            ("/6", &["`loss`", "/5"]),
        ],
    );
    // A label that no client wrote is as long as its parameters are.
    let tiny = resolved(json!([{ "name": "loss", "pdr": { "decay": "exponential", "alpha": 1e-300 } }]));
    assert!(tiny[0].label.len() > 200);
}

#[test]
fn a_long_unknown_name_is_not_repeated_in_full() {
    let faults = resolve(&[MethodRequest::Name("x".repeat(10_000))]).expect_err("a fault");
    assert!(faults[0].detail.len() < 200, "{}", faults[0].detail);
}

#[test]
fn a_negative_zero_is_a_zero() {
    let methods = resolved(json!([
        { "name": "loss", "pdr": { "decay": "linear", "alpha": -0.0 } }
    ]));
    assert_eq!(&*methods[0].label, "loss+linear(alpha=0)");
}

#[test]
fn a_fault_of_type_says_where_and_what() {
    for (json, path, message) in [
        (r#"[7]"#, "[0]", "expected a method: its name, or an object"),
        (r#"["loss", {"name": "min_k", "k": "a"}]"#, "[1].k", "expected f64"),
        (r#"[{"name": "loss", "pdr": {"decay": 1}}]"#, "[0].pdr.decay", "expected a string"),
        (r#"[{"name": "loss", "kk": 1}]"#, "[0].kk", "unknown field `kk`, expected one of"),
        (r#"[{"name": "loss", "pdr": {"decay": "linear", "beta": 1}}]"#, "[0].pdr.beta", "`beta`"),
        (r#"[{"k": 0.2}]"#, "[0]", "missing field `name`"),
    ] {
        let mut deserializer = serde_json::Deserializer::from_str(json);
        let error =
            serde_path_to_error::deserialize::<_, Vec<MethodRequest>>(&mut deserializer).expect_err("a fault of type");
        assert_eq!(error.path().to_string(), path, "{error}");
        let inner = error.inner().to_string();
        assert!(inner.contains(message), "{inner}");
    }
}

#[test]
fn a_request_survives_being_stored() {
    let requests = parse(json!([
        "loss",
        { "name": "min_k", "k": 0.7, "pdr": { "decay": "linear", "alpha": 0.5 }, "label": "a" }
    ]));
    let stored = serde_json::to_value(&requests).expect("JSON");
    assert_eq!(parse(stored), requests);
}

#[test]
fn lists_of_a_command_line() {
    let names = parse_list(" loss, min_k ").expect("names");
    assert_eq!(names, parse(json!(["loss", "min_k"])));
    let array = parse_list(r#" ["loss", {"name": "min_k", "k": 0.1}]"#).expect("an array");
    assert_eq!(array, parse(json!(["loss", {"name": "min_k", "k": 0.1}])));
    assert!(parse_list("[\"loss\"").is_err());
    assert!(resolve(&parse_list("").expect("names")).is_err());
}

#[test]
fn the_catalogue_says_what_is_enforced() {
    let catalogue = serde_json::to_value(catalogue()).expect("JSON");
    for (entry, name) in catalogue["methods"].as_array().into_iter().flatten().zip(MethodName::ALL) {
        assert_eq!(entry["name"], name.name());
        assert_eq!(MethodName::from_name(name.name()), Some(name));
        let parameters = entry["parameters"].as_array().expect("parameters");
        let k = parameters.iter().find(|parameter| parameter["name"] == "k");
        assert_eq!(k.is_some(), name.base().k().is_some());
        if let Some(k) = k {
            assert_eq!(k["default"], 0.2);
            assert_eq!(k["range"], json!({ "minimum": 0.0, "exclusive_minimum": true, "maximum": 1.0 }));
        }
    }
    for (entry, decay) in catalogue["decays"].as_array().into_iter().flatten().zip(Decay::ALL) {
        assert_eq!(entry["name"], decay.name());
        assert_eq!(Decay::from_name(decay.name()), Some(decay));
        let range = serde_json::to_value(decay.alpha_range()).expect("JSON");
        assert_eq!(entry["parameters"][0]["range"], range);
    }
}
