//! The name of every metric, with its kind and description.

use metrics::Unit;

/// Bounds of what takes the time of a forward pass, in seconds.
const SECONDS: &[f64] =
    &[0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 120.0, 300.0];

/// Bounds of tokens in a forward pass.
const TOKENS: &[f64] = &[
    16.0, 32.0, 64.0, 128.0, 256.0, 512.0, 1_024.0, 2_048.0, 4_096.0, 8_192.0, 16_384.0, 32_768.0, 65_536.0, 131_072.0,
];

/// Bounds of sequences in a forward pass.
const SEQUENCES: &[f64] = &[1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0, 128.0, 256.0, 512.0, 1_024.0];

/// What a metric is.
#[derive(Debug, Clone, Copy)]
pub(super) enum Kind {
    Counter,
    Gauge,
    Histogram(&'static [f64]),
}

/// A metric.
#[derive(Debug)]
pub(super) struct Metric {
    pub(super) name: &'static str,
    pub(super) kind: Kind,
    pub(super) unit: Unit,
    pub(super) description: &'static str,
}

macro_rules! metrics {
    ($($constant:ident = $name:literal, $kind:expr, $unit:ident, $description:literal;)*) => {
        $(#[doc = $description] pub const $constant: &str = $name;)*

        /// All metrics.
        pub(super) const ALL: &[Metric] = &[$(
            Metric { name: $constant, kind: $kind, unit: Unit::$unit, description: $description },
        )*];
    };
}

metrics! {
    HTTP_REQUESTS = "pdr_audit_http_requests_total", Kind::Counter, Count,
        "Requests answered. Labels: route, method, status.";
    HTTP_REQUEST_SECONDS = "pdr_audit_http_request_duration_seconds", Kind::Histogram(SECONDS), Seconds,
        "Seconds from the head of a request to the head of its answer. Label: route.";
    HTTP_IN_FLIGHT = "pdr_audit_http_in_flight", Kind::Gauge, Count,
        "Requests that are being answered.";

    ENGINE_REQUESTS = "pdr_audit_engine_requests_total", Kind::Counter, Count,
        "Requests to the engine, counted once when they end, whether refused, answered or given up. Labels: class, outcome.";
    ENGINE_QUEUE_TOKENS = "pdr_audit_engine_queue_tokens", Kind::Gauge, Count,
        "Tokens admitted and not yet answered. Label: class.";
    ENGINE_QUEUE_SECONDS = "pdr_audit_engine_queue_seconds", Kind::Histogram(SECONDS), Seconds,
        "Seconds from a sequence's admission to the start of its forward pass. Label: class.";
    ENGINE_DROPPED = "pdr_audit_engine_dropped_sequences_total", Kind::Counter, Count,
        "Sequences dropped before their forward pass. Label: reason (deadline, abandoned).";
    ENGINE_BATCH_BUDGET = "pdr_audit_engine_batch_budget_tokens", Kind::Gauge, Count,
        "The most tokens that a forward pass takes together; 0 while the model is not on the device. Labels: model, device.";
    ENGINE_BATCH_TOKENS = "pdr_audit_engine_batch_tokens", Kind::Histogram(TOKENS), Count,
        "Tokens in a forward pass. Label: model.";
    ENGINE_BATCH_SEQUENCES = "pdr_audit_engine_batch_sequences", Kind::Histogram(SEQUENCES), Count,
        "Sequences in a forward pass. Label: model.";
    ENGINE_FORWARD_SECONDS = "pdr_audit_engine_forward_seconds", Kind::Histogram(SECONDS), Seconds,
        "Seconds of a forward pass, failed ones included. Label: model.";
    ENGINE_FORWARDS = "pdr_audit_engine_forwards_total", Kind::Counter, Count,
        "Forward passes by how they ended. Labels: model, outcome (ok, out_of_memory, failed, panicked, device_lost).";
    ENGINE_TOKENS = "pdr_audit_engine_scored_tokens_total", Kind::Counter, Count,
        "Tokens scored: positions for which statistics were computed. Label: model.";
    ENGINE_HALVINGS = "pdr_audit_engine_out_of_memory_halvings_total", Kind::Counter, Count,
        "Batches cut in half because they did not fit in memory. Label: model.";
    ENGINE_CACHE_HITS = "pdr_audit_engine_cache_hits_total", Kind::Counter, Count,
        "Sequences of admitted requests answered from the cache. Labels: model, tier (memory, disk).";
    ENGINE_CACHE_MISSES = "pdr_audit_engine_cache_misses_total", Kind::Counter, Count,
        "Sequences of admitted requests that no tier of the cache held. Label: model.";
    ENGINE_CACHE_BYTES = "pdr_audit_engine_cache_bytes", Kind::Gauge, Bytes,
        "About how many bytes the cache of token statistics holds in memory.";
    ENGINE_DISK_CACHE_BYTES = "pdr_audit_engine_disk_cache_bytes", Kind::Gauge, Bytes,
        "Bytes that the cache of token statistics takes of the disk.";
    ENGINE_DISK_CACHE_DROPPED = "pdr_audit_engine_disk_cache_dropped_writes_total", Kind::Counter, Count,
        "Sequences whose statistics were not written to the disk: too many waited, they were too large, or the disk failed.";
    ENGINE_DISK_CACHE_ERRORS = "pdr_audit_engine_disk_cache_errors_total", Kind::Counter, Count,
        "Failures of the cache on disk, damaged values included. Label: operation (open, read, write).";
    ENGINE_LOADS = "pdr_audit_engine_model_loads_total", Kind::Counter, Count,
        "Attempts to load a model. Labels: model, outcome (ok, failed).";
    ENGINE_UNLOADS = "pdr_audit_engine_model_unloads_total", Kind::Counter, Count,
        "Models unloaded by hand. Label: model.";
    ENGINE_EVICTIONS = "pdr_audit_engine_model_evictions_total", Kind::Counter, Count,
        "Models dropped from a device to make room for another. Label: model.";
    ENGINE_DEVICE_MEMORY = "pdr_audit_engine_device_memory_bytes", Kind::Gauge, Bytes,
        "Bytes of a device by the books. Labels: device, kind (budget: what models may take, used: weights of the models on it).";

    TEXTS_SCORED = "pdr_audit_texts_scored_total", Kind::Counter, Count,
        "Texts for which scores were asked. Label: outcome (ok, partial: some methods failed, failed: all did).";
    AUDITS = "pdr_audit_audits_total", Kind::Counter, Count,
        "Audits that ended. Label: status (succeeded, failed, cancelled).";
    BUILD_INFO = "pdr_audit_build_info", Kind::Gauge, Count,
        "1, labelled with the program's version. Label: version.";
}
