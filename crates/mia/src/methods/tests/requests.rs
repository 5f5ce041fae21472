//! Requests: how they read, what is refused, what is echoed.

use super::*;
use serde_json::json;

#[test]
fn default_methods_are_plain_and_linear() {
    let defaults = default_methods();
    assert_eq!(
        labels_of(&defaults),
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
            { "name": "loss", "pdr": { "decay": "polynomial" } },
            { "k": 0.2 }
        ]),
        &[
            ("/0", &["`los`", "loss, ref, zlib, lowercase, neighbor, min_k, min_k_plus_plus"]),
            ("/1/k", &["0.2", "`loss`"]),
            ("/1/truncate", &["0.0", "(0, 1]"]),
            ("/2/k", &["1.5", "(0, 1]"]),
            ("/2/truncate", &["-1", "(0, 1]"]),
            ("/2/pdr/alpha", &["1.01", "[0, 1]", "linear"]),
            ("/3/pdr/decay", &["`cubic`", "linear, exponential, polynomial"]),
            ("/4/name", &["`nope`"]),
            ("/4/truncate", &["2", "(0, 1]"]),
            ("/4/pdr/alpha", &["-0.1", "[0, inf)"]),
            ("/4/label", &["0 characters", "1 to 200"]),
            ("/5/pdr/alpha", &["0.0", "(0, inf)"]),
            ("/6/pdr/alpha", &["missing", "(0, inf)"]),
            ("/7", &["missing field `name`"]),
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
            ("/1", &["min_k(k=0.2)", "method 0"]),
            ("/2/label", &["min_k(k=0.2)", "method 0"]),
            ("/3/label", &["201", "1 to 200"]),
            ("/6", &["`loss`", "method 5"]),
        ],
    );
    // A number with many zeros is written with an exponent, and a negative zero as a zero.
    let numbers = resolved(json!([
        { "name": "loss", "pdr": { "decay": "exponential", "alpha": 1e-300 } },
        { "name": "loss", "pdr": { "decay": "linear", "alpha": -0.0 } }
    ]));
    assert_eq!(labels_of(&numbers), ["loss+exponential(alpha=1e-300)", "loss+linear(alpha=0)"]);
}

#[test]
fn a_long_unknown_name_is_not_repeated_in_full() {
    let faults = resolve(&[MethodRequest::Name("x".repeat(10_000))], &scope()).expect_err("a fault");
    let detail = &faults[0].detail;
    // 60 of its characters are repeated.
    assert!(detail.contains(&"x".repeat(60)) && !detail.contains(&"x".repeat(61)), "{detail}");
}

#[test]
fn a_fault_of_type_says_where_and_what() {
    for (json, path, message) in [
        (r#"[7]"#, "[0]", "expected a method: its name, or an object"),
        (r#"["loss", {"name": "min_k", "k": "a"}]"#, "[1].k", "expected a number, or a list of numbers"),
        (r#"["loss", {"name": "min_k", "k": [0.1, "a"]}]"#, "[1].k[1]", "expected f64"),
        (r#"[{"name": "loss", "pdr": {"decay": "linear", "select": "no"}}]"#, "[0].pdr.select", "`after` or `before`"),
        (r#"[{"name": "loss", "pdr": {"decay": 1}}]"#, "[0].pdr.decay", "expected a string"),
        (r#"[{"name": "loss", "kk": 1}]"#, "[0].kk", "unknown field `kk`, expected one of"),
        (r#"[{"name": "loss", "pdr": {"decay": "linear", "beta": 1}}]"#, "[0].pdr.beta", "`beta`"),
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
    let object = parse_list(r#"{"name": "min_k", "k": 0.1}"#).expect("an object");
    assert_eq!(object, parse(json!([{"name": "min_k", "k": 0.1}])));
    assert!(parse_list("[\"loss\"").is_err());
    assert!(resolve(&parse_list("").expect("names"), &scope()).is_err());
}

#[test]
fn every_method_echoes_its_parameters() {
    let methods = resolved(json!([
        "loss",
        { "name": "min_k_plus_plus", "k": 0.3, "pdr": { "decay": "linear", "alpha": 1 }, "label": "mine" },
        { "name": "zlib", "pdr": { "decay": "exponential", "alpha": 0.02, "normalize": true } },
        { "name": "min_k", "truncate": 0.5, "pdr": null },
        "min_k",
        "ref",
        { "name": "ref", "reference": "bert", "pdr": { "decay": "exponential", "alpha": 0.02 } },
        "lowercase",
        { "name": "neighbor", "generator": { "model": "bert" } },
        { "name": "recall", "prefix": ["a", "b"] },
        { "name": "con_recall", "non_members": ["a"], "members": ["b"] },
        "gap_k",
        "surp",
        "dc_pdd",
        { "name": "min_k", "pdr": { "decay": "random", "alpha": 0.5, "family": "exponential", "select": "before" } },
        { "name": "loss", "pdr": { "decay": "slope" } }
    ]));
    let expected = json!([
        { "label": "loss", "name": "loss" },
        { "label": "mine", "name": "min_k_plus_plus", "k": 0.3,
          "pdr": { "decay": "linear", "alpha": 1.0, "select": "after", "normalize": false } },
        { "label": "zlib+exponential(alpha=0.02,normalize)", "name": "zlib",
          "pdr": { "decay": "exponential", "alpha": 0.02, "normalize": true }, "extension": true },
        { "label": "min_k(k=0.2,truncate=0.5)", "name": "min_k", "k": 0.2, "truncate": 0.5 },
        { "label": "min_k(k=0.2)", "name": "min_k", "k": 0.2 },
        { "label": "ref(reference=small)", "name": "ref", "reference": "small" },
        { "label": "ref(reference=bert)+exponential(alpha=0.02)", "name": "ref", "reference": "bert",
          "pdr": { "decay": "exponential", "alpha": 0.02, "normalize": false } },
        { "label": "lowercase", "name": "lowercase" },
        { "label": "neighbor(generator=bert,count=25)", "name": "neighbor", "generator": { "model": "bert", "count": 25 } },
        { "label": methods[9].label, "name": "recall", "prefix": ["a", "b"], "align": "shared" },
        { "label": methods[10].label, "name": "con_recall", "non_members": ["a"], "members": ["b"], "gamma": 0.5 },
        { "label": "gap_k(k=0.2,window=3)", "name": "gap_k", "k": 0.2, "window": 3 },
        { "label": "surp(k=0.4,max_entropy=2)", "name": "surp", "k": 0.4, "max_entropy": 2.0 },
        { "label": "dc_pdd(counts=c4,a=0.01)", "name": "dc_pdd", "counts": "c4", "a": 0.01 },
        { "label": "min_k(k=0.2)+random(family=exponential,alpha=0.5,seed=0,before)", "name": "min_k", "k": 0.2,
          "pdr": { "decay": "random", "family": "exponential", "alpha": 0.5, "seed": 0, "select": "before", "normalize": false } },
        { "label": "loss+slope", "name": "loss", "pdr": { "decay": "slope", "normalize": false } }
    ]);
    assert_eq!(serde_json::to_value(methods).expect("JSON"), expected);
}

#[test]
fn a_list_of_truncations_is_swept() {
    let methods = resolved(json!([
        { "name": "min_k", "k": [0.1, 0.2], "truncate": [0.5, 1], "pdr": { "decay": "linear", "alpha": [0.3, 1] } },
        { "name": "loss", "truncate": [0.25], "label": "start" },
        { "name": "loss", "truncate": [0.25, 0.5], "label": "cut" },
    ]));
    let expected = [
        "min_k(k=0.1,truncate=0.5)+linear(alpha=0.3)",
        "min_k(k=0.1,truncate=0.5)+linear(alpha=1)",
        "min_k(k=0.1,truncate=1)+linear(alpha=0.3)",
        "min_k(k=0.1,truncate=1)+linear(alpha=1)",
        "min_k(k=0.2,truncate=0.5)+linear(alpha=0.3)",
        "min_k(k=0.2,truncate=0.5)+linear(alpha=1)",
        "min_k(k=0.2,truncate=1)+linear(alpha=0.3)",
        "min_k(k=0.2,truncate=1)+linear(alpha=1)",
        "start",
        "cut(truncate=0.25)",
        "cut(truncate=0.5)",
    ];
    assert_eq!(labels_of(&methods), expected);
    assert_eq!(methods[10].method, truncated(loss(), 0.5));
    assert_faults(
        json!([{ "name": "loss", "truncate": [0.5, 1.5, 0] }, { "name": "zlib", "truncate": [] }]),
        &[
            ("/0/truncate/1", &["1.5", "(0, 1]"]),
            ("/0/truncate/2", &["0.0", "(0, 1]"]),
            ("/1/truncate", &["the list of values is empty"]),
        ],
    );
    let many: Vec<f64> = (1..=129).map(|share| f64::from(share) / 129.0).collect();
    let grid = json!([{ "name": "min_k", "k": [0.1, 0.2], "truncate": many }]);
    assert_faults(grid, &[("/0", &["258 methods", "at most 256"])]);
}
