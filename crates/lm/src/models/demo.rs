//! The demo models, compiled into the program: see `models/demo/README.md`.

use super::files::ModelFiles;

macro_rules! embedded {
    ($directory:literal) => {
        ModelFiles::Embedded(&[
            ("config.json", include_bytes!(concat!("../../../../models/", $directory, "/config.json"))),
            ("model.safetensors", include_bytes!(concat!("../../../../models/", $directory, "/model.safetensors"))),
            ("tokenizer.json", include_bytes!(concat!("../../../../models/", $directory, "/tokenizer.json"))),
        ])
    };
}

/// Trained on background and members.
pub const DEMO: ModelFiles = embedded!("demo");

/// Smaller, and trained on the background only.
pub const DEMO_REFERENCE: ModelFiles = embedded!("demo-reference");
