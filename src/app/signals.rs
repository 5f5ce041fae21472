//! Handling of signals. SIGINT and SIGTERM end the service: requests are still served for a pause, in which their senders read that it
//! is not ready; then the listener closes, and what is open is answered. SIGHUP has the keys, the certificate and the record of
//! requests read or opened again.

use crate::access::{AccessRecord, Keyring, RecordedEvent};
use crate::api::ApiState;
use crate::config::Settings;
use crate::server::Tls;
use anyhow::{Context, Result};
use mia::texts::hexadecimal;
use sha2::{Digest, Sha256};
use std::time::Duration;
use tokio_util::sync::CancellationToken;

/// Kind of shutdown that a signal asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum EndSignal {
    /// SIGINT: by a person, who need not wait for clients to notice.
    Interrupt,
    /// SIGTERM: by a supervisor.
    Terminate,
}

pub(super) struct Ending {
    /// Cancelled first: the service is not ready any more.
    pub(super) draining: CancellationToken,
    /// Time for which requests are still served after SIGTERM.
    pub(super) delay: Duration,
    /// Cancelled when the listener closes.
    pub(super) closing: CancellationToken,
}

impl Ending {
    /// Waits for a signal, and for the pause; when this is over, the listener is to close.
    pub(super) async fn listener_closes(self) {
        let pause = if signal().await == EndSignal::Terminate { self.delay } else { Duration::ZERO };
        tokio::spawn(async {
            signal().await;
            std::process::exit(1);
        });
        self.draining.cancel();
        let pause_seconds = pause.as_secs_f64();
        tracing::info!(
            pause_seconds,
            "not ready from now on; the listener closes after the pause, a second signal ends at once"
        );
        tokio::time::sleep(pause).await;
        tracing::info!("the listener closes, open requests are answered");
        self.closing.cancel();
    }
}

/// Ends some time after the listener has closed, whatever is still open.
pub(super) async fn impatience(closing: CancellationToken, grace: Duration) {
    closing.cancelled().await;
    tokio::time::sleep(grace).await;
}

/// Waits for SIGINT or SIGTERM.
async fn signal() -> EndSignal {
    let interrupt = tokio::signal::ctrl_c();
    #[cfg(unix)]
    {
        use tokio::signal::unix::{SignalKind, signal};
        match signal(SignalKind::terminate()) {
            Ok(mut terminate) => tokio::select! {
                _ = interrupt => EndSignal::Interrupt,
                _ = terminate.recv() => EndSignal::Terminate,
            },
            Err(error) => {
                tracing::warn!(%error, "SIGTERM cannot be caught");
                let _ = interrupt.await;
                EndSignal::Interrupt
            }
        }
    }
    #[cfg(not(unix))]
    {
        let _ = interrupt.await;
        EndSignal::Interrupt
    }
}

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

    /// Notes in the record that the service starts with these settings.
    pub fn note_start(&self, settings: &Settings) {
        let settings = format!("sha256:{}", hexadecimal(&Sha256::digest(format!("{settings:?}"))));
        let keys = self.keyring.iter().flat_map(Keyring::ids).collect();
        self.note(&RecordedEvent::Started { version: env!("CARGO_PKG_VERSION"), settings, keys });
    }

    fn note(&self, event: &RecordedEvent) {
        if let Some(record) = &self.record {
            record.note_event(event);
        }
    }

    /// The state of the routes, which lets in those that have a key and records what they ask.
    pub fn guard(&self, state: ApiState) -> ApiState {
        ApiState { keyring: self.keyring.clone(), record: self.record.clone(), ..state }
    }

    /// Notes that the service ends, and writes the rest of the record.
    pub fn finish(&self) {
        self.note(&RecordedEvent::Stopped);
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

    pub fn reload(&self) {
        if let Some(record) = &self.record {
            record.reopen();
            tracing::info!("the access record is opened again with its next entry");
        }
        let before = self.keyring.as_ref().map(Keyring::ids).unwrap_or_default();
        match self.keyring.as_ref().map(|keyring| keyring.reload().map(|_| keyring.ids())) {
            Some(Ok(keys)) => {
                tracing::info!(keys = keys.len(), "the keys were read again");
                let [added, removed] = [keys.difference(&before), before.difference(&keys)]
                    .map(|difference| difference.cloned().collect());
                self.note(&RecordedEvent::KeysRead { added, removed });
            }
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
