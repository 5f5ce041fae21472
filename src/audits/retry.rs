//! Retries with backoff: what succeeds later by itself is tried again.

use super::error::AuditFailure;
use std::time::Duration;

/// How long the first pause is; each one after it is twice as long.
const FIRST_PAUSE: Duration = Duration::from_millis(50);
/// The longest pause: a model that comes back is seen within this.
const LONGEST_PAUSE: Duration = Duration::from_secs(5);

/// The pause after one of this length.
fn longer(pause: Duration) -> Duration {
    (pause * 2).min(LONGEST_PAUSE)
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
    let mut pause = FIRST_PAUSE;
    loop {
        match attempt().await {
            Err(AuditFailure::Scorer(error)) if error.is_retryable() => {
                tracing::debug!(%error, ?pause, "an audit waits");
                tokio::time::sleep(pause).await;
                pause = longer(pause);
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
        let pauses = std::iter::successors(Some(FIRST_PAUSE), |pause| Some(longer(*pause)));
        let pauses: Vec<u128> = pauses.take(10).map(|pause| pause.as_millis()).collect();
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
