//! Waiting for what device threads do.

use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// Waits for something that must come; the bound is only there so that a failing test ends.
pub async fn eventually(mut happened: impl FnMut() -> bool) {
    let end = Instant::now() + Duration::from_secs(60);
    while !happened() {
        assert!(Instant::now() < end, "what was waited for did not come");
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
}

pub fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
