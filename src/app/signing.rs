//! The key that signs reports.

use crate::config::Settings;
use anyhow::{Context, Result};
use attestation::SigningKey;
use std::path::Path;

/// Reads the key that the settings name; `None` if they name none.
///
/// # Errors
/// A file that cannot be read, or holds no such key.
pub fn signing_key(settings: &Settings) -> Result<Option<SigningKey>> {
    settings.signing.key_file.as_deref().map(read_signing_key).transpose().context("`signing.key_file`")
}

/// Reads a private key from its file.
///
/// # Errors
/// A file that cannot be read, or holds no such key.
pub fn read_signing_key(file: &Path) -> Result<SigningKey> {
    let pem = std::fs::read_to_string(file).with_context(|| format!("cannot read {}", file.display()))?;
    SigningKey::from_pem(&pem).with_context(|| file.display().to_string())
}
