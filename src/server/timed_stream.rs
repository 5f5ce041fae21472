//! A connection that does not wait for ever.

use crate::telemetry::names;
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::{Instant, Sleep, sleep};

/// A connection on which a write without progress fails after a time, as does reading while it is not known which version of HTTP it
/// speaks. After that the parser of HTTP/1 has a time-out of its own, and HTTP/2 sends pings.
pub struct TimedStream<S> {
    stream: S,
    write_timeout: Duration,
    /// Runs while a write waits.
    writing: Option<Pin<Box<Sleep>>>,
    preface: PrefaceProgress,
    /// When the version must be known.
    version_due: Pin<Box<Sleep>>,
}

impl<S> TimedStream<S> {
    /// A connection that has just begun.
    pub fn new(stream: S, header_timeout: Duration, write_timeout: Duration) -> Self {
        Self {
            stream,
            write_timeout,
            writing: None,
            preface: PrefaceProgress::default(),
            version_due: Box::pin(sleep(header_timeout)),
        }
    }

    /// Returns the result of a write, or an error if it waits for too long.
    fn timed<T>(&mut self, context: &mut Context<'_>, write: Poll<io::Result<T>>) -> Poll<io::Result<T>> {
        if write.is_ready() {
            self.writing = None;
            return write;
        }
        let until = Instant::now() + self.write_timeout;
        let writing = self.writing.get_or_insert_with(|| Box::pin(tokio::time::sleep_until(until)));
        ready!(writing.as_mut().poll(context));
        metrics::counter!(names::HTTP_UNREAD).increment(1);
        Poll::Ready(Err(io::Error::new(io::ErrorKind::TimedOut, "the client takes nothing of the answer")))
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for TimedStream<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = buffer.filled().len();
        match Pin::new(&mut self.stream).poll_read(context, buffer) {
            Poll::Ready(read) => {
                self.preface.note(&buffer.filled()[before..]);
                Poll::Ready(read)
            }
            Poll::Pending if self.preface.is_decided() => Poll::Pending,
            Poll::Pending => {
                ready!(self.version_due.as_mut().poll(context));
                Poll::Ready(Err(io::Error::new(io::ErrorKind::TimedOut, "no request arrived")))
            }
        }
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for TimedStream<S> {
    fn poll_write(mut self: Pin<&mut Self>, context: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        let write = Pin::new(&mut self.stream).poll_write(context, bytes);
        self.timed(context, write)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        parts: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let write = Pin::new(&mut self.stream).poll_write_vectored(context, parts);
        self.timed(context, write)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let flush = Pin::new(&mut self.stream).poll_flush(context);
        self.timed(context, flush)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let shutdown = Pin::new(&mut self.stream).poll_shutdown(context);
        self.timed(context, shutdown)
    }
}

/// Preface of HTTP/2 (RFC 9113, section 3.4).
const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

/// Progress in reading the preface of HTTP/2.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PrefaceProgress {
    read: usize,
    decided: bool,
}

impl PrefaceProgress {
    /// Notes bytes in the order in which they come.
    pub fn note(&mut self, bytes: &[u8]) {
        if self.decided {
            return;
        }
        let expected = &PREFACE[self.read..];
        let compared = bytes.len().min(expected.len());
        self.decided = bytes[..compared] != expected[..compared] || compared == expected.len();
        self.read += compared;
    }

    #[must_use]
    pub fn is_decided(self) -> bool {
        self.decided
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokio::io::{AsyncReadExt, AsyncWriteExt, duplex};

    const HEADER_TIMEOUT: Duration = Duration::from_secs(10);
    const WRITE_TIMEOUT: Duration = Duration::from_secs(30);

    #[tokio::test(start_paused = true)]
    async fn a_write_that_nobody_takes_fails_and_one_that_goes_on_does_not() {
        let (client, server) = duplex(16);
        let mut server = TimedStream::new(server, HEADER_TIMEOUT, WRITE_TIMEOUT);
        let (mut taking, _giving) = tokio::io::split(client);
        let slow = tokio::spawn(async move {
            let mut taken = [0; 16];
            for _ in 0..4 {
                tokio::time::sleep(Duration::from_secs(20)).await;
                taking.read_exact(&mut taken).await.unwrap();
            }
            taking
        });
        // 80 seconds altogether, and never 30 without progress.
        server.write_all(&[0; 80]).await.unwrap();
        let _taking = slow.await.unwrap();
        let started = Instant::now();
        let error = server.write_all(&[0; 80]).await.unwrap_err();
        assert_eq!((error.kind(), started.elapsed().as_secs()), (io::ErrorKind::TimedOut, 30));
    }

    #[tokio::test(start_paused = true)]
    async fn whoever_does_not_say_what_it_speaks_is_cut_off() {
        for (sent, is_cut_off) in [("", true), ("PRI * HT", true), ("GET", false)] {
            let (mut client, server) = duplex(64);
            let mut server = TimedStream::new(server, HEADER_TIMEOUT, WRITE_TIMEOUT);
            client.write_all(sent.as_bytes()).await.unwrap();
            let mut read = [0; 64];
            let reading = async {
                while server.read(&mut read).await? > 0 {}
                io::Result::Ok(())
            };
            let ended = tokio::time::timeout(Duration::from_secs(60), reading).await;
            assert_eq!(ended.is_ok_and(|read| read.is_err()), is_cut_off, "{sent}");
        }
    }

    fn decided(parts: &[&[u8]]) -> bool {
        let mut progress = PrefaceProgress::default();
        parts.iter().for_each(|part| progress.note(part));
        progress.is_decided()
    }

    #[test]
    fn a_byte_that_differs_or_the_whole_preface_decides() {
        assert!(!decided(&[]) && !decided(&[b"P"]) && !decided(&[b"PRI", b" * HTTP/2.0\r\n"]));
        assert!(decided(&[b"G"]) && decided(&[b"P", b"OST /"]) && decided(&[PREFACE]));
        assert!(decided(&[&PREFACE[..23], &PREFACE[23..], b"more"]) && decided(&[b"PRI * HTTP/1"]));
    }
}
