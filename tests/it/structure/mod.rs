//! The structure of the sources: layers, no circles of files, short files, unique names of types, descriptive names.
//!
//! The library is read from `src/lib.rs` on, without what is under `#[cfg(test)]`. A file *imports* another one where it names an
//! item that the other defines: in a `use`, in a path in the code or in a macro's arguments. Names are followed through
//! re-exports and globs to the file that defines them. It is no import
//!
//! - to declare a module (`mod child;`) or to name one without an item of it (`use crate::engine;`);
//! - to re-export what a child module has (`pub use child::Item;`), unless the file uses the item as well.
//!
//! In a *circle of files* each imports another one of them, and the last the first. That a file takes something from the `mod.rs`
//! of a folder it is in makes no circle: a module owns its children, which share what it defines.
//!
//! Every check is a function over sources; `planted.rs` shows for each that it finds violations in sources written for that.

mod imports;
mod names;
mod planted;
#[path = "../../../crates/lm/build/rust_code.rs"]
mod rust_code;
mod sources;

use imports::{circles, imports};
use names::{lines_of_code, types_defined_twice, vague_names};
use sources::Sources;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

/// Modules of `src/`, from the lowest layer up. Modules of one layer do not import each other.
const LAYERS: &[&[&str]] = &[
    &["config", "hub", "new_file", "random", "retry", "table", "telemetry", "texts", "token_stats", "wire"],
    &["access", "methods", "models", "server", "statistics", "tokenizer"],
    &["served"],
    &["pool"],
    &["engine"],
    &["scorer", "store"],
    &["datasets"],
    &["jobs", "samples"],
    &["finetunes", "memorization"],
    &["audits"],
    &["api"],
    &["app"],
    &["cli"],
];

/// The longest file, in lines of code. A module of tests inside a file does not count; a file of tests is a file.
const LONGEST: usize = 300;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("src")
}

/// The library's sources.
fn library() -> Sources {
    Sources::read(&|path| std::fs::read_to_string(root().join(path)).ok())
}

/// Every Rust file of a directory, tests too, with its text.
fn texts(directory: &Path) -> Vec<(PathBuf, String)> {
    let paths = std::fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().path());
    paths
        .flat_map(|path| match path.is_dir() {
            true => texts(&path),
            false if path.extension().is_some_and(|extension| extension == "rs") => {
                vec![(path.clone(), std::fs::read_to_string(&path).unwrap())]
            }
            false => Vec::new(),
        })
        .collect()
}

/// The module of `src/` that a file belongs to; none for `lib.rs`.
fn top_module(path: &str) -> Option<&str> {
    let name = path.split('/').next()?;
    Some(name.strip_suffix(".rs").unwrap_or(name)).filter(|name| *name != "lib")
}

/// Imports that do not lead to a lower layer, and modules that have no layer.
fn imports_upward(sources: &Sources, layers: &[&[&str]]) -> Vec<String> {
    let layer = |module: &str| layers.iter().position(|layer| layer.contains(&module));
    let mut faults = BTreeSet::new();
    for (file, source) in sources.files.iter().enumerate() {
        let Some(module) = top_module(&source.path) else { continue };
        let Some(here) = layer(module) else {
            faults.insert(format!("`{module}` has no layer"));
            continue;
        };
        for imported in imports(sources, file).into_iter().map(|file| &sources.files[file].path) {
            let other = top_module(imported).unwrap_or("lib");
            if other != module && layer(other).is_none_or(|other| other >= here) {
                faults.insert(format!("{} imports {imported}", source.path));
            }
        }
    }
    faults.into_iter().collect()
}

/// Groups of files that import each other, as lines of text.
fn circles_of_files(sources: &Sources) -> Vec<String> {
    let but_enclosing = |file: usize| {
        let imports = imports(sources, file).into_iter();
        imports.filter(|&other| !sources.encloses(other, file)).collect::<BTreeSet<_>>()
    };
    let imports: Vec<_> = (0..sources.files.len()).map(but_enclosing).collect();
    let path = |file: usize| sources.files[file].path.as_str();
    let arrows = |circle: &[usize]| {
        let arrow = |&file: &usize| {
            let others: Vec<_> =
                imports[file].iter().filter(|other| circle.contains(other)).map(|&f| path(f)).collect();
            format!("\n    {} imports {}", path(file), others.join(", "))
        };
        format!("{} files{}", circle.len(), circle.iter().map(arrow).collect::<String>())
    };
    circles(&imports).iter().map(|circle| arrows(circle)).collect()
}

fn assert_none(what: &str, faults: &[String]) {
    assert!(faults.is_empty(), "{} {what}:\n{}", faults.len(), faults.join("\n"));
}

#[test]
fn modules_import_only_from_layers_below() {
    let sources = library();
    assert!(sources.files.len() > 100, "only {} files were read", sources.files.len());
    assert_none("imports that lead to no lower layer", &imports_upward(&sources, LAYERS));
}

#[test]
fn no_files_import_each_other_in_a_circle() {
    assert_none("circles of files", &circles_of_files(&library()));
}

#[test]
fn no_type_is_defined_twice() {
    assert_none("names of types that are defined more than once", &types_defined_twice(&library()));
}

#[test]
fn no_file_is_too_long() {
    let length = |(path, text): (PathBuf, String)| (lines_of_code(&text), path.display().to_string());
    let mut lengths: Vec<_> = texts(&root()).into_iter().map(length).filter(|(lines, _)| *lines > LONGEST).collect();
    lengths.sort();
    let lines: Vec<_> = lengths.into_iter().map(|(lines, path)| format!("{path}: {lines} lines of code")).collect();
    assert_none("files that are too long", &lines);
}

#[test]
fn functions_and_bindings_have_descriptive_names() {
    let mut faults = Vec::new();
    for (path, text) in texts(&root()) {
        let names = vague_names(&syn::parse_file(&text).unwrap());
        faults.extend(names.into_iter().map(|name| format!("{}: `{name}`", path.display())));
    }
    assert_none("vague names", &faults);
}

#[test]
fn only_the_problem_module_names_the_status_of_a_failure() {
    let successes = ["StatusCode::OK", "StatusCode::CREATED", "StatusCode::ACCEPTED", "StatusCode::NO_CONTENT"];
    let names_failure = |(_, text): &(PathBuf, String)| {
        let rest = successes.iter().fold(text.clone(), |text, name| text.replace(name, ""));
        rest.contains("StatusCode::")
    };
    let files: Vec<_> = texts(&root()).into_iter().filter(names_failure).map(|(path, _)| path).collect();
    assert_eq!(files, [root().join("api/problem.rs")]);
}
