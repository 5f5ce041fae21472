//! Rendering of metrics, and precedence of log filters.

use std::collections::BTreeSet;

use metrics::Unit;

use super::*;

/// The rendered metrics after `act`, without using the recorder of the process.
fn rendered(act: impl FnOnce()) -> String {
    let recorder = builder().unwrap().build_recorder();
    metrics::with_local_recorder(&recorder, act);
    recorder.handle().render()
}

#[test]
fn every_series_that_can_be_known_is_there_before_the_first_request() {
    let text = rendered(|| {
        describe_all();
        zero_routes([("POST", "/v1/score", 200)]);
    });
    for line in [
        "pdr_audit_ready 0",
        "pdr_audit_http_in_flight 0",
        "pdr_audit_http_connections 0",
        "pdr_audit_http_connections_refused_total 0",
        "pdr_audit_http_unread_answers_total 0",
        "pdr_audit_http_request_memory_bytes 0",
        "pdr_audit_http_requests_total{method=\"POST\",route=\"/v1/score\",status=\"200\"} 0",
        "pdr_audit_http_request_duration_seconds_bucket{route=\"/v1/score\",le=\"60\"} 0",
        "pdr_audit_http_request_duration_seconds_count{route=\"/v1/score\"} 0",
        "pdr_audit_score_stage_seconds_count{stage=\"tokenize\"} 0",
        "pdr_audit_texts_scored_total{outcome=\"partial\"} 0",
        "pdr_audit_audits_total{status=\"cancelled\"} 0",
        "pdr_audit_calibrations_total{status=\"failed\"} 0",
        "pdr_audit_tests_total{status=\"failed\"} 0",
        "pdr_audit_engine_cache_bytes 0",
        "pdr_audit_engine_disk_cache_bytes 0",
        "pdr_audit_engine_disk_cache_dropped_writes_total 0",
        "pdr_audit_engine_disk_cache_errors_total{operation=\"read\"} 0",
        concat!("pdr_audit_build_info{version=\"", env!("CARGO_PKG_VERSION"), "\"} 1"),
    ] {
        assert!(text.lines().any(|rendered| rendered == line), "{line} in\n{text}");
    }
}

#[test]
fn every_metric_is_rendered_with_its_kind_and_description() {
    let text = rendered(|| {
        describe_all();
        for metric in names::ALL {
            match metric.kind {
                MetricKind::Counter => counter!(metric.name).increment(1),
                MetricKind::Gauge => gauge!(metric.name).set(1.0),
                MetricKind::Histogram(_) => histogram!(metric.name).record(1.0),
            }
        }
    });
    for metric in names::ALL {
        let kind = match metric.kind {
            MetricKind::Counter => "counter",
            MetricKind::Gauge => "gauge",
            MetricKind::Histogram(_) => "histogram",
        };
        let name = metric.name;
        assert!(text.contains(&format!("# HELP {name} {}\n# TYPE {name} {kind}\n", metric.description)), "{name}");
    }
}

#[test]
fn names_are_distinct_and_follow_the_conventions() {
    let distinct: BTreeSet<_> = names::ALL.iter().map(|metric| metric.name).collect();
    assert_eq!(distinct.len(), names::ALL.len());
    for metric in names::ALL {
        assert!(metric.name.starts_with("pdr_audit_"), "{}", metric.name);
        assert_eq!(metric.name.ends_with("_total"), matches!(metric.kind, MetricKind::Counter), "{}", metric.name);
        assert_eq!(metric.name.ends_with("_seconds"), metric.unit == Unit::Seconds, "{}", metric.name);
        if let MetricKind::Histogram(bounds) = metric.kind {
            assert!(bounds.is_sorted_by(|lower, upper| lower < upper), "{}", metric.name);
        }
    }
}

#[test]
fn samples_fall_into_their_buckets() {
    let text = rendered(|| {
        for tokens in [10.0, 500.0, 1e9] {
            histogram!(names::ENGINE_BATCH_TOKENS, "model" => "m").record(tokens);
        }
    });
    for (bound, count) in [("16", 1), ("256", 1), ("512", 2), ("131072", 2), ("+Inf", 3)] {
        let line = format!("pdr_audit_engine_batch_tokens_bucket{{model=\"m\",le=\"{bound}\"}} {count}\n");
        assert!(text.contains(&line), "{line} in\n{text}");
    }
}

#[test]
fn installing_twice_is_installing_once() {
    let first = MetricsExporter::install().unwrap();
    let second = MetricsExporter::install().unwrap();
    counter!(names::AUDITS, "status" => "failed").increment(1);
    for metrics in [first, second] {
        assert!(metrics.render().contains("pdr_audit_audits_total{status=\"failed\"} 1"));
    }
}

#[test]
#[cfg(target_os = "linux")]
fn the_process_is_measured() {
    let text = MetricsExporter::install().unwrap().render();
    let value = |name: &str| -> f64 {
        let line = text.lines().find_map(|line| line.strip_prefix(&format!("{name} ")));
        line.unwrap_or_else(|| panic!("{name} in\n{text}")).parse().unwrap()
    };
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap().as_secs_f64();
    let age = now - value("process_start_time_seconds");
    assert!((-2.0..3_600.0).contains(&age), "started {age} s ago");
    assert!(value("process_resident_memory_bytes") > 1e6);
    assert!(value("process_open_fds") >= 3.0);
    assert!(value("process_cpu_seconds_total") >= 0.0);
}

#[test]
fn the_variable_wins_over_the_settings() {
    assert_eq!(filter(None, "warn").unwrap().to_string(), "warn");
    assert_eq!(filter(Some(""), "warn").unwrap().to_string(), "warn");
    assert_eq!(filter(Some("debug"), "warn").unwrap().to_string(), "debug");
    let error = filter(Some("a=b=c"), "warn").unwrap_err().to_string();
    assert!(error.contains("RUST_LOG"), "{error}");
    let error = filter(None, "a=b=c").unwrap_err().to_string();
    assert!(error.contains("`log.level`"), "{error}");
}
