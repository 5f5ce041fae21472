//! Durations of the stages of `POST /v1/score`, as metrics and in the span of the request.

use crate::scorer::ScoringTimes;
use crate::telemetry::names;
use std::time::Duration;
use tracing::Span;

/// Notes the stages of a request that is answered. `answering` is what came after the last forward pass.
pub fn note(times: &ScoringTimes, answering: Duration) {
    let span = Span::current();
    let note = |stage: &'static str, field: &'static str, time: Duration| {
        metrics::histogram!(names::SCORE_STAGE_SECONDS, "stage" => stage).record(time);
        span.record(field, time.as_secs_f64());
    };
    note("tokenize", "tokenize_seconds", times.tokenize);
    note("queue", "queue_seconds", times.queue);
    note("forward", "forward_seconds", times.forward);
    note("answer", "answer_seconds", answering);
}
