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

/// Maximum number of threads for blocking calls, each of which reserves 2 MiB of address space for its stack. Hundreds of lookups on
/// disk may wait at once, for which a few threads are enough; opening a model and tuning one each occupy a thread for minutes.
const MAX_BLOCKING_THREADS: usize = 128;

/// Runs a command to its end.
pub fn block_on<T>(command: impl Future<Output = Result<T>>) -> Result<T> {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .max_blocking_threads(MAX_BLOCKING_THREADS)
        .build()
        .context("cannot start the async runtime")?;
    let ended = runtime.block_on(command);
    // A thread may still sit in a read from a terminal or pipe that never ends.
    runtime.shutdown_background();
    ended
}
