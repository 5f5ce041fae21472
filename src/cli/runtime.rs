//! The async runtime of a command.

use anyhow::{Context, Result};

/// Waits until the user interrupts the command.
pub async fn interrupted() {
    if tokio::signal::ctrl_c().await.is_err() {
        // It cannot be caught, and ends the process by itself.
        std::future::pending().await
    }
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
