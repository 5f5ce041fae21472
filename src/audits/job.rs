//! One audit of the service: where it stands, and its way from one state to the next.
//!
//! Queued goes to running or cancelled; running goes to succeeded, failed or cancelled. Nothing leaves a final state.

use super::error::AuditFailure;
use super::run::AuditOutcome;
use super::status::{AuditSnapshot, AuditStatus, AuditSubject};
use crate::telemetry::names;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use time::OffsetDateTime;
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

/// One audit.
pub struct AuditJob {
    done: AtomicUsize,
    /// Memory that its results take or will take, counted in scores.
    pub cost: usize,
    /// Asks it to stop.
    pub cancel: CancellationToken,
    state: watch::Sender<AuditSnapshot>,
}

impl AuditJob {
    /// A queued audit.
    pub fn new(subject: AuditSubject, cost: usize) -> Self {
        let state = watch::Sender::new(AuditSnapshot::new(Arc::new(subject)));
        Self { done: AtomicUsize::new(0), cost, cancel: CancellationToken::new(), state }
    }

    /// Where it stands.
    pub fn snapshot(&self) -> AuditSnapshot {
        let snapshot = self.state.borrow().clone();
        AuditSnapshot { done: self.done.load(Ordering::Relaxed), ..snapshot }
    }

    /// Whether it has ended.
    pub fn is_final(&self) -> bool {
        self.state.borrow().status.is_final()
    }

    /// Waits until it has ended.
    pub async fn ended(&self) {
        // An error would say that the sender is gone, which is ours.
        let _ = self.state.subscribe().wait_for(|snapshot| snapshot.status.is_final()).await;
    }

    /// Notes how many samples are done.
    pub fn advance(&self, done: usize) {
        self.done.store(done, Ordering::Relaxed);
    }

    /// From queued to running.
    pub fn start(&self) {
        self.state.send_modify(|snapshot| {
            snapshot.status = AuditStatus::Running;
            snapshot.started_at = Some(OffsetDateTime::now_utc());
        });
    }

    /// Ends it: with what came of it, or cancelled.
    pub fn finish(&self, ended: Option<Result<AuditOutcome, AuditFailure>>) {
        self.state.send_modify(|snapshot| {
            snapshot.finished_at = Some(OffsetDateTime::now_utc());
            snapshot.status = match ended {
                None => AuditStatus::Cancelled,
                Some(Ok(outcome)) => {
                    snapshot.outcome = Some(Arc::new(outcome));
                    AuditStatus::Succeeded
                }
                Some(Err(error)) => {
                    tracing::error!(audit = %snapshot.id, %error, "audit failed");
                    snapshot.error = Some(Arc::new(error));
                    AuditStatus::Failed
                }
            };
            metrics::counter!(names::AUDITS, "status" => snapshot.status.name()).increment(1);
        });
    }
}
