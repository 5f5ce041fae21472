//! Methods as their labels write them.

use serde_json::{Map, Value, json};

/// Maximum number of bytes of a label that is read, well above those of any label that is printed.
pub(super) const MAX_BYTES: usize = 1024;

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
