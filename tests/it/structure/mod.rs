//! The structure of the sources: layers, no circles of files or of folders, short files, unique names of types, descriptive
//! names.
//!
//! That crates make no circle is Cargo's matter; here each library of the workspace is read from its `lib.rs` on, without what
//! is under `#[cfg(test)]`. A file *imports* another one where it names an item that the other defines: in a `use`, in a path
//! in the code or in a macro's arguments. Names are followed through re-exports and globs to the file that defines them. It
//! is no import
//!
//! - to declare a module (`mod child;`) or to name one without an item of it (`use crate::engine;`);
//! - to re-export what a child module has (`pub use child::Item;`), unless the file uses the item as well.
//!
//! In a *circle of files* each imports another one of them, and the last the first; a `mod.rs` is a file as any other. In a
//! *circle of folders* the files and folders that a folder holds do so, where a folder stands for all that is in it.
//!
//! Every check is a function over sources; `planted.rs` shows for each that it finds violations in sources written for that.

mod circles;
mod imports;
mod names;
mod planted;
#[path = "../../../crates/lm/build/rust_code.rs"]
mod rust_code;
mod sources;

use circles::{circles_of_files, circles_of_folders};
use imports::imports;
use names::{lines_of_code, types_defined_twice, vague_names};
use sources::Sources;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

/// Modules of a library, from the lowest layer up. Modules of one layer do not import each other.
type Layers = &'static [&'static [&'static str]];

const SERVICE: Layers = &[
    &["config", "new_file", "priority", "retry", "slots", "table", "telemetry", "wire"],
    &["access", "server"],
    &["served"],
    &["pool"],
    &["engine"],
    &["scorer", "store"],
    &["datasets"],
    &["jobs", "samples"],
    &["finetunes", "memorization"],
    &["audits"],
    &["canaries"],
    &["api"],
    &["app"],
    &["cli"],
];

const LM: Layers = &[&["panics"], &["hub", "tokenizer"], &["chat", "models"]];

const MIA: Layers = &[&["json", "random", "texts", "token_stats"], &["methods", "statistics"]];

const DOCUMENTS: Layers = &[&["limits"], &["error"], &["clean", "read"], &["cut"], &["passages"]];

/// The libraries by the directory of their sources, with their layers where they have some.
const LIBRARIES: [(&str, Option<Layers>); 7] = [
    ("src", Some(SERVICE)),
    ("crates/attestation/src", None),
    ("crates/pages/src", None),
    ("crates/documents/src", Some(DOCUMENTS)),
    ("crates/kernels/src", None),
    ("crates/lm/src", Some(LM)),
    ("crates/mia/src", Some(MIA)),
];

/// The longest file, in lines of code. A module of tests inside a file does not count; a file of tests is a file.
const LONGEST: usize = 300;

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// The sources of the library in a directory.
fn library(directory: &str) -> Sources {
    Sources::read(&|path| std::fs::read_to_string(root().join(directory).join(path)).ok())
}

/// Every Rust file of the libraries, tests too, with its text.
fn texts() -> Vec<(PathBuf, String)> {
    LIBRARIES.iter().flat_map(|(directory, _)| texts_inside(&root().join(directory))).collect()
}

fn texts_inside(directory: &Path) -> Vec<(PathBuf, String)> {
    let paths = std::fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().path());
    paths
        .flat_map(|path| match path.is_dir() {
            true => texts_inside(&path),
            false if path.extension().is_some_and(|extension| extension == "rs") => {
                let text = std::fs::read_to_string(&path).unwrap();
                vec![(path.strip_prefix(root()).unwrap().to_owned(), text)]
            }
            false => Vec::new(),
        })
        .collect()
}

/// Returns the top module that a file belongs to, or `None` for `lib.rs`.
fn top_module(path: &str) -> Option<&str> {
    let name = path.split('/').next()?;
    Some(name.strip_suffix(".rs").unwrap_or(name)).filter(|name| *name != "lib")
}

/// Imports that do not lead to a lower layer, and modules that have no layer.
fn imports_upward(sources: &Sources, layers: &[&[&str]]) -> Vec<String> {
    let layer = |module: &str| layers.iter().position(|layer| layer.contains(&module));
    let mut faults = BTreeSet::new();
    for (source, imported) in sources.files.iter().zip(imports(sources)) {
        let Some(module) = top_module(&source.path) else { continue };
        let Some(here) = layer(module) else {
            faults.insert(format!("`{module}` has no layer"));
            continue;
        };
        for imported in imported.into_iter().map(|file| &sources.files[file].path) {
            let other = top_module(imported).unwrap_or("lib");
            if other != module && layer(other).is_none_or(|other| other >= here) {
                faults.insert(format!("{} imports {imported}", source.path));
            }
        }
    }
    faults.into_iter().collect()
}

fn assert_none(what: &str, faults: &[String]) {
    assert!(faults.is_empty(), "{} {what}:\n{}", faults.len(), faults.join("\n"));
}

/// In one test, since it reads each library once.
#[test]
fn layers_circles_and_names_of_types() {
    for (directory, layers) in LIBRARIES {
        let sources = library(directory);
        assert!(sources.files.len() > 5, "only {} files were read in {directory}", sources.files.len());
        let upward = layers.map(|layers| imports_upward(&sources, layers)).unwrap_or_default();
        assert_none(&format!("imports in {directory} that lead to no lower layer"), &upward);
        assert_none(&format!("circles of files in {directory}"), &circles_of_files(&sources));
        assert_none(&format!("circles of folders in {directory}"), &circles_of_folders(&sources));
        let twice = types_defined_twice(&sources);
        assert_none(&format!("names of types in {directory} that are defined more than once"), &twice);
    }
}

#[test]
fn no_file_is_too_long() {
    let length = |(path, text): (PathBuf, String)| (lines_of_code(&text), path.display().to_string());
    let mut lengths: Vec<_> = texts().into_iter().map(length).filter(|(lines, _)| *lines > LONGEST).collect();
    lengths.sort();
    let lines: Vec<_> = lengths.into_iter().map(|(lines, path)| format!("{path}: {lines} lines of code")).collect();
    assert_none("files that are too long", &lines);
}

#[test]
fn functions_and_bindings_have_descriptive_names() {
    let mut faults = Vec::new();
    for (path, text) in texts() {
        let names = vague_names(&syn::parse_file(&text).unwrap());
        faults.extend(names.into_iter().map(|name| format!("{}: `{name}`", path.display())));
    }
    assert_none("vague names", &faults);
}

#[test]
fn only_the_problem_module_names_the_status_of_a_failure() {
    let successes =
        ["OK", "CREATED", "ACCEPTED", "NO_CONTENT", "NOT_MODIFIED"].map(|name| format!("StatusCode::{name}"));
    let names_failure = |(_, text): &(PathBuf, String)| {
        let rest = successes.iter().fold(text.clone(), |text, name| text.replace(name, ""));
        rest.contains("StatusCode::")
    };
    let files: Vec<_> = texts().into_iter().filter(names_failure).map(|(path, _)| path).collect();
    assert_eq!(files, [Path::new("src/api/problem.rs")]);
}
