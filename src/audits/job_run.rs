//! Parts common to jobs that score samples.

use super::run_event::RunEvent;
use crate::jobs::{JobRun, LocalRun};
use mia::statistics::{Warning, WarningCode};
use serde_json::json;
use std::sync::Arc;

/// Is told how far a job is.
pub type TellProgress = Box<dyn Fn(RunEvent) + Send + Sync>;

/// Notes how far a job is where clients see it.
pub fn tell_progress(local: &Arc<LocalRun>) -> TellProgress {
    let noted = Arc::clone(local);
    Box::new(move |event: RunEvent| match event {
        RunEvent::Read { samples } => noted.set_note(Some(json!({ "read": samples }).to_string())),
        RunEvent::Tuned(step) => noted.set_note(Some(json!({ "tuning": step }).to_string())),
        RunEvent::Bound { numerics } => {
            noted.set_note(None);
            noted.set_numerics(numerics);
        }
        RunEvent::Scored { done } => noted.set_done(done),
        RunEvent::Testing => noted.set_note(Some(json!({ "testing": true }).to_string())),
    })
}

/// The warning of a job of a kind that was begun anew.
pub fn started_over<R>(job: &JobRun<R>, kind: &str) -> Option<Warning> {
    let detail = format!(
        "the {kind} was interrupted, and begun anew, since the program, the processor, the device or the files of a model were others \
         than before; all scores come from what provenance names"
    );
    job.is_started_over().then_some(Warning { code: WarningCode::StartedOver, detail })
}
