//! Access control and its record: keys, the certificate and the record of requests. Their files are read again on SIGHUP.

use crate::access::{AccessRecord, Keyring};
use crate::api::ApiState;
use crate::config::Settings;
use crate::server::Tls;
use anyhow::{Context, Result};

/// The parts that decide who gets in; each may be missing.
#[derive(Clone)]
pub struct EntryControl {
    keyring: Option<Keyring>,
    record: Option<AccessRecord>,
    pub tls: Option<Tls>,
}

impl EntryControl {
    /// Opens the files that the settings name.
    ///
    /// # Errors
    /// The first that cannot be used.
    pub fn open(settings: &Settings) -> Result<Self> {
        let keyring = settings.auth.keys.as_deref().map(Keyring::open).transpose().context("`auth.keys`")?;
        let record = settings.auth.record.as_deref().map(AccessRecord::open).transpose().context("`auth.record`")?;
        let tls = settings.server.tls.clone().map(Tls::open).transpose().context("`server.tls`")?;
        Ok(Self { keyring, record, tls })
    }

    /// The state of the routes, which lets in those that have a key and records what they ask.
    pub fn guard(&self, state: ApiState) -> ApiState {
        ApiState { keyring: self.keyring.clone(), record: self.record.clone(), ..state }
    }

    /// Writes what the record still has to write.
    pub fn finish(&self) {
        if let Some(record) = &self.record {
            record.finish();
        }
    }

    /// Reads the files again on each SIGHUP from now on. A file that cannot be used changes nothing.
    #[cfg(unix)]
    pub fn reload_on_hangup(&self) {
        use tokio::signal::unix::{SignalKind, signal};
        let this = self.clone();
        // Caught before this returns: a signal that nobody catches ends the process.
        match signal(SignalKind::hangup()) {
            Ok(mut hangups) => {
                tokio::spawn(async move {
                    while hangups.recv().await.is_some() {
                        this.reload();
                    }
                });
            }
            Err(error) => tracing::warn!(%error, "SIGHUP cannot be caught"),
        }
    }

    /// There is no such signal.
    #[cfg(not(unix))]
    pub fn reload_on_hangup(&self) {}

    /// Reads the files again.
    pub fn reload(&self) {
        if let Some(record) = &self.record {
            record.reopen();
            tracing::info!("the access record is opened again with its next entry");
        }
        match self.keyring.as_ref().map(Keyring::reload) {
            Some(Ok(keys)) => tracing::info!(keys, "the keys were read again"),
            Some(Err(error)) => tracing::error!(%error, "the keys stay as they were"),
            None => {}
        }
        match self.tls.as_ref().map(Tls::reload) {
            Some(Ok(())) => tracing::info!("the certificate was read again"),
            Some(Err(error)) => tracing::error!(%error, "the certificate stays as it was"),
            None => {}
        }
    }
}
