//! Requests: how they read, what is refused, what is echoed.

use super::*;
use serde_json::{Value, json};
use strum::VariantArray;

fn parse(methods: Value) -> Vec<MethodRequest> {
    serde_json::from_value(methods).expect("well-typed methods")
}

fn scope() -> Scope<'static> {
    Scope { models: vec!["small", "bert"], reference: Some("small"), token_counts: vec!["c4"], ..Scope::default() }
}

fn resolved(methods: Value) -> Vec<LabelledMethod> {
    resolve(&parse(methods), &scope()).expect("valid methods")
}

/// Pointers of the faults, each detail checked to contain the given words.
#[track_caller]
fn assert_faults(methods: Value, expected: &[(&str, &[&str])]) {
    let faults = resolve(&parse(methods), &scope()).expect_err("faults");
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
          "pdr": { "decay": "linear", "alpha": 1.0, "select": "after", "normalize": false } },
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
    // A number with many zeros is written with an exponent.
    let tiny = resolved(json!([{ "name": "loss", "pdr": { "decay": "exponential", "alpha": 1e-300 } }]));
    assert_eq!(&*tiny[0].label, "loss+exponential(alpha=1e-300)");
}

#[test]
fn a_long_unknown_name_is_not_repeated_in_full() {
    let faults = resolve(&[MethodRequest::Name("x".repeat(10_000))], &scope()).expect_err("a fault");
    let detail = &faults[0].detail;
    // 60 of its characters are repeated.
    assert!(detail.contains(&"x".repeat(60)) && !detail.contains(&"x".repeat(61)), "{detail}");
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
        { "label": "ref(reference=small)", "name": "ref", "reference": "small" },
        { "label": "ref(reference=bert)+exponential(alpha=0.02)", "name": "ref", "reference": "bert",
          "pdr": { "decay": "exponential", "alpha": 0.02, "normalize": false } },
        { "label": "lowercase", "name": "lowercase" },
        { "label": "neighbor(generator=bert,count=25)", "name": "neighbor", "generator": { "model": "bert", "count": 25 } },
        { "label": methods[4].label, "name": "recall", "prefix": ["a", "b"], "align": "shared" },
        { "label": methods[5].label, "name": "con_recall", "non_members": ["a"], "members": ["b"], "gamma": 0.5 },
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
fn a_grid_makes_a_method_of_each_combination() {
    let methods = resolved(json!([
        { "name": "min_k", "k": [0.1, 0.3], "pdr": { "decay": "linear", "alpha": [0.5, 1.0] } },
        { "name": "loss", "pdr": { "decay": "exponential", "alpha": [0.1, 0.2] }, "label": "mine" },
        { "name": "loss", "pdr": { "decay": "exponential", "alpha": [0.3] }, "label": "one" }
    ]));
    let labels: Vec<(&str, usize)> =
        methods.iter().map(|method| (&*method.label, method.origin.expect("an origin").place)).collect();
    let expected = [
        ("min_k(k=0.1)+linear(alpha=0.5)", 0),
        ("min_k(k=0.1)+linear(alpha=1)", 0),
        ("min_k(k=0.3)+linear(alpha=0.5)", 0),
        ("min_k(k=0.3)+linear(alpha=1)", 0),
        ("mine(alpha=0.1)", 1),
        ("mine(alpha=0.2)", 1),
        ("one", 2),
    ];
    assert_eq!(labels, expected);
    assert_faults(
        json!([{ "name": "min_k", "k": [0.1, 1.5], "pdr": { "decay": "linear", "alpha": [0.5, 2, -1] } }]),
        &[("/0/k/1", &["1.5"]), ("/0/pdr/alpha/1", &["2.0"]), ("/0/pdr/alpha/2", &["-1"])],
    );
    assert_faults(json!([{ "name": "min_k", "k": [] }]), &[("/0/k", &["empty"])]);
    assert_faults(json!([{ "name": "min_k", "k": [0.1, 0.1] }]), &[("/0", &["min_k(k=0.1)", "another of the grid"])]);
}

#[test]
fn a_grid_has_a_limit() {
    let steps = |n: usize| (1..=n).map(|i| i as f64 / n as f64).collect::<Vec<f64>>();
    let grid =
        |ks, alphas| json!({ "name": "min_k", "k": steps(ks), "pdr": { "decay": "linear", "alpha": steps(alphas) } });
    assert_eq!(resolved(json!([grid(16, 16)])).len(), MAX_METHODS);
    assert_faults(json!([grid(16, 16), "loss"]), &[("/0", &["256 methods", "257 in all"])]);
    assert_faults(json!([grid(17, 16)]), &[("/0", &["272", "256"])]);
    // An empty list makes none, and does not hide how many the other would make.
    let empty = json!({ "name": "min_k", "k": [], "pdr": { "decay": "linear", "alpha": vec![2; 100_000] } });
    assert_faults(json!([empty]), &[("/0", &["100000", "256"])]);
    let names = vec!["loss"; MAX_METHODS + 1];
    assert_faults(json!(names), &[("", &["257", "256"])]);
}

#[test]
fn what_belongs_to_other_methods_is_refused() {
    assert_faults(
        json!([
            { "name": "loss", "reference": "small", "window": 3, "prefix": ["a"] },
            { "name": "ref", "reference": "no" },
            { "name": "neighbor", "generator": { "model": "no" } },
            { "name": "neighbor", "generator": { "model": "bert", "count": 201 } },
            "recall",
            { "name": "recall", "prefix": [] },
            { "name": "recall", "prefix": ["a", ""] },
            { "name": "con_recall", "non_members": ["a"], "members": ["b"], "gamma": -1 },
            { "name": "gap_k", "window": 0 },
            { "name": "surp", "max_entropy": 0 },
            { "name": "dc_pdd", "counts": "pile", "a": 0.1 },
            { "name": "min_k", "length": 64 }
        ]),
        &[
            ("/0/reference", &["small", "takes no such parameter"]),
            ("/0/prefix", &["a list of 1"]),
            ("/0/window", &["3"]),
            ("/1/reference", &["`no`", "small, bert"]),
            ("/2/generator/model", &["`no`", "small, bert"]),
            ("/3/generator/count", &["201", "[1, 200]"]),
            ("/4", &["prefix"]),
            ("/5/prefix", &["0 texts"]),
            ("/6/prefix/1", &["empty"]),
            ("/7/gamma", &["-1.0", "[0, inf)"]),
            ("/8/window", &["0", "[1,"]),
            ("/9/max_entropy", &["0.0", "(0, inf)"]),
            ("/10/counts", &["`pile`", "c4"]),
            ("/11/length", &["preset"]),
        ],
    );
    let nothing = resolve(&parse(json!(["ref", "dc_pdd"])), &Scope::default()).expect_err("faults");
    assert_eq!(nothing.iter().map(|fault| &*fault.pointer).collect::<Vec<_>>(), ["/0", "/1"]);
}

#[test]
fn weights_that_make_no_sense_are_refused() {
    let linear = json!({ "decay": "linear", "alpha": 1 });
    assert_faults(
        json!([
            { "name": "gap_k", "pdr": linear },
            { "name": "surp", "pdr": linear },
            { "name": "dc_pdd", "pdr": linear },
            { "name": "loss", "pdr": { "decay": "linear", "alpha": 1, "select": "before" } },
            { "name": "loss", "pdr": { "decay": "entropy_dataset" } },
            { "name": "loss", "pdr": { "decay": "slope", "alpha": 1 } },
            { "name": "loss", "pdr": { "decay": "linear", "alpha": 1, "family": "linear", "seed": 1 } },
            { "name": "loss", "pdr": { "decay": "reverse", "alpha": 1, "family": "cubic" } },
            { "name": "loss", "pdr": { "decay": "reverse", "alpha": 1.5 } },
            { "name": "loss", "pdr": { "decay": "random" } }
        ]),
        &[
            ("/0/pdr", &["`gap_k`", "moving averages"]),
            ("/1/pdr", &["`surp`"]),
            ("/2/pdr", &["`dc_pdd`"]),
            ("/3/pdr/select", &["`before`", "`loss`"]),
            ("/4/pdr/decay", &["audit"]),
            ("/5/pdr/alpha", &["`slope`"]),
            ("/6/pdr/family", &["`linear`"]),
            ("/6/pdr/seed", &["`linear`"]),
            ("/7/pdr/family", &["`cubic`"]),
            ("/8/pdr/alpha", &["1.5", "[0, 1]"]),
            ("/9/pdr/alpha", &["missing"]),
        ],
    );
    let audit = Scope { audit: true, ..scope() };
    let dataset = |name: &str| parse(json!([{ "name": name, "pdr": { "decay": "entropy_dataset" } }]));
    assert!(resolve(&dataset("min_k"), &audit).is_ok());
    assert_eq!(resolve(&dataset("lowercase"), &audit).expect_err("a fault")[0].pointer, "/0/pdr/decay");
}

#[test]
fn the_catalogue_says_what_is_enforced() {
    let catalogue = serde_json::to_value(catalogue()).expect("JSON");
    assert_eq!(catalogue["methods"].as_array().map(Vec::len), Some(MethodName::VARIANTS.len()));
    for (entry, name) in catalogue["methods"].as_array().into_iter().flatten().zip(MethodName::VARIANTS) {
        assert_eq!(entry["name"], name.to_string());
        assert_eq!(name.to_string().parse(), Ok(*name));
        let parameters = entry["parameters"].as_array().expect("parameters");
        let find = |wanted: &str| parameters.iter().find(|parameter| parameter["name"] == wanted);
        assert_eq!(find("pdr").is_some(), entry["pdr_refused"].is_null());
        // With what it requires, and its defaults, each is a method.
        let mut request = json!({ "name": name.to_string() });
        for parameter in parameters.iter().filter(|parameter| parameter["required"] == true) {
            request[parameter["name"].as_str().expect("a name")] = json!(["a text"]);
        }
        for parameter in parameters.iter().filter(|parameter| !parameter["default"].is_null()) {
            request[parameter["name"].as_str().expect("a name")] = parameter["default"].clone();
        }
        let plain = resolved(json!([request]));
        if parameters.iter().all(|parameter| parameter["required"] == false) {
            assert_eq!(resolved(json!([name.to_string()])), plain);
        }
        let audit = Scope { audit: true, ..scope() };
        for entry_of_decay in entry["decays"].as_array().expect("decays") {
            let decay = catalogue["decays"].as_array().expect("decays").iter().find(|d| d["name"] == *entry_of_decay);
            let mut pdr = json!({ "decay": entry_of_decay });
            for parameter in decay.expect("described")["parameters"].as_array().expect("parameters") {
                let field = parameter["name"].as_str().expect("a name");
                pdr[field] = if field == "alpha" { json!(0.5) } else { parameter["default"].clone() };
            }
            request["pdr"] = pdr;
            let weighted = resolve(&parse(json!([request])), &audit).expect("valid");
            assert_eq!(weighted[0].method.extension(), entry["pdr_is_extension"] == true);
            assert_eq!(weighted[0].method.baseline().as_ref(), Some(&plain[0].method));
        }
    }
    for (entry, name) in catalogue["decays"].as_array().into_iter().flatten().zip(WeightingName::VARIANTS) {
        assert_eq!(entry["name"], name.to_string());
        assert_eq!(name.to_string().parse(), Ok(*name));
        let alpha = entry["parameters"].as_array().expect("parameters").iter().find(|p| p["name"] == "alpha");
        assert_eq!(alpha.is_some(), name.takes_alpha());
        if let Some(family) = name.decay() {
            let range = serde_json::to_value(family.alpha_range()).expect("JSON");
            assert_eq!(alpha.expect("an alpha")["range"], range);
        }
    }
}
