//! Pace of a body that may take hours: it must keep coming, and not in drops.

use super::problem::{Kind, Problem};
use futures::{Stream, StreamExt};
use std::time::Duration;
use tokio::time::Instant;

/// Least rate of a body in bytes a second, on average; a pause is made up for by what comes faster.
const LEAST_RATE: f64 = 1024.0;

/// The patience with the client that sends a body. Waiting for more of it uses the patience up, and what comes restores it at
/// [`LEAST_RATE`], up to where it began. Time in which the service does not ask for more costs nothing.
#[derive(Clone, Copy, Debug)]
pub struct BodyPace {
    most: Duration,
    left: Duration,
}

impl BodyPace {
    #[must_use]
    pub fn new(patience: Duration) -> Self {
        Self { most: patience, left: patience }
    }

    /// Returns the next chunk of a body, or a problem where it comes too slowly.
    pub async fn next<S: Stream + Unpin>(&mut self, body: &mut S) -> Result<Option<S::Item>, Problem>
    where
        S::Item: ChunkLength,
    {
        let begun = Instant::now();
        let chunk = tokio::time::timeout(self.left, body.next()).await.map_err(|_| too_slow())?;
        self.note(begun.elapsed(), chunk.as_ref().map_or(0, ChunkLength::bytes));
        Ok(chunk)
    }

    fn note(&mut self, waited: Duration, bytes: usize) {
        let restored = Duration::from_secs_f64(bytes as f64 / LEAST_RATE);
        self.left = self.left.saturating_sub(waited).saturating_add(restored).min(self.most);
    }
}

fn too_slow() -> Problem {
    let detail = "the body came at less than 1 KiB/s, averaged over `server.request_timeout`";
    Problem::new(Kind::BodyTimeout, detail)
}

/// A chunk of a body, or the error that ends it.
pub trait ChunkLength {
    fn bytes(&self) -> usize;
}

impl<B: AsRef<[u8]>, E> ChunkLength for Result<B, E> {
    fn bytes(&self) -> usize {
        self.as_ref().map_or(0, |chunk| chunk.as_ref().len())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use futures::stream;

    const PATIENCE: Duration = Duration::from_secs(60);

    /// Reads chunks of `bytes` that come `pause` after one another, for a day at most; the time until the body is refused.
    async fn refused_after(bytes: usize, pause: Duration) -> Option<Duration> {
        let chunks = stream::unfold((), move |()| async move {
            tokio::time::sleep(pause).await;
            Some((Ok::<_, String>(vec![0; bytes]), ()))
        });
        let (mut body, mut pace, begun) = (Box::pin(chunks), BodyPace::new(PATIENCE), Instant::now());
        while begun.elapsed() < Duration::from_secs(86_400) {
            if pace.next(&mut body).await.is_err() {
                return Some(begun.elapsed());
            }
        }
        None
    }

    #[tokio::test(start_paused = true)]
    async fn a_body_that_trickles_is_refused_and_one_that_keeps_the_rate_is_not() {
        let second = Duration::from_secs(1);
        let trickle = refused_after(1, 10 * second).await.unwrap();
        assert!((60..=61).contains(&trickle.as_secs()), "{trickle:?}");
        // At half the rate the patience lasts twice as long.
        let half = refused_after(512, second).await.unwrap();
        assert!((110..=120).contains(&half.as_secs()), "{half:?}");
        assert_eq!(refused_after(1024, second).await, None);
        assert_eq!(refused_after(30 << 10, 30 * second).await, None);
        // A pause longer than the patience ends it, whatever came before.
        assert_eq!(refused_after(1 << 30, 61 * second).await.map(|after| after.as_secs()), Some(60));
    }

    #[tokio::test(start_paused = true)]
    async fn what_the_service_does_meanwhile_costs_no_patience() {
        let mut body = stream::repeat(Ok::<_, String>([0_u8; 1]));
        let mut pace = BodyPace::new(PATIENCE);
        for _ in 0..100 {
            tokio::time::sleep(2 * PATIENCE).await;
            assert!(pace.next(&mut body).await.is_ok());
        }
    }
}
