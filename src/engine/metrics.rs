//! The engine's metrics. All series are made, and counters and gauges set to zero, when the engine starts, so that
//! they are there before the first request; the handles are kept, so that nothing is looked up in the
//! recorder.

use super::DeviceSlot;
use super::error::{EngineError, Failure, Refusal};
use super::request::{Answer, Class, PerClass};
use crate::telemetry::names;
use metrics::{Counter, Gauge, Histogram, counter, gauge, histogram};
use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;
use strum::VariantNames;

/// A counter for each outcome.
#[derive(Debug)]
struct Outcomes(HashMap<&'static str, Counter>);

impl Outcomes {
    /// The counters of `ok` and of the names of errors.
    fn new(errors: &[&[&'static str]], counter: impl Fn(&'static str) -> Counter) -> Self {
        let outcomes = ["ok"].into_iter().chain(errors.concat());
        Self(outcomes.map(|outcome| (outcome, zero(counter(outcome)))).collect())
    }

    fn count(&self, outcome: &str) {
        if let Some(counter) = self.0.get(outcome) {
            counter.increment(1);
        }
    }
}

#[derive(Debug)]
pub(super) struct ModelMetrics {
    batch_tokens: Histogram,
    batch_sequences: Histogram,
    forward_seconds: Histogram,
    forwards: Outcomes,
    pub(super) halvings: Counter,
    scored_tokens: Counter,
    pub(super) cache_hits: Counter,
    pub(super) cache_recalls: Counter,
    pub(super) cache_misses: Counter,
    pub(super) loads_ok: Counter,
    pub(super) loads_failed: Counter,
    pub(super) unloads: Counter,
    pub(super) evictions: Counter,
    /// The token budget, by index of the device.
    pub(super) budgets: Vec<Gauge>,
}

impl ModelMetrics {
    /// Makes every series of a model that may be on these of the devices, in the recorder that is installed now.
    pub(super) fn new(model: &str, devices: &[usize], device_names: &[String]) -> Self {
        let label = || model.to_owned();
        let forwards = |outcome| counter!(names::ENGINE_FORWARDS, "model" => label(), "outcome" => outcome);
        let loads = |outcome| zero(counter!(names::ENGINE_LOADS, "model" => label(), "outcome" => outcome));
        let hits = |tier| zero(counter!(names::ENGINE_CACHE_HITS, "model" => label(), "tier" => tier));
        Self {
            batch_tokens: histogram!(names::ENGINE_BATCH_TOKENS, "model" => label()),
            batch_sequences: histogram!(names::ENGINE_BATCH_SEQUENCES, "model" => label()),
            forward_seconds: histogram!(names::ENGINE_FORWARD_SECONDS, "model" => label()),
            forwards: Outcomes::new(&[Failure::VARIANTS], forwards),
            halvings: zero(counter!(names::ENGINE_HALVINGS, "model" => label())),
            scored_tokens: zero(counter!(names::ENGINE_TOKENS, "model" => label())),
            cache_hits: hits("memory"),
            cache_recalls: hits("disk"),
            cache_misses: zero(counter!(names::ENGINE_CACHE_MISSES, "model" => label())),
            loads_ok: loads("ok"),
            loads_failed: loads("failed"),
            unloads: zero(counter!(names::ENGINE_UNLOADS, "model" => label())),
            evictions: zero(counter!(names::ENGINE_EVICTIONS, "model" => label())),
            budgets: device_names
                .iter()
                .enumerate()
                .map(|(device, name)| if devices.contains(&device) { budget(model, name) } else { Gauge::noop() })
                .collect(),
        }
    }

    pub(super) fn note_forward(
        &self,
        result: &Result<Vec<Answer>, Failure>,
        sequences: usize,
        tokens: usize,
        took: Duration,
    ) {
        self.batch_sequences.record(sequences as f64);
        self.batch_tokens.record(tokens as f64);
        self.forward_seconds.record(took);
        if let Ok(answers) = result {
            let scored = |answer: &Answer| match answer {
                Answer::Stats(stats) => stats.len() as u64,
                Answer::Continued(_) | Answer::Filled(_) => 0,
            };
            self.scored_tokens.increment(answers.iter().map(scored).sum());
        }
        self.forwards.count(result.as_ref().map_or_else(Into::into, |_| "ok"));
    }
}

#[derive(Debug, Clone)]
pub(super) struct DiskMetrics {
    pub(super) bytes: Gauge,
    pub(super) dropped: Counter,
    pub(super) open_errors: Counter,
    pub(super) read_errors: Counter,
    pub(super) write_errors: Counter,
}

impl DiskMetrics {
    pub(super) fn new() -> Self {
        let errors = |operation| zero(counter!(names::ENGINE_DISK_CACHE_ERRORS, "operation" => operation));
        let bytes = gauge!(names::ENGINE_DISK_CACHE_BYTES);
        bytes.set(0.0);
        Self {
            bytes,
            dropped: zero(counter!(names::ENGINE_DISK_CACHE_DROPPED)),
            open_errors: errors("open"),
            read_errors: errors("read"),
            write_errors: errors("write"),
        }
    }
}

#[derive(Debug)]
pub(super) struct EngineMetrics {
    requests: PerClass<Outcomes>,
    pub(super) queue_tokens: PerClass<Gauge>,
    pub(super) queue_seconds: PerClass<Histogram>,
    /// About how many bytes the cache in memory holds.
    pub(super) cache_bytes: Gauge,
    pub(super) disk: DiskMetrics,
    pub(super) dropped_late: Counter,
    pub(super) dropped_abandoned: Counter,
    /// The memory in use, by index of the device.
    pub(super) memory_used: Vec<Gauge>,
    /// 1 if it does not answer, by index of the device.
    pub(super) unavailable: Vec<Gauge>,
}

impl EngineMetrics {
    pub(super) fn new(devices: &[DeviceSlot]) -> Self {
        let dropped = |reason| zero(counter!(names::ENGINE_DROPPED, "reason" => reason));
        let label = |class: Class| -> &'static str { class.into() };
        Self {
            requests: PerClass::new(|class| {
                Outcomes::new(
                    &[&["cancelled"], Refusal::VARIANTS, EngineError::VARIANTS],
                    |outcome| counter!(names::ENGINE_REQUESTS, "class" => label(class), "outcome" => outcome),
                )
            }),
            queue_tokens: PerClass::new(|class| {
                let tokens = gauge!(names::ENGINE_QUEUE_TOKENS, "class" => label(class));
                tokens.set(0.0);
                tokens
            }),
            queue_seconds: PerClass::new(|class| histogram!(names::ENGINE_QUEUE_SECONDS, "class" => label(class))),
            cache_bytes: gauge!(names::ENGINE_CACHE_BYTES),
            disk: DiskMetrics::new(),
            dropped_late: dropped("deadline"),
            dropped_abandoned: dropped("abandoned"),
            memory_used: devices.iter().map(memory).collect(),
            unavailable: devices.iter().map(unavailable).collect(),
        }
    }
}

fn memory(device: &DeviceSlot) -> Gauge {
    let bytes = |kind| gauge!(names::ENGINE_DEVICE_MEMORY, "device" => device.name.clone(), "kind" => kind);
    bytes("budget").set(device.memory as f64);
    let used = bytes("used");
    used.set(0.0);
    used
}

fn unavailable(device: &DeviceSlot) -> Gauge {
    let gauge = gauge!(names::ENGINE_DEVICE_UNAVAILABLE, "device" => device.name.clone());
    gauge.set(0.0);
    gauge
}

/// The gauge of a model's token budget on a device, which is 0 where the device does not hold it.
fn budget(model: &str, device: &str) -> Gauge {
    let tokens = gauge!(names::ENGINE_BATCH_BUDGET, "model" => model.to_owned(), "device" => device.to_owned());
    tokens.set(0.0);
    tokens
}

fn zero(counter: Counter) -> Counter {
    counter.increment(0);
    counter
}

/// Counts one request, once, when it is dropped: whatever becomes of a request, this goes with it.
#[derive(Debug)]
pub(super) struct RequestGuard {
    metrics: Arc<EngineMetrics>,
    class: Class,
    outcome: &'static str,
}

impl RequestGuard {
    /// A request that counts as cancelled until something else is known.
    pub(super) fn new(metrics: Arc<EngineMetrics>, class: Class) -> Self {
        Self { metrics, class, outcome: "cancelled" }
    }

    pub(super) fn settle(mut self, outcome: &'static str) {
        self.outcome = outcome;
    }

    /// Goes on with a request that is not refused.
    pub(super) fn unless_refused<T>(self, result: Result<T, Refusal>) -> Result<(T, Self), Refusal> {
        match result {
            Ok(value) => Ok((value, self)),
            Err(refusal) => {
                self.settle((&refusal).into());
                Err(refusal)
            }
        }
    }
}

impl Drop for RequestGuard {
    fn drop(&mut self) {
        self.metrics.requests.get(self.class).count(self.outcome);
    }
}
