//! The demo models, compiled into the program: see `models/demo/README.md`.

use super::files::ModelFiles;

macro_rules! embedded {
    ($directory:literal) => {
        [
            ("config.json", include_bytes!(concat!("../../../../models/", $directory, "/config.json"))),
            ("model.safetensors", include_bytes!(concat!("../../../../models/", $directory, "/model.safetensors"))),
            ("tokenizer.json", include_bytes!(concat!("../../../../models/", $directory, "/tokenizer.json"))),
        ]
    };
}

// Statics, since a constant is copied into each unit of code that names it.
static DEMO_FILES: [(&str, &[u8]); 3] = embedded!("demo");
static REFERENCE_FILES: [(&str, &[u8]); 3] = embedded!("demo-reference");

/// Trained on background and members.
pub const DEMO: ModelFiles = ModelFiles::Embedded(&DEMO_FILES);

/// Smaller, and trained on the background only.
pub const DEMO_REFERENCE: ModelFiles = ModelFiles::Embedded(&REFERENCE_FILES);
