//! The table of all metrics: name, kind, unit and description.

use metrics::Unit;

/// Buckets of durations in the range of a forward pass, in seconds.
const SECONDS: &[f64] =
    &[0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 120.0, 300.0];

/// Buckets of the number of tokens in a forward pass.
const TOKENS: &[f64] = &[
    16.0, 32.0, 64.0, 128.0, 256.0, 512.0, 1_024.0, 2_048.0, 4_096.0, 8_192.0, 16_384.0, 32_768.0, 65_536.0, 131_072.0,
];

/// Buckets of the number of sequences in a forward pass.
const SEQUENCES: &[f64] = &[1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0, 128.0, 256.0, 512.0, 1_024.0];

/// The kind of a metric; a histogram has the upper bounds of its buckets.
#[derive(Debug, Clone, Copy)]
pub(super) enum MetricKind {
    Counter,
    Gauge,
    Histogram(&'static [f64]),
}

/// A metric.
#[derive(Debug)]
pub(super) struct Metric {
    pub(super) name: &'static str,
    pub(super) kind: MetricKind,
    pub(super) unit: Unit,
    pub(super) description: &'static str,
}

macro_rules! metrics {
    ($($constant:ident = $name:literal, $kind:expr, $unit:ident, $description:literal;)*) => {
        $(#[doc = $description] pub const $constant: &str = $name;)*

        pub(super) const ALL: &[Metric] = &[$(
            Metric { name: $constant, kind: $kind, unit: Unit::$unit, description: $description },
        )*];
    };
}

metrics! {
    READY = "pdr_audit_ready", MetricKind::Gauge, Count,
        "1 while /readyz answers with 200, else 0.";

    HTTP_REQUESTS = "pdr_audit_http_requests_total", MetricKind::Counter, Count,
        "Completed HTTP requests. Labels: route, method, status.";
    HTTP_REQUEST_SECONDS = "pdr_audit_http_request_duration_seconds", MetricKind::Histogram(SECONDS), Seconds,
        "Seconds from the head of a request to the head of its response. Label: route.";
    HTTP_IN_FLIGHT = "pdr_audit_http_in_flight", MetricKind::Gauge, Count,
        "HTTP requests whose answer has not been sent to its end.";
    HTTP_CONNECTIONS = "pdr_audit_http_connections", MetricKind::Gauge, Count,
        "Open connections.";
    HTTP_CONNECTIONS_REFUSED = "pdr_audit_http_connections_refused_total", MetricKind::Counter, Count,
        "Connections refused because there were as many as `server.connections` allows.";
    HTTP_UNREAD = "pdr_audit_http_unread_answers_total", MetricKind::Counter, Count,
        "Connections closed because the client took nothing of an answer for `server.write_timeout`.";
    ACCESS_RECORD_LOST = "pdr_audit_access_record_lost_total", MetricKind::Counter, Count,
        "Requests that are not in the access record, because the disk failed or did not keep up.";
    HTTP_REQUEST_MEMORY = "pdr_audit_http_request_memory_bytes", MetricKind::Gauge, Bytes,
        "Memory that the requests in flight hold, by estimate, in bytes.";

    ENGINE_REQUESTS = "pdr_audit_engine_requests_total", MetricKind::Counter, Count,
        "Requests to the engine, counted once when they end, whether refused, answered or abandoned. Labels: class, outcome.";
    ENGINE_QUEUE_TOKENS = "pdr_audit_engine_queue_tokens", MetricKind::Gauge, Count,
        "Tokens of admitted requests that have not been answered yet. Label: class.";
    ENGINE_QUEUE_SECONDS = "pdr_audit_engine_queue_seconds", MetricKind::Histogram(SECONDS), Seconds,
        "Seconds from the admission of a sequence to the start of its forward pass. Label: class.";
    ENGINE_DROPPED = "pdr_audit_engine_dropped_sequences_total", MetricKind::Counter, Count,
        "Sequences dropped before their forward pass. Label: reason (deadline, abandoned).";
    ENGINE_BATCH_BUDGET = "pdr_audit_engine_batch_budget_tokens", MetricKind::Gauge, Count,
        "The maximum number of tokens in one forward pass; 0 while the model is not loaded on the device. Labels: model, device.";
    ENGINE_BATCH_TOKENS = "pdr_audit_engine_batch_tokens", MetricKind::Histogram(TOKENS), Count,
        "Tokens in a forward pass. Label: model.";
    ENGINE_BATCH_SEQUENCES = "pdr_audit_engine_batch_sequences", MetricKind::Histogram(SEQUENCES), Count,
        "Sequences in a forward pass. Label: model.";
    ENGINE_FORWARD_SECONDS = "pdr_audit_engine_forward_seconds", MetricKind::Histogram(SECONDS), Seconds,
        "Duration of a forward pass in seconds, including failed ones. Label: model.";
    ENGINE_FORWARDS = "pdr_audit_engine_forwards_total", MetricKind::Counter, Count,
        "Forward passes by outcome. Labels: model, outcome (ok, out_of_memory, failed, panicked, unavailable, device_lost).";
    ENGINE_TOKENS = "pdr_audit_engine_scored_tokens_total", MetricKind::Counter, Count,
        "Scored tokens: positions for which statistics were computed. Label: model.";
    ENGINE_HALVINGS = "pdr_audit_engine_out_of_memory_halvings_total", MetricKind::Counter, Count,
        "Batches split in half because they did not fit in memory. Label: model.";
    ENGINE_CACHE_HITS = "pdr_audit_engine_cache_hits_total", MetricKind::Counter, Count,
        "Sequences of admitted requests answered from the cache. Labels: model, tier (memory, disk).";
    ENGINE_CACHE_MISSES = "pdr_audit_engine_cache_misses_total", MetricKind::Counter, Count,
        "Sequences of admitted requests that were in no tier of the cache. Label: model.";
    ENGINE_CACHE_BYTES = "pdr_audit_engine_cache_bytes", MetricKind::Gauge, Bytes,
        "Approximate size of the token statistics cached in memory, in bytes.";
    ENGINE_DISK_CACHE_BYTES = "pdr_audit_engine_disk_cache_bytes", MetricKind::Gauge, Bytes,
        "Size of the token statistics cached on disk, in bytes.";
    ENGINE_DISK_CACHE_DROPPED = "pdr_audit_engine_disk_cache_dropped_writes_total", MetricKind::Counter, Count,
        "Sequences whose statistics were not written to disk, because the queue was full, they were too large, the disk failed, or unfinished audits need all that is there.";
    ENGINE_DISK_CACHE_ERRORS = "pdr_audit_engine_disk_cache_errors_total", MetricKind::Counter, Count,
        "Failures of the cache on disk, including corrupted entries. Label: operation (open, read, write).";
    ENGINE_LOADS = "pdr_audit_engine_model_loads_total", MetricKind::Counter, Count,
        "Loads of a model, and failures to open its files or to load it. Labels: model, outcome (ok, failed).";
    ENGINE_UNLOADS = "pdr_audit_engine_model_unloads_total", MetricKind::Counter, Count,
        "Models unloaded by request. Label: model.";
    ENGINE_EVICTIONS = "pdr_audit_engine_model_evictions_total", MetricKind::Counter, Count,
        "Models unloaded from a device to make room for another model. Label: model.";
    ENGINE_DEVICE_MEMORY = "pdr_audit_engine_device_memory_bytes", MetricKind::Gauge, Bytes,
        "Memory of a device as accounted by the engine, in bytes. Labels: device, kind (budget: available to models, used: weights of loaded models and running fine-tunes).";
    ENGINE_DEVICE_UNAVAILABLE = "pdr_audit_engine_device_unavailable", MetricKind::Gauge, Count,
        "1 while a device does not answer, because the server that runs its model is gone, busy or another one; else 0. Label: device.";

    SCORE_STAGE_SECONDS = "pdr_audit_score_stage_seconds", MetricKind::Histogram(SECONDS), Seconds,
        "Seconds that a request to /v1/score spends in each stage. Label: stage (tokenize, which includes making neighbours; queue: until its first forward pass begins, or all is found in the caches; forward: until its last one ends; answer: methods and JSON).";
    TEXTS_SCORED = "pdr_audit_texts_scored_total", MetricKind::Counter, Count,
        "Texts submitted for scoring. Label: outcome (ok, partial: some methods failed, failed: all methods failed).";
    AUDITS = "pdr_audit_audits_total", MetricKind::Counter, Count,
        "Completed audits. Label: status (succeeded, failed, cancelled).";
    CALIBRATIONS = "pdr_audit_calibrations_total", MetricKind::Counter, Count,
        "Completed calibrations. Label: status (succeeded, failed, cancelled).";
    TESTS = "pdr_audit_tests_total", MetricKind::Counter, Count,
        "Completed tests that need no threshold. Label: status (succeeded, failed, cancelled).";
    FINETUNES = "pdr_audit_finetunes_total", MetricKind::Counter, Count,
        "Completed fine-tunes. Label: status (succeeded, failed, cancelled).";
    MEMORIZATIONS = "pdr_audit_memorizations_total", MetricKind::Counter, Count,
        "Completed memorization jobs. Label: status (succeeded, failed, cancelled).";
    BUILD_INFO = "pdr_audit_build_info", MetricKind::Gauge, Count,
        "Always 1, labelled with the version of the program. Label: version.";
}
