//! The async runtime of a command.

use anyhow::{Context, Result};

/// Waits until the user or a supervisor interrupts the command.
pub async fn interrupted() {
    tokio::select! {
        Ok(()) = tokio::signal::ctrl_c() => {}
        Some(()) = terminated() => {}
        // They cannot be caught, and end the process by themselves.
        else => std::future::pending().await,
    }
}

/// Waits for SIGTERM, where there are signals.
#[cfg(unix)]
async fn terminated() -> Option<()> {
    use tokio::signal::unix::{SignalKind, signal};
    signal(SignalKind::terminate()).ok()?.recv().await
}

#[cfg(not(unix))]
async fn terminated() -> Option<()> {
    None
}

/// Runs a command to its end.
pub fn block_on<T>(command: impl Future<Output = Result<T>>) -> Result<T> {
    let runtime =
        tokio::runtime::Builder::new_multi_thread().enable_all().build().context("cannot start the async runtime")?;
    let ended = runtime.block_on(command);
    // A thread may still sit in a read from a terminal or pipe that never ends.
    runtime.shutdown_background();
    ended
}
