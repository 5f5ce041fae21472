//! The demonstration model, which the command line uses where it is named, or for the texts that ship with it.

use crate::config::{DEMO, DEMO_REFERENCE, Settings};
use anyhow::{Result, bail};
use mia::texts::hexadecimal;
use sha2::{Digest, Sha256};
use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

/// The size and the SHA-256 of `models/demo/audit.jsonl`.
const DEMO_TEXTS: (u64, &str) = (315_480, "c6342867c64bbe7d15423c1167cbe55813ee3d5252f592a61d57d9fd1e55ffcd");

/// The remedy where no model is named.
const REMEDY: &str = "the id of a configured model, a directory, or a repository on the Hub as in \
                      `EleutherAI/pythia-160m`; `demo` is a small model for trying things out";

/// Checks that a model is named by a flag or by the settings, where the texts are others than those of the demonstration.
///
/// # Errors
/// Where no model is named, with the remedy.
pub fn check_model_of_files(settings: &Settings, is_named: bool, files: &[&Path]) -> Result<()> {
    if is_named || names_a_model(settings) || (!files.is_empty() && files.iter().all(|file| is_demo_file(file))) {
        return Ok(());
    }
    bail!("no model is named: add --model MODEL, {REMEDY}")
}

/// Checks that a model is named by the body of a request or by the settings.
///
/// # Errors
/// Where no model is named, with the remedy.
pub fn check_model_of_request(settings: &Settings, is_named: bool) -> Result<()> {
    if is_named || names_a_model(settings) {
        return Ok(());
    }
    bail!("the request names no model: add the field `model`, {REMEDY}")
}

/// Says on standard error that a model is the demonstration, where it is.
pub fn announce(settings: &Settings, id: &str) {
    let base = id.split(':').next().unwrap_or(id);
    if settings.models.is_empty() && [DEMO, DEMO_REFERENCE].contains(&base) {
        eprintln!(
            "note: `{base}` is a demonstration model trained on generated text; its scores say nothing about other models"
        );
    }
}

fn names_a_model(settings: &Settings) -> bool {
    !settings.models.is_empty() || settings.engine.default_model.is_some()
}

/// Returns true if a file has the content of the texts that ship with the demonstration model.
fn is_demo_file(path: &Path) -> bool {
    let (size, digest) = DEMO_TEXTS;
    let has_size = path.metadata().is_ok_and(|metadata| metadata.is_file() && metadata.len() == size);
    has_size && sha256(path, size).is_ok_and(|computed| computed == digest)
}

/// The SHA-256 of the first bytes of a file, in hexadecimal digits.
fn sha256(path: &Path, size: u64) -> io::Result<String> {
    let mut content = Vec::new();
    File::open(path)?.take(size).read_to_end(&mut content)?;
    Ok(hexadecimal(&Sha256::digest(&content)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::{EngineSettings, ModelSettings};

    fn demo_file() -> std::path::PathBuf {
        Path::new(env!("CARGO_MANIFEST_DIR")).join("models/demo/audit.jsonl")
    }

    #[test]
    fn a_model_is_named_unless_the_texts_are_those_of_the_demonstration() {
        let directory = tempfile::tempdir().unwrap();
        let changed = directory.path().join("audit.jsonl");
        let mut content = std::fs::read(demo_file()).unwrap();
        content[20] ^= 1;
        std::fs::write(&changed, content).unwrap();
        let (demo, absent, piped) = (demo_file(), Path::new("absent.jsonl"), Path::new("-"));
        let unnamed = Settings::default();
        for (is_named, files, is_accepted) in [
            (false, vec![demo.as_path()], true),
            (false, vec![demo.as_path(), changed.as_path()], false),
            (false, vec![changed.as_path()], false),
            (false, vec![absent], false),
            (false, vec![piped], false),
            (false, vec![], false),
            (true, vec![piped], true),
        ] {
            let checked = check_model_of_files(&unnamed, is_named, &files);
            assert_eq!(checked.is_ok(), is_accepted, "{files:?}");
        }
        let error = check_model_of_files(&unnamed, false, &[piped]).unwrap_err().to_string();
        assert!(error.starts_with("no model is named: add --model MODEL"), "{error}");
        let error = check_model_of_request(&unnamed, false).unwrap_err().to_string();
        assert!(error.starts_with("the request names no model: add the field `model`"), "{error}");
        assert!(check_model_of_request(&unnamed, true).is_ok());
    }

    #[test]
    fn the_settings_may_name_the_model() {
        let engine = EngineSettings { default_model: Some(DEMO.to_owned()), ..EngineSettings::default() };
        let by_default = Settings { engine, ..Settings::default() };
        let by_list = Settings { models: vec![ModelSettings::default()], ..Settings::default() };
        for settings in [by_default, by_list] {
            assert!(check_model_of_files(&settings, false, &[Path::new("-")]).is_ok());
            assert!(check_model_of_request(&settings, false).is_ok());
        }
    }
}
