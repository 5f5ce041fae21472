//! Methods as their labels write them.

use serde_json::{Map, Value, json};

/// Maximum number of bytes of a label that is read, well above those of any label that is printed.
const MAX_BYTES: usize = 1024;

/// Maximum depth of methods within methods, as in `fsd(split=0.3,seeds=42,score=min_k(k=0.2))`.
const MAX_DEPTH: usize = 2;

/// The object that a label such as `min_k(k=0.2,truncate=0.5)+linear(alpha=1,normalize)` stands for, so that a label that
/// was printed can be asked for. `None` for a text of another form, such as a name alone.
pub(super) fn label_object(label: &str) -> Option<Value> {
    if label.len() > MAX_BYTES { None } else { object_within(label, MAX_DEPTH) }
}

fn object_within(label: &str, depth: usize) -> Option<Value> {
    let depth = depth.checked_sub(1)?;
    let (method, pdr) = match split_outside(label, '+').as_slice() {
        [method] => (*method, None),
        [method, pdr] => (*method, Some(*pdr)),
        _ => return None,
    };
    if !method.contains('(') && pdr.is_none() {
        return None;
    }
    let (name, arguments) = call(method)?;
    let mut object = Map::from_iter([("name".to_owned(), json!(name))]);
    for argument in arguments {
        let (parameter, value) = argument.split_once('=')?;
        object.insert(parameter.to_owned(), literal(value, depth));
    }
    if let Some(pdr) = pdr {
        let (decay, arguments) = call(pdr)?;
        let mut weights = Map::from_iter([("decay".to_owned(), json!(decay))]);
        for argument in arguments {
            let (field, value) = match argument {
                "normalize" => ("normalize", json!(true)),
                "before" => ("select", json!("before")),
                argument => argument.split_once('=').map(|(field, value)| (field, literal(value, depth)))?,
            };
            weights.insert(field.to_owned(), value);
        }
        object.insert("pdr".to_owned(), Value::Object(weights));
    }
    Some(Value::Object(object))
}

/// The parts of a text between separators that are in no parentheses.
pub(super) fn split_outside(text: &str, separator: char) -> Vec<&str> {
    let mut depth = 0_i32;
    let outside = |character: char| {
        depth += i32::from(character == '(') - i32::from(character == ')');
        character == separator && depth == 0
    };
    text.split(outside).collect()
}

/// The name and the arguments of `name(argument,argument)`, or a name alone.
fn call(text: &str) -> Option<(&str, Vec<&str>)> {
    match text.split_once('(') {
        None => Some((text, Vec::new())),
        Some((name, rest)) => Some((name, split_outside(rest.strip_suffix(')')?, ','))),
    }
}

/// A number, a truth value, a method with parameters, or a text.
fn literal(value: &str, depth: usize) -> Value {
    if let Some(method) = object_within(value, depth) {
        return method;
    }
    serde_json::from_str::<Value>(value)
        .ok()
        .filter(|value| value.is_number() || value.is_boolean())
        .unwrap_or(json!(value))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::methods::{MethodRequest, Scope, parse_list, possible_default_methods, resolve};

    fn scope() -> Scope<'static> {
        Scope { models: vec!["m", "r"], model: Some("m"), reference: Some("r"), audit: true, ..Scope::default() }
    }

    #[test]
    fn a_label_that_was_printed_is_the_method() {
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
        let requests: Vec<MethodRequest> = serde_json::from_value(requests).unwrap();
        let methods = resolve(&requests, &scope()).unwrap().into_iter().chain(possible_default_methods(&scope()));
        for method in methods {
            let again = resolve(&parse_list(&method.label).unwrap(), &scope());
            let again = again.unwrap_or_else(|faults| panic!("{}: {faults:?}", method.label));
            assert_eq!((again.len(), &again[0].method), (1, &method.method), "{}", method.label);
        }
    }

    #[test]
    fn labels_are_separated_by_commas_outside_parentheses() {
        let list = parse_list("loss, min_k(k=0.1,truncate=0.5), min_k(k=0.2)+linear(alpha=1,normalize)").unwrap();
        let labels: Vec<String> =
            resolve(&list, &scope()).unwrap().iter().map(|method| method.label.to_string()).collect();
        assert_eq!(labels, ["loss", "min_k(k=0.1,truncate=0.5)", "min_k(k=0.2)+linear(alpha=1,normalize)"]);
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
}
