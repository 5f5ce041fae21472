//! Requests in flight: from their head to the last byte of their answer, and no longer than somebody takes it.

use crate::access::{RequestMemory, RequestPermit};
use crate::telemetry::names;
use axum::body::{Body, Bytes, HttpBody};
use axum::http::{HeaderValue, header};
use axum::response::Response;
use futures::{StreamExt, stream};
use http_body::{Frame, SizeHint};
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;
use tokio::sync::mpsc;

/// An answer no longer than this is sent as it is.
const SHORT: u64 = 64 << 10;
/// The parts in which a longer one is sent.
const PART: usize = 64 << 10;

/// A request that is counted as in flight until this is dropped, by the gauge, by the quota of its key and by its memory.
#[derive(Debug)]
pub struct InFlight {
    /// Given back when dropped.
    permit: Option<Arc<RequestPermit>>,
    /// Given back when the last part of the request is dropped.
    memory: Option<Arc<RequestMemory>>,
}

impl InFlight {
    #[must_use]
    pub fn begin() -> Self {
        metrics::gauge!(names::HTTP_IN_FLIGHT).increment(1.0);
        Self { permit: None, memory: None }
    }

    /// Keeps the response in flight until the connection has taken the last part of its body. If it takes none of a long body for
    /// `write_timeout`, that breaks off and is freed, whatever the protocol: HTTP/2 has flow control per stream, so a client may
    /// leave one answer unread while the connection is busy. A short body is freed at once: hyper keeps the body of a stream of HTTP/2
    /// until the client makes room for it, which may be never.
    #[must_use]
    pub fn until_sent(mut self, mut response: Response, write_timeout: Duration) -> Response {
        self.permit = response.extensions_mut().remove();
        self.memory = response.extensions_mut().remove();
        let length = response.body().size_hint().exact();
        if length.is_some_and(|length| length <= SHORT) {
            return response.map(|body| Body::new(ShortBody { body, in_flight: Some(self) }));
        }
        if let Some(length) = length {
            response.headers_mut().entry(header::CONTENT_LENGTH).or_insert_with(|| HeaderValue::from(length));
        }
        response.map(|body| in_parts(body, self, write_timeout))
    }
}

impl Drop for InFlight {
    fn drop(&mut self) {
        metrics::gauge!(names::HTTP_IN_FLIGHT).decrement(1.0);
    }
}

/// A part of a body, or its end.
type Part = Option<Result<Bytes, axum::Error>>;

/// The body, handed on part by part by a task that gives up where nobody takes the next one.
fn in_parts(body: Body, in_flight: InFlight, write_timeout: Duration) -> Body {
    let (parts, taken) = mpsc::channel(1);
    tokio::spawn(async move {
        hand_on(body, &parts, write_timeout).await;
        drop(in_flight);
    });
    // A body that breaks off must not look like a whole one.
    let parts = stream::unfold(Some(taken), |taken| async {
        let mut taken = taken?;
        match taken.recv().await {
            Some(Some(part)) => Some((part, Some(taken))),
            Some(None) => None,
            None => Some((Err(axum::Error::new(io::Error::from(io::ErrorKind::TimedOut))), None)),
        }
    });
    Body::from_stream(parts)
}

/// Hands on the body until its end, or until nobody takes the next part.
async fn hand_on(body: Body, parts: &mpsc::Sender<Part>, write_timeout: Duration) {
    let mut chunks = body.into_data_stream();
    loop {
        let chunk = tokio::select! {
            chunk = chunks.next() => chunk,
            () = parts.closed() => return,
        };
        let chunk = match chunk {
            Some(Ok(chunk)) => chunk,
            last => {
                send(parts, last, write_timeout).await;
                return;
            }
        };
        for part in chunk.chunks(PART) {
            // A copy: a slice would keep the whole, as long as it is not taken.
            if !send(parts, Some(Ok(Bytes::copy_from_slice(part))), write_timeout).await {
                return;
            }
        }
    }
}

/// Sends a part; true if it was taken in time.
async fn send(parts: &mpsc::Sender<Part>, part: Part, write_timeout: Duration) -> bool {
    match tokio::time::timeout(write_timeout, parts.send(part)).await {
        Ok(sent) => sent.is_ok(),
        Err(_) => {
            metrics::counter!(names::HTTP_UNREAD).increment(1);
            false
        }
    }
}

/// A short body, which is in flight until its last frame is taken.
struct ShortBody {
    body: Body,
    in_flight: Option<InFlight>,
}

impl HttpBody for ShortBody {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        let frame = Pin::new(&mut self.body).poll_frame(context);
        if self.body.is_end_stream() || matches!(frame, Poll::Ready(None | Some(Err(_)))) {
            self.in_flight = None;
        }
        frame
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::access::{MemoryBudget, Principal};
    use axum::response::IntoResponse;

    const TIMEOUT: Duration = Duration::from_secs(30);

    fn sent(bytes: Vec<u8>) -> Response {
        InFlight::begin().until_sent(bytes.into_response(), TIMEOUT)
    }

    #[tokio::test]
    async fn bodies_of_all_lengths_arrive_whole() {
        for length in [0, 1, 1 << 16, (1 << 16) + 1, 300_000] {
            let bytes: Vec<u8> = (0..length).map(|index| (index % 251) as u8).collect();
            let response = sent(bytes.clone());
            assert_eq!(axum::body::to_bytes(response.into_body(), usize::MAX).await.unwrap(), bytes);
        }
        assert_eq!(sent(vec![0; 300_000]).headers()[header::CONTENT_LENGTH], "300000");
    }

    #[tokio::test(start_paused = true)]
    async fn a_body_that_nobody_takes_breaks_off_and_is_freed() {
        let freed = Arc::new(());
        let held = Arc::clone(&freed);
        let chunks = stream::repeat_with(move || {
            let _ = &held;
            Ok::<_, io::Error>(Bytes::from(vec![0; PART]))
        });
        let response = InFlight::begin().until_sent(Body::from_stream(chunks).into_response(), TIMEOUT);
        let mut taken = response.into_body().into_data_stream();
        for _ in 0..4 {
            // Slow, but in time.
            tokio::time::sleep(TIMEOUT - Duration::from_secs(1)).await;
            assert!(taken.next().await.unwrap().is_ok());
        }
        tokio::time::sleep(2 * TIMEOUT).await;
        assert_eq!(Arc::strong_count(&freed), 1, "what makes the body is still there");
        let mut rest: Vec<_> = taken.collect().await;
        assert!(rest.pop().unwrap().is_err() && rest.iter().all(Result::is_ok));
    }

    #[tokio::test]
    async fn memory_is_held_until_the_last_part_is_taken() {
        let budget = MemoryBudget::new(Some(1_000), 1);
        let begin = || budget.begin(&Principal::default());
        let memory = begin();
        memory.grow_to(1_000).unwrap();
        let mut response = vec![0; 3 * PART].into_response();
        response.extensions_mut().insert(Arc::new(memory));
        let mut body = InFlight::begin().until_sent(response, TIMEOUT).into_body().into_data_stream();
        assert!(body.next().await.is_some() && begin().grow_to(1).is_err());
        while body.next().await.is_some() {}
        while begin().grow_to(1_000).is_err() {
            tokio::task::yield_now().await;
        }
    }

    #[tokio::test]
    async fn a_short_body_holds_memory_until_it_is_taken_and_not_until_it_is_dropped() {
        let budget = MemoryBudget::new(Some(1_000), 1);
        let memory = budget.begin(&Principal::default());
        memory.grow_to(1_000).unwrap();
        let mut response = "an answer".into_response();
        response.extensions_mut().insert(Arc::new(memory));
        let mut body = InFlight::begin().until_sent(response, TIMEOUT).into_body();
        assert!(budget.begin(&Principal::default()).grow_to(1).is_err());
        let frame = std::future::poll_fn(|context| Pin::new(&mut body).poll_frame(context)).await;
        assert!(frame.unwrap().is_ok() && budget.begin(&Principal::default()).grow_to(1_000).is_ok());
        drop(body);
    }

    #[tokio::test]
    async fn a_client_that_goes_away_frees_the_body() {
        let freed = Arc::new(());
        let held = Arc::clone(&freed);
        let pending = stream::pending::<Result<Bytes, io::Error>>().map(move |chunk| {
            let _ = &held;
            chunk
        });
        drop(InFlight::begin().until_sent(Body::from_stream(pending).into_response(), TIMEOUT));
        while Arc::strong_count(&freed) > 1 {
            tokio::task::yield_now().await;
        }
    }
}
