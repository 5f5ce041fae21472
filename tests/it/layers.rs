//! The layer map: a module imports only from layers below its own.

use std::collections::BTreeMap;
use std::path::Path;

/// Modules of `src/`, from the lowest layer up. Modules of one layer do not import each other.
const LAYERS: &[&[&str]] = &[
    &["config", "hub", "telemetry", "token_stats", "new_file", "wire"],
    &["methods", "models", "statistics", "tokenizer"],
    &["engine"],
    &["scorer"],
    &["audits"],
    &["api"],
    &["app"],
    &["cli"],
];

fn layer_of(module: &str) -> Option<usize> {
    LAYERS.iter().position(|layer| layer.contains(&module))
}

/// Every `crate::module` in a source text, also those inside `use crate::{a, b::c}`.
fn imports(source: &str) -> Vec<String> {
    let mut found = Vec::new();
    for (at, _) in source.match_indices("crate::") {
        // `pdr_audit::`-like paths and identifiers that end in `crate` do not occur; macros' `$crate` would be one of ours.
        let rest = &source[at + "crate::".len()..];
        if let Some(group) = rest.strip_prefix('{') {
            let mut depth = 1;
            let end = group.find(|c: char| {
                depth += i32::from(c == '{') - i32::from(c == '}');
                depth == 0
            });
            let (mut depth, mut name) = (0, String::new());
            for c in group[..end.unwrap_or(group.len())].chars().chain([',']) {
                match c {
                    '{' => depth += 1,
                    '}' => depth -= 1,
                    ',' if depth == 0 => found.push(first_segment(std::mem::take(&mut name).trim())),
                    _ if depth == 0 => name.push(c),
                    _ => {}
                }
            }
        } else {
            found.push(first_segment(rest));
        }
    }
    found.retain(|name| !name.is_empty());
    found
}

fn first_segment(path: &str) -> String {
    path.chars().take_while(|c| c.is_alphanumeric() || *c == '_').collect()
}

fn sources(directory: &Path, all: &mut BTreeMap<String, Vec<String>>, module: Option<&str>) {
    for entry in std::fs::read_dir(directory).unwrap() {
        let path = entry.unwrap().path();
        let stem = path.file_stem().unwrap().to_string_lossy().into_owned();
        let module = module.unwrap_or(&stem);
        if path.is_dir() {
            sources(&path, all, Some(module));
        } else if path.extension().is_some_and(|e| e == "rs") && !["lib", "main"].contains(&module) {
            all.entry(module.to_owned()).or_default().push(std::fs::read_to_string(&path).unwrap());
        }
    }
}

#[test]
fn modules_import_only_from_layers_below() {
    let mut all = BTreeMap::new();
    sources(&Path::new(env!("CARGO_MANIFEST_DIR")).join("src"), &mut all, None);
    assert!(all.len() >= 12, "found only {:?}", all.keys());
    for (module, texts) in &all {
        let own = layer_of(module).unwrap_or_else(|| panic!("`{module}` has no place in the layer map"));
        for import in texts.iter().flat_map(|text| imports(text)) {
            let Some(layer) = layer_of(&import) else { continue };
            assert!(import == *module || layer < own, "`{module}` (layer {own}) imports `{import}` (layer {layer})");
        }
    }
}

#[test]
fn only_the_problem_module_names_the_status_of_a_failure() {
    let successes = ["StatusCode::OK", "StatusCode::CREATED", "StatusCode::ACCEPTED", "StatusCode::NO_CONTENT"];
    let mut all = BTreeMap::new();
    sources(&Path::new(env!("CARGO_MANIFEST_DIR")).join("src"), &mut all, None);
    let naming = |text: &&String| {
        let rest = successes.iter().fold((*text).clone(), |text, name| text.replace(name, ""));
        rest.contains("StatusCode::")
    };
    let texts: Vec<&String> = all.values().flatten().filter(naming).collect();
    assert_eq!(texts.len(), 1, "only api/problem.rs may name them");
    assert!(texts[0].starts_with("//! What the service says no with"));
}

#[test]
fn imports_are_found_in_every_form() {
    let source = "use crate::a::B; use crate::{c, d::{e, f}, g as h}; fn x() { crate::i::j() }";
    assert_eq!(imports(source), ["a", "c", "d", "g", "i"]);
}
