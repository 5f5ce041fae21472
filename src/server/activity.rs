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
use tower::Service;

/// The router of one connection, whose requests are counted from their head until their answer is sent or dropped.
#[derive(Clone)]
pub struct CountedRequests {
    router: Router,
    requests: watch::Sender<usize>,
}

/// A request that counts until this is dropped.
struct CountedRequest(watch::Sender<usize>);

impl CountedRequests {
    /// Returns the service, and the number of its requests in flight.
    pub fn new(router: Router) -> (Self, watch::Receiver<usize>) {
        let (requests, receiver) = watch::channel(0);
        (Self { router, requests }, receiver)
    }
}

impl CountedRequest {
    fn new(requests: &watch::Sender<usize>) -> Self {
        requests.send_modify(|count| *count += 1);
        Self(requests.clone())
    }
}

impl Drop for CountedRequest {
    fn drop(&mut self) {
        self.0.send_modify(|count| *count = count.saturating_sub(1));
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
        let (counted, answer) = (CountedRequest::new(&self.requests), self.router.call(request));
        async move { Ok(answer.await?.map(|body| Body::new(AnswerBody { body, _counted: counted }))) }.boxed()
    }
}

/// The body of an answer, whose request counts as long as it is there.
struct AnswerBody {
    body: Body,
    _counted: CountedRequest,
}

impl HttpBody for AnswerBody {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        Pin::new(&mut self.body).poll_frame(context)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

/// Returns once no request has been in flight for `timeout`.
pub async fn idle(requests: &mut watch::Receiver<usize>, timeout: Duration) {
    loop {
        // The service is gone with the connection, which ends by itself.
        let Ok(_) = requests.wait_for(|count| *count == 0).await.map(|count| *count) else {
            return std::future::pending().await;
        };
        if tokio::time::timeout(timeout, requests.changed()).await.is_err() {
            return;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokio::time::Instant;

    const TIMEOUT: Duration = Duration::from_secs(15);

    #[tokio::test(start_paused = true)]
    async fn a_connection_is_idle_so_long_after_its_last_request() {
        let (requests, mut receiver) = watch::channel(0);
        let begun = Instant::now();
        let counted = CountedRequest::new(&requests);
        tokio::spawn(async move {
            tokio::time::sleep(Duration::from_secs(100)).await;
            drop(counted);
            tokio::time::sleep(Duration::from_secs(10)).await;
            drop(CountedRequest::new(&requests));
            tokio::time::sleep(2 * TIMEOUT).await;
        });
        idle(&mut receiver, TIMEOUT).await;
        assert_eq!(begun.elapsed(), Duration::from_secs(110) + TIMEOUT);
    }
}
