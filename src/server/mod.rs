//! Connections: how many there are, how long they may keep the service waiting, and how they are encrypted. What they ask for is the
//! business of the router.
//!
//! Invariants:
//!
//! - a connection that does not say which version of HTTP it speaks, and one of HTTP/1 that sends no whole head of a request, ends after
//!   `header_timeout`; one whose client takes nothing of what is written, after `write_timeout`; a client of HTTP/2 is asked
//!   whether it is there, and its connection is closed when it has had no stream for `header_timeout`;
//! - that write time-out and the one of answers (`api::in_flight`) do not replace each other: a client of HTTP/2 can leave an answer
//!   in its own window while the connection makes progress, and an answer that breaks off closes no connection, since nobody
//!   asks for the rest of it while a write waits;
//! - there are never more connections than the limit, nor more from one address than its share, below what files the process may open, so that the service keeps files for
//!   its own use;
//! - when the service ends, no connection is accepted any more, and those without a request in flight are closed at once.

mod activity;
mod listener;
mod timed_stream;
mod tls;

pub use listener::{ConnectionLimits, Listener, PeerAddress, address_limit, connection_limit};
pub use tls::{Tls, TlsError};
