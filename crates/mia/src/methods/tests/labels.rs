//! Labels, which are read as the methods that they are printed for.

use super::label_object::{MAX_BYTES, label_object};
use super::*;
use serde_json::json;

#[test]
fn a_label_that_was_printed_is_the_method() {
    let audit = Scope { audit: true, ..scope() };
    let requests = json!([
        "ref",
        "zlib",
        "surp",
        { "name": "min_k", "k": 0.3, "truncate": 0.5 },
        { "name": "fsd", "seeds": 42, "split": 0.3 },
        { "name": "loss", "pdr": { "decay": "linear", "alpha": [0.5, 1], "normalize": true } },
        { "name": "min_k_plus_plus", "pdr": { "decay": "exponential", "alpha": 0.02, "select": "before" } },
        { "name": "loss", "pdr": { "decay": "entropy_dataset" } },
        { "name": "loss", "pdr": { "decay": "random", "family": "linear", "alpha": 1, "seed": 3 } }
    ]);
    let methods = resolve(&parse(requests), &audit).unwrap().into_iter().chain(default_methods());
    for method in methods {
        let again = resolve(&parse_list(&method.label).unwrap(), &audit);
        let again = again.unwrap_or_else(|faults| panic!("{}: {faults:?}", method.label));
        assert_eq!((again.len(), &again[0].method), (1, &method.method), "{}", method.label);
    }
}

#[test]
fn labels_are_separated_by_commas_outside_parentheses() {
    let list = parse_list("loss, min_k(k=0.1,truncate=0.5), min_k(k=0.2)+linear(alpha=1,normalize)").unwrap();
    assert_eq!(
        labels_of(&resolve(&list, &scope()).unwrap()),
        ["loss", "min_k(k=0.1,truncate=0.5)", "min_k(k=0.2)+linear(alpha=1,normalize)"]
    );
}

#[test]
fn a_label_is_read_to_a_depth_and_a_length() {
    let nested = |depth: usize| format!("{}1{}", "a(b=".repeat(depth), ")".repeat(depth));
    assert_eq!(label_object(&nested(2)), Some(json!({ "name": "a", "b": { "name": "a", "b": 1 } })));
    assert_eq!(label_object(&nested(3)), Some(json!({ "name": "a", "b": { "name": "a", "b": "a(b=1)" } })));
    assert_eq!(label_object(&nested(100_000)), None);
    assert_eq!(label_object(&format!("a(b={})", "c".repeat(MAX_BYTES))), None);
}

#[test]
fn another_text_is_a_name() {
    for text in ["loss", "a+b+c", "min_k(k)", "min_k(k=0.2", "loss+linear(", "min_k(no_such=1)"] {
        let [request] = &*parse_list(text).unwrap() else { panic!("{text}") };
        let is_name = matches!(request, MethodRequest::Name(name) if name == text);
        assert!(is_name || resolve(std::slice::from_ref(request), &scope()).is_err(), "{text}: {request:?}");
    }
}
