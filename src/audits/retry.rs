//! Retries with backoff: what succeeds later by itself is tried again.

use super::error::AuditFailure;
use std::time::Duration;

/// How long the first pause is; each one after it is twice as long.
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
    /// The next pause.
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
pub async fn until_final<T, F>(attempt: impl Fn() -> F) -> Result<T, AuditFailure>
where
    F: Future<Output = Result<T, AuditFailure>>,
{
    let mut pauses = Pauses::default();
    loop {
        match attempt().await {
            Err(failure) if failure.is_retryable() => {
                let pause = pauses.next_pause();
                tracing::debug!(%failure, ?pause, "an audit waits");
                tokio::time::sleep(pause).await;
            }
            ended => return ended,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::Refusal;
    use crate::scorer::ScorerError;
    use std::cell::Cell;
    use std::time::Instant;

    fn refused<T>(refusal: Refusal) -> Result<T, AuditFailure> {
        Err(ScorerError::Refused(refusal).into())
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
                1 => refused(Refusal::Unloading),
                2 => refused(Refusal::NotOpened("demo".to_owned())),
                3 => Ok("scored"),
                more => panic!("attempt {more} after a success"),
            }
        };
        assert_eq!(until_final(attempt).await.expect("a success"), "scored");
        assert!(begun.elapsed() >= Duration::from_millis(150));
    }

    #[tokio::test]
    async fn what_would_fail_again_is_not_tried_again() {
        for refusal in
            [Refusal::ModelFailed("broken".to_owned()), Refusal::Draining, Refusal::UnknownModel("x".to_owned())]
        {
            let attempts = Cell::new(0);
            let attempt = || async {
                attempts.set(attempts.get() + 1);
                refused::<()>(refusal.clone())
            };
            let failure = until_final(attempt).await.expect_err("a failure");
            assert_eq!((failure.to_string(), attempts.get()), (refusal.to_string(), 1));
        }
    }
}
