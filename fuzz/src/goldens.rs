//! The golden checkpoints of the tests, in memory.

use std::path::{Path, PathBuf};
use std::sync::OnceLock;

/// The files of a model.
pub type Files = Vec<(String, Vec<u8>)>;

/// One golden checkpoint.
pub struct Golden {
    /// Weights and tokenizer, without `config.json`.
    pub files: Files,
}

impl Golden {
    /// The files with this configuration.
    #[must_use]
    pub fn with_config(&self, config: &[u8]) -> Files {
        let config = ("config.json".to_owned(), config.to_vec());
        self.files.iter().cloned().chain([config]).collect()
    }
}

/// All golden checkpoints, in the order of their names.
///
/// # Panics
/// If the fixtures of the tests cannot be read.
pub fn goldens() -> &'static [Golden] {
    static GOLDENS: OnceLock<Vec<Golden>> = OnceLock::new();
    GOLDENS.get_or_init(|| {
        let entries = directory().read_dir().expect("the fixtures are there");
        let paths = entries.map(|entry| entry.expect("the fixtures can be listed").path());
        let mut checkpoints: Vec<PathBuf> = paths.filter(|path| path.is_dir()).collect();
        checkpoints.sort();
        checkpoints.iter().map(|path| read(path)).collect()
    })
}

/// Where the golden checkpoints are.
pub fn directory() -> PathBuf {
    PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../tests/fixtures/goldens"))
}

fn read(checkpoint: &Path) -> Golden {
    let mut files = Files::new();
    for entry in checkpoint.read_dir().expect("a fixture can be listed") {
        let path = entry.expect("a fixture can be listed").path();
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        if name.starts_with("model") || name == "pytorch_model.bin" || name == "tokenizer.json" {
            files.push((name, std::fs::read(&path).expect("a fixture can be read")));
        }
    }
    Golden { files }
}
