//! Retries with backoff: what succeeds later by itself is tried again.

use std::fmt::Display;
use std::time::Duration;

/// Duration of the first pause; each later one is twice as long as the one before.
const FIRST_PAUSE: Duration = Duration::from_millis(50);
/// The longest pause: a model that comes back is seen within this.
const LONGEST_PAUSE: Duration = Duration::from_secs(5);

/// Pauses, each twice as long as the one before, up to the longest.
pub struct Pauses(Duration);

impl Default for Pauses {
    fn default() -> Self {
        Self(FIRST_PAUSE)
    }
}

impl Pauses {
    pub fn next_pause(&mut self) -> Duration {
        let longer = (self.0 * 2).min(LONGEST_PAUSE);
        std::mem::replace(&mut self.0, longer)
    }
}

/// Calls `attempt` until it succeeds or fails for good. An error that is worth another attempt is waited out, for as long as it
/// takes: a model that is being unloaded finishes what is queued first, and to load it again may take minutes. Dropping the
/// future ends the wait at once.
///
/// # Errors
/// The first error that another attempt would not change.
pub async fn until_final<T, E: Display, F>(is_retryable: fn(&E) -> bool, attempt: impl Fn() -> F) -> Result<T, E>
where
    F: Future<Output = Result<T, E>>,
{
    let mut pauses = Pauses::default();
    loop {
        match attempt().await {
            Err(error) if is_retryable(&error) => {
                let pause = pauses.next_pause();
                tracing::debug!(%error, ?pause, "a job waits");
                tokio::time::sleep(pause).await;
            }
            ended => return ended,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::cell::Cell;
    use std::time::Instant;

    fn passes(error: &&str) -> bool {
        *error == "passes"
    }

    #[test]
    fn pauses_double_up_to_the_longest() {
        let mut pauses = Pauses::default();
        let pauses: Vec<u128> = (0..10).map(|_| pauses.next_pause().as_millis()).collect();
        assert_eq!(pauses, [50, 100, 200, 400, 800, 1_600, 3_200, 5_000, 5_000, 5_000]);
    }

    #[tokio::test]
    async fn what_passes_is_waited_for() {
        let (attempts, begun) = (Cell::new(0), Instant::now());
        let attempt = || async {
            attempts.set(attempts.get() + 1);
            match attempts.get() {
                1 | 2 => Err("passes"),
                3 => Ok("done"),
                more => panic!("attempt {more} after a success"),
            }
        };
        assert_eq!(until_final(passes, attempt).await, Ok("done"));
        assert!(begun.elapsed() >= Duration::from_millis(150));
    }

    #[tokio::test]
    async fn what_would_fail_again_is_not_tried_again() {
        let attempts = Cell::new(0);
        let attempt = || async {
            attempts.set(attempts.get() + 1);
            Err::<(), _>("stays")
        };
        assert_eq!(until_final(passes, attempt).await, Err("stays"));
        assert_eq!(attempts.get(), 1);
    }
}
