//! Methods that are stored and read back.

use super::*;
use serde_json::json;
use strum::VariantArray;

fn read_back(method: &LabelledMethod) -> LabelledMethod {
    let stored = serde_json::to_string(method).expect("JSON");
    serde_json::from_str(&stored).unwrap_or_else(|error| panic!("{stored}: {error}"))
}

#[test]
fn every_method_is_read_back_as_it_was() {
    let scope = Scope { audit: true, neighbors: true, ..scope() };
    let weights = |name: &str| json!({ "name": name, "pdr": { "decay": "random", "alpha": 0.1, "seed": u64::MAX } });
    let requests = parse(json!([
        "loss", "ref", "zlib", "lowercase", "neighbor", "min_k", "min_k_plus_plus", "max_k", "gap_k", "surp", "dc_pdd",
        "wbc", "ez", "pac", { "name": "pac", "low": 0.30000000000000004, "copies": 3, "seed": 9007199254740991_u64 }, { "name": "ez", "without_losses": "zero" },
        { "name": "neighbor", "generator": { "model": "bert", "count": 7 } },
        { "name": "recall", "prefix": ["a", "\u{e9}\n"], "align": "official", "label": "mine" },
        { "name": "con_recall", "non_members": ["a"], "members": ["b", "c"], "gamma": 0.1 },
        { "name": "min_k", "k": [0.1, 0.30000000000000004], "truncate": 0.7,
          "pdr": { "decay": "exponential", "alpha": [1e-300, 0.02], "select": "before", "normalize": true } },
        { "name": "fsd", "adapter": "tuned", "score": { "name": "min_k_plus_plus", "k": 0.30000000000000004,
          "pdr": { "decay": "linear", "alpha": 0.1 } } },
        { "name": "surp", "k": 0.9, "max_entropy": 1.0000000000000002 },
        { "name": "loss", "pdr": { "decay": "entropy_dataset" } },
        { "name": "loss", "pdr": { "decay": "reverse", "alpha": 0.3, "family": "polynomial" } },
        weights("ref"), weights("zlib"), weights("lowercase"),
        { "name": "loss", "label": "\u{e9}".repeat(200) },
        { "preset": "paper_wikimia", "length": 64 }
    ]));
    let methods = resolve(&requests, &scope).expect("methods");
    let used: std::collections::HashSet<MethodName> = methods.iter().map(|method| method.method.name()).collect();
    assert_eq!(used.len(), MethodName::VARIANTS.len());
    for method in methods.iter().chain(&default_methods()) {
        let read = read_back(method);
        assert_eq!(&read, method);
        assert_eq!(read.method.label(), method.method.label());
    }
}

#[test]
fn what_no_request_could_ask_for_is_not_read() {
    for (stored, words) in [
        (json!({ "label": "a", "name": "min_k", "k": 1.5 }), "/k: k is 1.5"),
        (json!({ "label": "a", "name": "gap_k", "k": 0.2, "window": 0 }), "/window: window is 0"),
        (json!({ "label": "a", "name": "min_k", "k": [0.1, 0.2] }), "one method"),
        (json!({ "label": "a", "name": "ref" }), "/reference"),
        (json!({ "label": "a", "name": "max_kk" }), "unknown method `max_kk`"),
        (json!({ "label": "a", "name": "loss", "place": 0 }), "unknown field `place`"),
        (json!({ "name": "loss" }), "missing field `label`"),
    ] {
        let error = serde_json::from_value::<LabelledMethod>(stored).expect_err("a fault").to_string();
        assert!(error.contains(words), "{error}");
    }
}

#[test]
fn a_parameter_has_one_type_and_a_method_sweeps_over_one() {
    for name in MethodName::VARIANTS {
        let parameters = name.definition().parameters;
        let swept = parameters.iter().filter(|parameter| parameter.entry().sweep);
        assert!(swept.count() <= 1, "{name}");
        for parameter in parameters {
            let all = request::all_parameters();
            let known = all.iter().find(|known| known.name == parameter.name).expect("a parameter of all");
            assert_eq!(known.value_type(), parameter.value_type(), "{name}: {}", parameter.name);
        }
    }
}

#[test]
fn a_stored_method_tells_what_a_reader_must_know() {
    let separate = Method::new(Ref { reference: "r".into(), tokenization: Tokenization::Separate });
    let stored = serde_json::to_value(LabelledMethod::from(separate.clone())).expect("JSON");
    assert!(stored["note"].as_str().is_some_and(|note| note.contains("another tokenization")));
    let read: LabelledMethod = serde_json::from_value(stored).expect("a method");
    assert_eq!(read.method, separate);
}
