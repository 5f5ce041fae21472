//! Logs and metrics.
//!
//! Invariants:
//!
//! - every metric has one name, one kind and one description, in the table of [`names`]; code that counts uses its constant;
//! - every series whose labels are known in advance exists, at zero, before the first request. Those without labels or with
//!   fixed ones are created by [`describe_all`], those of routes by [`zero_routes`], and those of models by the engine when it
//!   starts, which must therefore happen after [`MetricsExporter::install`];
//! - histograms have fixed buckets and are never summaries, so that they can be summed over instances.

pub mod names;
#[cfg(test)]
mod tests;

use std::io::IsTerminal;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use metrics::{counter, describe_counter, describe_gauge, describe_histogram, gauge, histogram};
use metrics_exporter_prometheus::{BuildError, Matcher, PrometheusBuilder, PrometheusHandle};
use metrics_process::Collector;
use tracing_subscriber::EnvFilter;
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::util::SubscriberInitExt;

use names::MetricKind;

/// Interval at which the samples of histograms are moved into their buckets when `/metrics` is not scraped.
const UPKEEP_EVERY: Duration = Duration::from_secs(5);

/// The outcomes of a text: all methods scored it, some did, or none did.
pub const TEXT_OUTCOMES: [&str; 3] = ["ok", "partial", "failed"];

/// The stages of a request to score texts.
pub const SCORE_STAGES: [&str; 4] = ["tokenize", "queue", "forward", "answer"];

/// The final states of an audit.
pub const JOB_STATUSES: [&str; 3] = ["succeeded", "failed", "cancelled"];

/// The operations of the cache on disk that can fail.
pub const DISK_CACHE_OPERATIONS: [&str; 3] = ["open", "read", "write"];

/// An error of setting up logs or metrics.
#[derive(Debug, thiserror::Error)]
pub enum TelemetryError {
    /// The filter of log lines is invalid.
    #[error("{origin} is not a valid log filter: {problem}")]
    Filter {
        /// The setting or variable that contains the filter.
        origin: &'static str,
        /// Description of the fault.
        problem: String,
    },
    /// Logging has been set up before in this process.
    #[error("logging has already been set up: {0}")]
    Logs(#[from] tracing_subscriber::util::TryInitError),
    /// A metrics recorder has been installed before in this process.
    #[error("metrics cannot be set up: {0}")]
    Metrics(#[from] BuildError),
}

/// Starts logging to standard error, either as one JSON object per line or as plain text. The environment variable `RUST_LOG`
/// takes precedence over `level`, which has the same syntax.
///
/// # Errors
///
/// If the filter is invalid, or if logging has been set up before.
pub fn init_tracing(json: bool, level: &str) -> Result<(), TelemetryError> {
    let variable = std::env::var_os("RUST_LOG").map(|value| value.to_string_lossy().into_owned());
    let registry = tracing_subscriber::registry().with(filter(variable.as_deref(), level)?);
    let layer = tracing_subscriber::fmt::layer().with_writer(std::io::stderr);
    if json {
        registry.with(layer.json().flatten_event(true).with_span_list(false)).try_init()?;
    } else {
        registry.with(layer.with_ansi(std::io::stderr().is_terminal())).try_init()?;
    }
    Ok(())
}

/// The filter of `RUST_LOG`, or of the settings if the variable is unset or empty.
fn filter(variable: Option<&str>, level: &str) -> Result<EnvFilter, TelemetryError> {
    let (origin, text) = match variable {
        Some(text) if !text.trim().is_empty() => ("the environment variable RUST_LOG", text),
        _ => ("`log.level`", level),
    };
    let parsed = EnvFilter::builder().parse(text);
    parsed.map_err(|error| TelemetryError::Filter { origin, problem: error.to_string() })
}

/// The exporter of the metrics of this process.
#[derive(Debug, Clone)]
pub struct MetricsExporter {
    handle: PrometheusHandle,
    /// Memory, processor time and open files of this process, read when they are asked for.
    process: Collector,
}

impl MetricsExporter {
    /// Installs the recorder of the process, and describes the metrics and creates the known series; later calls return the same
    /// metrics.
    ///
    /// # Errors
    ///
    /// If another recorder has been installed.
    pub fn install() -> Result<Self, TelemetryError> {
        static INSTALLED: Mutex<Option<MetricsExporter>> = Mutex::new(None);
        let mut installed = INSTALLED.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(metrics) = &*installed {
            return Ok(metrics.clone());
        }
        let handle = builder()?.install_recorder()?;
        describe_all();
        let process = Collector::default();
        process.describe();
        Ok(installed.insert(Self { handle, process }).clone())
    }

    /// All series in the text format of Prometheus.
    #[must_use]
    pub fn render(&self) -> String {
        self.process.collect();
        self.handle.render()
    }

    /// Moves the samples of histograms into their buckets at regular intervals, for ever. Without this, every sample is kept
    /// until the next [`MetricsExporter::render`], which never happens if `/metrics` is not scraped.
    pub async fn run_upkeep(self) {
        let mut interval = tokio::time::interval(UPKEEP_EVERY);
        interval.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        loop {
            interval.tick().await;
            self.handle.run_upkeep();
        }
    }
}

/// The exporter, with the buckets of every histogram.
fn builder() -> Result<PrometheusBuilder, BuildError> {
    names::ALL.iter().try_fold(PrometheusBuilder::new(), |builder, metric| match metric.kind {
        MetricKind::Histogram(bounds) => builder.set_buckets_for_metric(Matcher::Full(metric.name.to_owned()), bounds),
        MetricKind::Counter | MetricKind::Gauge => Ok(builder),
    })
}

/// Describes every metric, and creates the series without labels and with fixed ones at zero, in the current recorder.
/// [`MetricsExporter::install`] calls this.
pub fn describe_all() {
    for metric in names::ALL {
        match metric.kind {
            MetricKind::Counter => describe_counter!(metric.name, metric.unit, metric.description),
            MetricKind::Gauge => describe_gauge!(metric.name, metric.unit, metric.description),
            MetricKind::Histogram(_) => describe_histogram!(metric.name, metric.unit, metric.description),
        }
    }
    for stage in SCORE_STAGES {
        // Looking a histogram up is enough for it to be rendered.
        let _ = histogram!(names::SCORE_STAGE_SECONDS, "stage" => stage);
    }
    for outcome in TEXT_OUTCOMES {
        counter!(names::TEXTS_SCORED, "outcome" => outcome).increment(0);
    }
    for status in JOB_STATUSES {
        counter!(names::AUDITS, "status" => status).increment(0);
        counter!(names::CALIBRATIONS, "status" => status).increment(0);
        counter!(names::TESTS, "status" => status).increment(0);
        counter!(names::FINETUNES, "status" => status).increment(0);
        counter!(names::MEMORIZATIONS, "status" => status).increment(0);
    }
    gauge!(names::READY).set(0.0);
    gauge!(names::HTTP_IN_FLIGHT).set(0.0);
    gauge!(names::HTTP_CONNECTIONS).set(0.0);
    gauge!(names::HTTP_REQUEST_MEMORY).set(0.0);
    counter!(names::HTTP_CONNECTIONS_REFUSED).increment(0);
    counter!(names::HTTP_UNREAD).increment(0);
    counter!(names::ACCESS_RECORD_LOST).increment(0);
    for operation in DISK_CACHE_OPERATIONS {
        counter!(names::ENGINE_DISK_CACHE_ERRORS, "operation" => operation).increment(0);
    }
    counter!(names::ENGINE_DISK_CACHE_DROPPED).increment(0);
    gauge!(names::ENGINE_DISK_CACHE_BYTES).set(0.0);
    gauge!(names::ENGINE_CACHE_BYTES).set(0.0);
    gauge!(names::BUILD_INFO, "version" => env!("CARGO_PKG_VERSION")).set(1.0);
}

/// Creates the series of these routes, given as method, path and status of success, at zero.
pub fn zero_routes<'a>(routes: impl IntoIterator<Item = (&'a str, &'a str, u16)>) {
    for (method, route, status) in routes {
        let labels = [("method", method.to_owned()), ("route", route.to_owned()), ("status", status.to_string())];
        counter!(names::HTTP_REQUESTS, &labels).increment(0);
        // Looking a histogram up is enough for it to be rendered.
        let _ = histogram!(names::HTTP_REQUEST_SECONDS, "route" => route.to_owned());
    }
}
