//! Requests in flight on one connection, by which it is known to be idle.

use axum::body::{Body, Bytes, HttpBody};
use axum::http::{Request, Response};
use axum::{BoxError, Router};
use futures::FutureExt;
use futures::future::BoxFuture;
use http_body::{Frame, SizeHint};
use std::convert::Infallible;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;
use tokio::sync::watch;
use tokio::time::Instant;
use tower::Service;

/// The router of one connection, whose requests are counted from their head until their answer is sent or dropped.
#[derive(Clone)]
pub struct CountedRequests {
    router: Router,
    requests: watch::Sender<OpenRequests>,
    write_timeout: Duration,
}

/// Requests of a connection.
#[derive(Debug, Default)]
pub struct OpenRequests {
    /// Number of those that the service works on, or whose answer the client takes.
    active: usize,
    /// End of the time that the client has for the last part of an answer that was handed over.
    taken_by: Option<Instant>,
}

/// A request that counts as active unless its client leaves what it was handed.
struct CountedRequest {
    requests: watch::Sender<OpenRequests>,
    write_timeout: Duration,
    is_active: bool,
}

impl CountedRequests {
    /// Returns the service, and the requests that it has. A client has `write_timeout` to take a part of an answer.
    pub fn new(router: Router, write_timeout: Duration) -> (Self, watch::Receiver<OpenRequests>) {
        let (requests, receiver) = watch::channel(OpenRequests::default());
        (Self { router, requests, write_timeout }, receiver)
    }
}

impl CountedRequest {
    fn new(requests: &watch::Sender<OpenRequests>, write_timeout: Duration) -> Self {
        requests.send_modify(|open| open.active += 1);
        Self { requests: requests.clone(), write_timeout, is_active: true }
    }

    /// The connection asks for the next part of the answer.
    fn resume(&mut self) {
        if !self.is_active {
            self.requests.send_modify(|open| open.active += 1);
            self.is_active = true;
        }
    }

    /// The connection has a part of the answer, and comes back when the client has taken it.
    fn hand_over(&mut self) {
        self.pause(Some(Instant::now() + self.write_timeout));
    }

    fn pause(&mut self, taken_by: Option<Instant>) {
        if self.is_active {
            self.requests.send_modify(|open| {
                open.active = open.active.saturating_sub(1);
                open.taken_by = open.taken_by.max(taken_by);
            });
            self.is_active = false;
        }
    }
}

impl Drop for CountedRequest {
    fn drop(&mut self) {
        self.pause(None);
    }
}

impl<B> Service<Request<B>> for CountedRequests
where
    B: HttpBody<Data = Bytes> + Send + 'static,
    B::Error: Into<BoxError>,
{
    type Response = Response<Body>;
    type Error = Infallible;
    type Future = BoxFuture<'static, Result<Response<Body>, Infallible>>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Service::<Request<B>>::poll_ready(&mut self.router, context)
    }

    fn call(&mut self, request: Request<B>) -> Self::Future {
        let (counted, answer) = (CountedRequest::new(&self.requests, self.write_timeout), self.router.call(request));
        async move { Ok(answer.await?.map(|body| Body::new(AnswerBody { body, counted }))) }.boxed()
    }
}

/// The body of an answer, with its request.
struct AnswerBody {
    body: Body,
    counted: CountedRequest,
}

impl HttpBody for AnswerBody {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        self.counted.resume();
        let frame = Pin::new(&mut self.body).poll_frame(context);
        if frame.is_ready() {
            self.counted.hand_over();
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

/// Returns once no request has been active for `timeout`.
pub async fn idle(requests: &mut watch::Receiver<OpenRequests>, timeout: Duration) {
    loop {
        // The service is gone with the connection, which ends by itself.
        let Ok(taken_by) = requests.wait_for(|open| open.active == 0).await.map(|open| open.taken_by) else {
            return std::future::pending().await;
        };
        let now = Instant::now();
        let idle_at = taken_by.map_or(now, |taken_by| taken_by.max(now)) + timeout;
        if tokio::time::timeout_at(idle_at, requests.changed()).await.is_err() {
            return;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TIMEOUT: Duration = Duration::from_secs(15);
    const WRITE_TIMEOUT: Duration = Duration::from_secs(30);

    #[tokio::test(start_paused = true)]
    async fn a_connection_is_idle_so_long_after_its_last_request() {
        let (requests, mut receiver) = watch::channel(OpenRequests::default());
        let begun = Instant::now();
        let counted = CountedRequest::new(&requests, WRITE_TIMEOUT);
        tokio::spawn(async move {
            tokio::time::sleep(Duration::from_secs(100)).await;
            drop(counted);
            tokio::time::sleep(Duration::from_secs(10)).await;
            drop(CountedRequest::new(&requests, WRITE_TIMEOUT));
            tokio::time::sleep(2 * TIMEOUT).await;
        });
        idle(&mut receiver, TIMEOUT).await;
        assert_eq!(begun.elapsed(), Duration::from_secs(110) + TIMEOUT);
    }

    #[tokio::test(start_paused = true)]
    async fn an_unread_answer_does_not_keep_a_connection_open() {
        let (requests, mut receiver) = watch::channel(OpenRequests::default());
        let begun = Instant::now();
        let body = |requests| AnswerBody { body: "text".into(), counted: CountedRequest::new(requests, WRITE_TIMEOUT) };
        let mut unread = body(&requests);
        let taken = std::future::poll_fn(|context| Pin::new(&mut unread).poll_frame(context)).await;
        assert!(taken.unwrap().is_ok());
        idle(&mut receiver, TIMEOUT).await;
        assert_eq!(begun.elapsed(), WRITE_TIMEOUT + TIMEOUT);
        // It is taken after all.
        let ended = std::future::poll_fn(|context| Pin::new(&mut unread).poll_frame(context)).await;
        assert!(ended.is_none());
        drop(unread);
        assert_eq!(requests.borrow().active, 0);
        let working = body(&requests);
        let idle = tokio::time::timeout(100 * TIMEOUT, idle(&mut receiver, TIMEOUT)).await;
        assert!(idle.is_err(), "the service works on it");
        drop(working);
    }
}
