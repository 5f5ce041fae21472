//! Names the code that the numbers of a model come from, for what is kept of those numbers: a version is the same for all that
//! is built before the next one, and a changed kernel may give other bits.
//!
//! `NUMERICS` is the beginning of a SHA-256 over
//!
//! - the files of `src/models` and of the crate of kernels: Rust without comments, blank space, documentation and tests (see
//!   `build/rust_code.rs`), others as they are;
//! - `Cargo.lock` and the dependencies in `Cargo.toml`, that is the libraries called and their features;
//! - the compiler's version, the target and its features, the level of optimisation, the compiler's flags and the features.

#[path = "build/rust_code.rs"]
mod rust_code;

use sha2::{Digest, Sha256};
use std::error::Error;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::{env, fs, io};

/// Forward passes and statistics: the sources of the models and of the kernels for CPUs and GPUs.
const SOURCES: [&str; 3] = ["src/models", "../kernels/src", "../kernels/cuda"];

/// The libraries that they call.
const LIBRARIES: &str = "../../Cargo.lock";

/// Name the features of the libraries.
const MANIFESTS: [&str; 3] = ["Cargo.toml", "../kernels/Cargo.toml", "../../Cargo.toml"];

/// Variables in which cargo describes this build. A feature is a variable of its own.
const VARIABLES: [&str; 4] = ["TARGET", "CARGO_CFG_TARGET_FEATURE", "OPT_LEVEL", "CARGO_ENCODED_RUSTFLAGS"];

/// Prefix of the variable of every enabled feature.
const FEATURE: &str = "CARGO_FEATURE_";

fn main() -> Result<(), Box<dyn Error>> {
    for source in ["build.rs", "build", LIBRARIES].into_iter().chain(SOURCES).chain(MANIFESTS) {
        println!("cargo:rerun-if-changed={source}");
    }
    for variable in ["RUSTFLAGS", "CARGO_ENCODED_RUSTFLAGS"] {
        println!("cargo:rerun-if-env-changed={variable}");
    }
    let mut stamp = Stamp(Sha256::new());
    let files: io::Result<Vec<_>> = SOURCES.into_iter().map(|directory| source_files(Path::new(directory))).collect();
    for file in files?.into_iter().flatten() {
        let content = fs::read(&file)?;
        if file.extension().is_some_and(|extension| extension == "rs") {
            let code =
                rust_code::code(std::str::from_utf8(&content)?).map_err(|e| format!("{}: {e}", file.display()))?;
            stamp.add(&file.display().to_string(), code.to_string().as_bytes());
        } else {
            stamp.add(&file.display().to_string(), &content);
        }
    }
    stamp.add(LIBRARIES, &fs::read(LIBRARIES)?);
    for manifest in MANIFESTS {
        stamp.add(manifest, dependencies(&fs::read_to_string(manifest)?).as_bytes());
    }
    stamp.add("rustc", &Command::new(env::var_os("RUSTC").ok_or("RUSTC is unset")?).arg("-V").output()?.stdout);
    let mut features: Vec<_> = env::vars_os()
        .filter_map(|(name, _)| name.into_string().ok())
        .filter(|name| name.starts_with(FEATURE))
        .collect();
    features.sort();
    for variable in VARIABLES.into_iter().chain(features.iter().map(String::as_str)) {
        // Not every target has features of its own.
        stamp.add(variable, env::var_os(variable).unwrap_or_default().as_encoded_bytes());
    }
    println!("cargo:rustc-env=NUMERICS={}", stamp.hex());
    Ok(())
}

/// The lines of a manifest's table of dependencies, or of its workspace's, without comments.
fn dependencies(manifest: &str) -> String {
    let begins = |line: &&str| !matches!(*line, "[dependencies]" | "[workspace.dependencies]");
    let lines = manifest.lines().skip_while(begins).skip(1);
    lines.take_while(|line| !line.starts_with('[')).filter(|line| !line.starts_with('#')).collect()
}

/// The files of a directory in the order of their paths, without those of tests: `tests.rs`, and all in `tests/`.
fn source_files(directory: &Path) -> io::Result<Vec<PathBuf>> {
    let mut files = Vec::new();
    let entries: io::Result<Vec<_>> = fs::read_dir(directory)?.map(|entry| Ok(entry?.path())).collect();
    for path in entries?.into_iter().filter(|path| path.file_stem().is_some_and(|name| name != "tests")) {
        if path.is_dir() {
            files.extend(source_files(&path)?);
        } else {
            files.push(path);
        }
    }
    files.sort();
    Ok(files)
}

/// A digest over named contents.
struct Stamp(Sha256);

impl Stamp {
    /// Lengths are part of it, so that nothing can move from one content to the next unseen.
    fn add(&mut self, name: &str, content: &[u8]) {
        for bytes in [name.as_bytes(), content] {
            self.0.update((bytes.len() as u64).to_le_bytes());
            self.0.update(bytes);
        }
    }

    /// The first 16 hexadecimal digits.
    fn hex(self) -> String {
        self.0.finalize()[..8].iter().map(|byte| format!("{byte:02x}")).collect()
    }
}
