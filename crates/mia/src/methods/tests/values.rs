//! Grids, parameters of other methods, weights, and the catalogue of all of these.

use super::*;
use serde_json::json;
use strum::VariantArray;

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
    assert_eq!(pointers_of(&faults(json!(["ref", "dc_pdd"]), &Scope::default())), ["/0", "/1"]);
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
    let dataset = |name: &str| json!([{ "name": name, "pdr": { "decay": "entropy_dataset" } }]);
    assert!(resolve(&parse(dataset("min_k")), &audit).is_ok());
    assert_eq!(pointers_of(&faults(dataset("lowercase"), &audit)), ["/0/pdr/decay"]);
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
            let value = if parameter["type"] == "string" { json!("tuned") } else { json!(["a text"]) };
            request[parameter["name"].as_str().expect("a name")] = value;
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
    for (entry, weighting) in catalogue["decays"].as_array().into_iter().flatten().zip(Weighting::NAMED) {
        assert_eq!(entry["name"], weighting.name());
        let alpha = entry["parameters"].as_array().expect("parameters").iter().find(|p| p["name"] == "alpha");
        assert_eq!(alpha.is_some(), weighting.curve().is_some());
        if let Weighting::Decay(curve) = weighting {
            let range = serde_json::to_value(curve.family().alpha_range()).expect("JSON");
            assert_eq!(alpha.expect("an alpha")["range"], range);
        }
    }
}
