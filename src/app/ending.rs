//! Shutdown of the service on a signal: requests are still served for a pause, in which their senders read that the service is
//! not ready; then the listener closes, and what is open is answered.

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

/// The end of the service.
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
