//! How an audit gets on, as server-sent events.

use super::ApiState;
use super::audits::AuditId;
use super::problem::{Kind, Problem};
use super::problems::LookProblems;
use crate::audits::{AuditSnapshot, Audits};
use axum::extract::State;
use axum::http::HeaderMap;
use axum::response::sse::{Event, KeepAlive, Sse};
use futures::{Stream, StreamExt, stream};
use serde_json::json;
use std::convert::Infallible;
use std::vec::IntoIter;

/// The header with which a client goes on where it left off.
const LAST_EVENT_ID: &str = "last-event-id";

/// One event, before it is written.
#[derive(Clone, Debug, PartialEq, Eq)]
struct AuditEvent {
    id: i64,
    name: &'static str,
    data: String,
}

/// Follow an audit.
///
/// `progress` has `done` and `total`, `status` has `status`; both come once at the beginning and then with every change. Ids count
/// up: a client that sends the last one as `Last-Event-ID` gets what it has not seen. The stream ends after the final status.
#[utoipa::path(
    get,
    path = "/v1/audits/{id}/events",
    operation_id = "follow_audit",
    tag = "audits",
    params(
        ("id" = String, Path, description = "Id of the audit"),
        ("Last-Event-ID" = Option<String>, Header, description = "The id of the last event that was seen", example = "7")
    ),
    responses(
        (status = 200, description = "The events", body = String, content_type = "text/event-stream"),
        LookProblems
    )
)]
pub async fn events(
    State(state): State<ApiState>,
    AuditId(id): AuditId,
    headers: HeaderMap,
) -> Result<Sse<impl Stream<Item = Result<Event, Infallible>>>, Problem> {
    let seen = last_event_id(&headers)?;
    let first = state.audits.get(id).await?;
    let audits = state.audits.clone();
    let begin = Following { waiting: new_events(&first, None, seen).into_iter(), known: first, audits };
    let events = stream::unfold(begin, |mut following| async move {
        loop {
            if let Some(event) = following.waiting.next() {
                return Some((Ok(written(event)), following));
            }
            following.advance().await?;
        }
    });
    // A service that ends would wait for clients that listen; they come back to another one.
    let draining = state.draining.clone();
    let events = events.take_until(async move { draining.cancelled().await });
    Ok(Sse::new(events).keep_alive(KeepAlive::default()))
}

/// What a client is told of an audit, and has been told.
struct Following {
    waiting: IntoIter<AuditEvent>,
    known: AuditSnapshot,
    audits: Audits,
}

impl Following {
    /// Waits for more events; none where there will be no more.
    async fn advance(&mut self) -> Option<()> {
        if self.known.status.is_final() {
            return None;
        }
        // An audit that was deleted, or a store that does not answer, ends the stream; the client may come back.
        let next = self.audits.next_change(self.known.id, &self.known).await.ok()?;
        self.waiting = new_events(&next, Some(&self.known), i64::MIN).into_iter();
        self.known = next;
        Some(())
    }
}

/// The events of an audit as it stands, against what is known of it, with ids above `seen`. Each change of an audit has two ids:
/// of its progress, and of its status.
fn new_events(audit: &AuditSnapshot, known: Option<&AuditSnapshot>, seen: i64) -> Vec<AuditEvent> {
    let progress = json!({ "done": audit.done, "total": audit.subject.total });
    let status = json!({ "status": audit.status.name() });
    let is_new = |same: fn(&AuditSnapshot, &AuditSnapshot) -> bool| known.is_none_or(|known| !same(known, audit));
    let events = [
        (
            is_new(|a, b| a.done == b.done),
            AuditEvent { id: 2 * audit.revision, name: "progress", data: progress.to_string() },
        ),
        (
            is_new(|a, b| a.status == b.status),
            AuditEvent { id: 2 * audit.revision + 1, name: "status", data: status.to_string() },
        ),
    ];
    events.into_iter().filter(|(is_new, event)| *is_new && event.id > seen).map(|(_, event)| event).collect()
}

fn written(event: AuditEvent) -> Event {
    Event::default().id(event.id.to_string()).event(event.name).data(event.data)
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
    use crate::audits::AuditSubject;
    use crate::store::JobStatus;
    use time::OffsetDateTime;
    use uuid::Uuid;

    fn snapshot(revision: i64, done: usize, status: JobStatus) -> AuditSnapshot {
        AuditSnapshot {
            id: Uuid::nil(),
            subject: AuditSubject { total: 9, ..AuditSubject::default() },
            status,
            done,
            revision,
            created_at: OffsetDateTime::UNIX_EPOCH,
            started_at: None,
            finished_at: None,
            failure: None,
            deadline: None,
        }
    }

    fn ids(events: &[AuditEvent]) -> Vec<(i64, &'static str)> {
        events.iter().map(|event| (event.id, event.name)).collect()
    }

    #[test]
    fn events_are_what_changed_and_ids_count_up() {
        let queued = snapshot(1, 0, JobStatus::Queued);
        assert_eq!(ids(&new_events(&queued, None, i64::MIN)), [(2, "progress"), (3, "status")]);
        let running = snapshot(2, 0, JobStatus::Running);
        assert_eq!(ids(&new_events(&running, Some(&queued), i64::MIN)), [(5, "status")]);
        let further = snapshot(3, 4, JobStatus::Running);
        let events = new_events(&further, Some(&running), i64::MIN);
        assert_eq!((ids(&events), &*events[0].data), (vec![(6, "progress")], r#"{"done":4,"total":9}"#));
        let ended = snapshot(4, 9, JobStatus::Succeeded);
        assert_eq!(ids(&new_events(&ended, Some(&further), i64::MIN)), [(8, "progress"), (9, "status")]);
    }

    #[test]
    fn what_was_seen_does_not_come_again() {
        let ended = snapshot(4, 9, JobStatus::Succeeded);
        assert_eq!(ids(&new_events(&ended, None, 7)), [(8, "progress"), (9, "status")]);
        assert_eq!(ids(&new_events(&ended, None, 8)), [(9, "status")]);
        assert_eq!(ids(&new_events(&ended, None, 9)), []);
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
