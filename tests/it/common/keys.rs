//! A file of keys, and the service that asks for one of them.

use super::app::App;
use super::client::Client;
use pdr_audit::access::{ClientLimits, KeyEntry, KeyFile, KeyScope, Secret};
use pdr_audit::config::Settings;
use std::path::PathBuf;
use tempfile::TempDir;
use time::OffsetDateTime;

/// Scopes of a client that scores texts and submits jobs.
pub const SCORING: &[KeyScope] = &[KeyScope::Score, KeyScope::Audit];

/// The service with a client of each name, who scores texts and submits jobs; with the keys, whose directory it uses.
pub async fn clients<const COUNT: usize>(names: [&str; COUNT]) -> (Keys, App, [Client; COUNT]) {
    let mut keys = Keys::new();
    let secrets = names.map(|name| keys.add(name, SCORING, ClientLimits::default()));
    let app = keys.app().await;
    let clients = secrets.map(|secret| app.with_key(&secret));
    (keys, app, clients)
}

/// A file of keys in a directory of its own.
pub struct Keys {
    pub directory: TempDir,
    pub file: KeyFile,
}

impl Keys {
    pub fn new() -> Self {
        Self { directory: tempfile::tempdir().unwrap(), file: KeyFile::default() }
    }

    pub fn path(&self) -> PathBuf {
        self.directory.path().join("keys.toml")
    }

    /// Where requests are recorded.
    pub fn record(&self) -> PathBuf {
        self.directory.path().join("access.ndjson")
    }

    /// Adds a key and writes the file; its secret.
    pub fn add(&mut self, name: &str, scopes: &[KeyScope], limits: ClientLimits) -> String {
        let secret = Secret::generate().unwrap();
        let digest = secret.digest();
        self.file.keys.push(KeyEntry {
            id: digest.key_id(),
            name: name.to_owned(),
            digest,
            scopes: scopes.to_vec(),
            created: OffsetDateTime::now_utc(),
            expires: None,
            limits,
        });
        self.write();
        secret.reveal().to_owned()
    }

    pub fn write(&self) {
        self.file.write(&self.path()).unwrap();
    }

    /// The service that reads the file, with a record.
    pub async fn app(&self) -> App {
        self.app_with(|_| ()).await
    }

    /// The same with other settings as well.
    pub async fn app_with(&self, change: impl FnOnce(&mut Settings)) -> App {
        App::with(|settings| {
            self.ask_for_them(settings);
            change(settings);
        })
        .await
    }

    /// Has the service read the file, and record requests.
    pub fn ask_for_them(&self, settings: &mut Settings) {
        settings.auth.keys = Some(self.path());
        settings.auth.record = Some(self.record());
    }
}
