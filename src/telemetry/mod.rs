//! Logs and metrics: where they go, and what every metric is called and means.
//!
//! Invariants:
//!
//! - a metric has one name, one kind and one description, in the table of [`names`]; whoever counts uses the constant;
//! - every series whose labels can be known is there, at zero, before the first request: those without labels or with fixed
//!   ones by [`describe_all`], those of routes by [`zero_routes`], those of models by the engine when it starts, which must
//!   therefore come after [`Metrics::install`];
//! - histograms are histograms with fixed buckets, never summaries: sums over instances stay meaningful.

pub mod names;
#[cfg(test)]
mod tests;

use std::io::IsTerminal;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use metrics::{counter, describe_counter, describe_gauge, describe_histogram, gauge, histogram};
use metrics_exporter_prometheus::{BuildError, Matcher, PrometheusBuilder, PrometheusHandle};
use tracing_subscriber::EnvFilter;
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::util::SubscriberInitExt;

use names::Kind;

/// How often samples of histograms are moved into their buckets while nobody scrapes.
const UPKEEP_EVERY: Duration = Duration::from_secs(5);

/// How a text may end: every method scored it, some did, none did.
pub const TEXT_OUTCOMES: [&str; 3] = ["ok", "partial", "failed"];

/// How an audit may end.
pub const AUDIT_STATUSES: [&str; 3] = ["succeeded", "failed", "cancelled"];

/// What the cache on disk may fail at.
pub const DISK_CACHE_OPERATIONS: [&str; 3] = ["open", "read", "write"];

/// Why there are no logs or no metrics.
#[derive(Debug, thiserror::Error)]
pub enum TelemetryError {
    /// The filter of log lines cannot be understood.
    #[error("{origin} is not a filter for log lines: {problem}")]
    Filter {
        /// Where the filter came from.
        origin: &'static str,
        /// What is wrong with it.
        problem: String,
    },
    /// Something else logs for this process already.
    #[error("logs are set up already: {0}")]
    Logs(#[from] tracing_subscriber::util::TryInitError),
    /// Something else counts for this process already.
    #[error("metrics cannot be set up: {0}")]
    Metrics(#[from] BuildError),
}

/// Starts logging to standard error, one JSON object a line or text for people. The variable `RUST_LOG` wins over `level`,
/// which has its syntax.
///
/// # Errors
///
/// Where the filter cannot be understood, or where logs were set up before.
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

/// The filter of `RUST_LOG`, or of the settings where the variable is unset or empty.
fn filter(variable: Option<&str>, level: &str) -> Result<EnvFilter, TelemetryError> {
    let (origin, text) = match variable {
        Some(text) if !text.trim().is_empty() => ("the environment variable RUST_LOG", text),
        _ => ("`log.level`", level),
    };
    let parsed = EnvFilter::builder().parse(text);
    parsed.map_err(|error| TelemetryError::Filter { origin, problem: error.to_string() })
}

/// The metrics of this process.
#[derive(Debug, Clone)]
pub struct Metrics {
    handle: PrometheusHandle,
}

impl Metrics {
    /// Makes the recorder that all counting goes to, and describes and zeroes what is known; later calls return the same.
    ///
    /// # Errors
    ///
    /// Where something else was installed as recorder.
    pub fn install() -> Result<Self, TelemetryError> {
        static INSTALLED: Mutex<Option<Metrics>> = Mutex::new(None);
        let mut installed = INSTALLED.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(metrics) = &*installed {
            return Ok(metrics.clone());
        }
        let handle = builder()?.install_recorder()?;
        describe_all();
        Ok(installed.insert(Self { handle }).clone())
    }

    /// All series in the text format of Prometheus.
    #[must_use]
    pub fn render(&self) -> String {
        self.handle.render()
    }

    /// Bounds the memory of histograms, for ever. Without this every sample is kept until the next [`Metrics::render`],
    /// which never comes where nobody scrapes.
    pub async fn keep_tidy(self) {
        let mut interval = tokio::time::interval(UPKEEP_EVERY);
        interval.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        loop {
            interval.tick().await;
            self.handle.run_upkeep();
        }
    }
}

/// The exporter with the buckets of every histogram.
fn builder() -> Result<PrometheusBuilder, BuildError> {
    names::ALL.iter().try_fold(PrometheusBuilder::new(), |builder, metric| match metric.kind {
        Kind::Histogram(bounds) => builder.set_buckets_for_metric(Matcher::Full(metric.name.to_owned()), bounds),
        Kind::Counter | Kind::Gauge => Ok(builder),
    })
}

/// Describes every metric, and makes at zero the series without labels and with fixed ones, in the recorder in use.
/// [`Metrics::install`] calls this.
pub fn describe_all() {
    for metric in names::ALL {
        match metric.kind {
            Kind::Counter => describe_counter!(metric.name, metric.unit, metric.description),
            Kind::Gauge => describe_gauge!(metric.name, metric.unit, metric.description),
            Kind::Histogram(_) => describe_histogram!(metric.name, metric.unit, metric.description),
        }
    }
    for outcome in TEXT_OUTCOMES {
        counter!(names::TEXTS_SCORED, "outcome" => outcome).increment(0);
    }
    for status in AUDIT_STATUSES {
        counter!(names::AUDITS, "status" => status).increment(0);
    }
    gauge!(names::HTTP_IN_FLIGHT).set(0.0);
    for operation in DISK_CACHE_OPERATIONS {
        counter!(names::ENGINE_DISK_CACHE_ERRORS, "operation" => operation).increment(0);
    }
    counter!(names::ENGINE_DISK_CACHE_DROPPED).increment(0);
    gauge!(names::ENGINE_DISK_CACHE_BYTES).set(0.0);
    gauge!(names::ENGINE_CACHE_BYTES).set(0.0);
    gauge!(names::BUILD_INFO, "version" => env!("CARGO_PKG_VERSION")).set(1.0);
}

/// Makes the series of these routes, given by method, path and the status of success, at zero.
pub fn zero_routes<'a>(routes: impl IntoIterator<Item = (&'a str, &'a str, u16)>) {
    for (method, route, status) in routes {
        let labels = [("method", method.to_owned()), ("route", route.to_owned()), ("status", status.to_string())];
        counter!(names::HTTP_REQUESTS, &labels).increment(0);
        // Being looked up is enough for a histogram to be rendered.
        let _ = histogram!(names::HTTP_REQUEST_SECONDS, "route" => route.to_owned());
    }
}
