//! The language of chat templates: Jinja as transformers sets it up.

use super::json::to_json;
use super::python::{call_method, raise_exception, trim_filter};
use minijinja::syntax::SyntaxConfig;
use minijinja::value::Kwargs;
use minijinja::{Environment, Error, ErrorKind, State, Value};

/// Maximum depth of macros that call each other, and of nested statements.
const MAX_DEPTH: usize = 100;

/// Filters and functions that make lists of lists, beside those that tell of the program.
const REMOVED_FILTERS: [&str; 7] = ["batch", "slice", "groupby", "zip", "chain", "pprint", "sum"];
const REMOVED_FUNCTIONS: [&str; 2] = ["dict", "debug"];

/// An environment without a template.
pub fn environment() -> Environment<'static> {
    let mut environment = Environment::new();
    environment.set_recursion_limit(MAX_DEPTH);
    environment.set_unknown_method_callback(call_method);
    REMOVED_FILTERS.iter().for_each(|name| environment.remove_filter(name));
    REMOVED_FUNCTIONS.iter().for_each(|name| environment.remove_global(name));
    environment.add_filter("map", map);
    environment.add_filter("tojson", to_json);
    environment.add_filter("trim", trim_filter);
    environment.add_function("raise_exception", raise_exception);
    environment
}

/// The filter `map`, with the name of a filter or with an attribute. Further arguments, as the original takes them, could put a list
/// into each item of another one, again and again.
fn map(state: &mut State, list: &Value, filter: Option<String>, options: Kwargs) -> Result<Vec<Value>, Error> {
    let attribute: Option<String> = options.get("attribute")?;
    options.assert_all_used()?;
    let mut mapped = Vec::new();
    for item in list.try_iter()? {
        state.consume_fuel(1)?;
        mapped.push(match (&filter, &attribute) {
            (Some(filter), None) => state.apply_filter(filter, &[item])?,
            (None, Some(attribute)) => item.get_attr(attribute)?,
            _ => return Err(Error::new(ErrorKind::InvalidOperation, "`map` takes a filter's name or an attribute")),
        });
    }
    Ok(mapped)
}

/// The way in which white space around statements is treated.
pub fn syntax() -> Result<SyntaxConfig, Error> {
    SyntaxConfig::builder().trim_blocks(true).lstrip_blocks(true).build()
}

/// The template with `{% generation %}` blocks as plain scopes: transformers only notes where they are.
pub fn without_generation(source: &str) -> String {
    let (mut plain, mut rest) = (String::with_capacity(source.len()), source);
    while let Some(begin) = rest.find("{%") {
        let (before, tag) = rest.split_at(begin);
        plain.push_str(before);
        let Some(end) = tag.find("%}") else {
            rest = tag;
            break;
        };
        let (tag, after) = tag.split_at(end + 2);
        let inner = tag.trim_start_matches("{%").trim_end_matches("%}").trim_matches(['-', '+']).trim();
        match inner {
            "generation" => plain.push_str(&tag.replacen("generation", "with", 1)),
            "endgeneration" => plain.push_str(&tag.replacen("endgeneration", "endwith", 1)),
            _ => plain.push_str(tag),
        }
        rest = after;
    }
    plain.push_str(rest);
    plain
}
