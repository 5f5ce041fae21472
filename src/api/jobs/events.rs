//! Progress of a job as server-sent events.

use super::JobResource;
use crate::api::problem::{Kind, Problem};
use crate::api::state::{ApiState, ClientSlot};
use crate::jobs::{JobSnapshot, Jobs, Subject};
use axum::http::HeaderMap;
use axum::response::sse::{Event, KeepAlive, Sse};
use axum::response::{IntoResponse, Response};
use futures::{StreamExt, stream};
use serde_json::json;
use std::convert::Infallible;
use std::vec::IntoIter;
use uuid::Uuid;

/// The header with which a client goes on where it left off.
const LAST_EVENT_ID: &str = "last-event-id";

#[derive(Clone, Debug, PartialEq, Eq)]
struct JobEvent {
    id: i64,
    name: &'static str,
    data: String,
}

/// The events of a job, from those on that the client has not seen. The stream ends after the final status.
pub async fn follow<K: JobResource>(
    state: &ApiState,
    jobs: &Jobs<K>,
    id: Uuid,
    headers: &HeaderMap,
) -> Result<Response, Problem> {
    let seen = last_event_id(headers)?;
    let first = jobs.get(id).await?;
    let slot = state.slot(&state.slots.streams, "event stream")?;
    let waiting = new_events::<K>(&first, None, seen).into_iter();
    let begin = Following { waiting, known: first, jobs: jobs.clone(), _slot: slot };
    let events = stream::unfold(begin, |mut following| async move {
        loop {
            if let Some(JobEvent { id, name, data }) = following.waiting.next() {
                let event = Event::default().id(id.to_string()).event(name).data(data);
                return Some((Ok::<_, Infallible>(event), following));
            }
            following.advance().await?;
        }
    });
    // A service that ends would wait for clients that listen; they come back to another one.
    let state = state.clone();
    let events = events.take_until(async move {
        tokio::select! {
            () = state.draining.cancelled() => {}
            () = state.key_refused() => {}
        }
    });
    Ok(Sse::new(events.boxed()).keep_alive(KeepAlive::default()).into_response())
}

/// State of an event stream: the events still to send and the last known snapshot.
struct Following<K: JobResource> {
    waiting: IntoIter<JobEvent>,
    known: JobSnapshot<Subject<K>>,
    jobs: Jobs<K>,
    _slot: ClientSlot,
}

impl<K: JobResource> Following<K> {
    /// Waits for more events; returns `None` if there will be no more.
    async fn advance(&mut self) -> Option<()> {
        if self.known.status.is_final() {
            return None;
        }
        // A job that was deleted, or a store that does not answer, ends the stream; the client may come back.
        let next = self.jobs.next_change(self.known.id, self.known.revision).await.ok()?;
        self.waiting = new_events::<K>(&next, Some(&self.known), i64::MIN).into_iter();
        self.known = next;
        Some(())
    }
}

/// Returns the events between the known snapshot and the current one, with ids above `seen`. Each change of a job has two
/// ids: one for its progress and one for its status.
fn new_events<K: JobResource>(
    job: &JobSnapshot<Subject<K>>,
    known: Option<&JobSnapshot<Subject<K>>>,
    seen: i64,
) -> Vec<JobEvent> {
    let status = json!({ "status": job.status.name() }).to_string();
    let events = [
        (
            known.is_none_or(|known| (known.done, &known.note) != (job.done, &job.note)),
            JobEvent { id: 2 * job.revision, name: "progress", data: K::progress(job).to_string() },
        ),
        (
            known.is_none_or(|known| known.status != job.status),
            JobEvent { id: 2 * job.revision + 1, name: "status", data: status },
        ),
    ];
    events.into_iter().filter(|(is_new, event)| *is_new && event.id > seen).map(|(_, event)| event).collect()
}

fn last_event_id(headers: &HeaderMap) -> Result<i64, Problem> {
    let Some(value) = headers.get(LAST_EVENT_ID) else { return Ok(i64::MIN) };
    let id = value.to_str().ok().and_then(|text| text.trim().parse().ok());
    id.ok_or_else(|| {
        Problem::new(Kind::Invalid, "the header `last-event-id` is not the id of an event, which is a whole number")
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::audits::{AuditKind, AuditSnapshot, AuditSubject};
    use crate::store::JobStatus;

    fn snapshot(revision: i64, done: usize, status: JobStatus) -> AuditSnapshot {
        let mut snapshot = AuditSnapshot::example(AuditSubject { total: 9, ..AuditSubject::default() }, status);
        (snapshot.row.revision, snapshot.row.done) = (revision, done);
        snapshot
    }

    fn ids(events: &[JobEvent]) -> Vec<(i64, &'static str)> {
        events.iter().map(|event| (event.id, event.name)).collect()
    }

    #[test]
    fn events_are_what_changed_and_ids_count_up() {
        let queued = snapshot(1, 0, JobStatus::Queued);
        assert_eq!(ids(&new_events::<AuditKind>(&queued, None, i64::MIN)), [(2, "progress"), (3, "status")]);
        let running = snapshot(2, 0, JobStatus::Running);
        assert_eq!(ids(&new_events::<AuditKind>(&running, Some(&queued), i64::MIN)), [(5, "status")]);
        let further = snapshot(3, 4, JobStatus::Running);
        let events = new_events::<AuditKind>(&further, Some(&running), i64::MIN);
        assert_eq!((ids(&events), &*events[0].data), (vec![(6, "progress")], r#"{"done":4,"total":9}"#));
        let ended = snapshot(4, 9, JobStatus::Succeeded);
        assert_eq!(ids(&new_events::<AuditKind>(&ended, Some(&further), i64::MIN)), [(8, "progress"), (9, "status")]);
    }

    #[test]
    fn what_was_seen_does_not_come_again() {
        let ended = snapshot(4, 9, JobStatus::Succeeded);
        assert_eq!(ids(&new_events::<AuditKind>(&ended, None, 7)), [(8, "progress"), (9, "status")]);
        assert_eq!(ids(&new_events::<AuditKind>(&ended, None, 8)), [(9, "status")]);
        assert_eq!(ids(&new_events::<AuditKind>(&ended, None, 9)), []);
    }

    #[test]
    fn the_last_id_is_a_number() {
        let read = |value: &'static str| {
            last_event_id(&HeaderMap::from_iter([(
                axum::http::HeaderName::from_static(LAST_EVENT_ID),
                axum::http::HeaderValue::from_static(value),
            )]))
        };
        assert_eq!((read(" 7"), last_event_id(&HeaderMap::new())), (Ok(7), Ok(i64::MIN)));
        assert!(read("x").is_err() && read("").is_err());
    }
}
