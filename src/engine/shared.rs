//! What the handles, the tickets and the device thread all see.

use std::sync::Arc;
use std::time::Instant;

use super::admission::Gate;
use super::cache::StatsCache;
use super::meters::Meters;
use super::plan::Plan;
use super::status::{Board, Facts};
use super::{Class, EngineError, EngineSettings, EngineStatus, ModelSource, ModelStatus, Refusal};

#[derive(Debug)]
pub(super) struct Shared {
    pub(super) gate: Gate,
    pub(super) cache: StatsCache,
    pub(super) board: Board,
    pub(super) meters: Arc<Meters>,
}

impl Shared {
    pub(super) fn new(sources: &[ModelSource], settings: &EngineSettings) -> Self {
        let meters = Meters::new(sources.iter().map(|source| source.id.as_str()));
        let identities = sources.iter().map(|source| source.identity.as_str().into());
        Self {
            gate: Gate::new(
                sources.len(),
                settings.max_queue_tokens,
                settings.max_batch_tokens,
                meters.queue_tokens.clone(),
            ),
            cache: StatsCache::new(identities.collect(), settings.cache_bytes),
            board: Board::new(Facts::new(sources.iter().map(|source| source.eager))),
            meters: Arc::new(meters),
        }
    }

    /// Declares the device lost. The first reason stays; the gate closes after it is known, so that whoever finds
    /// the gate closed finds the reason.
    pub(super) fn lose_device(&self, reason: &str) {
        tracing::error!(reason, "the device is lost");
        self.board.announce(|facts| {
            facts.lost.get_or_insert_with(|| reason.to_owned());
            facts.last_error = Some((Instant::now(), reason.to_owned()));
        });
        self.gate.close();
    }

    /// Why an admitted sequence was dropped without an answer, which only happens when the engine ends.
    pub(super) fn why_it_ended(&self) -> EngineError {
        match &self.board.read().lost {
            Some(reason) => EngineError::DeviceLost(reason.clone()),
            None if self.gate.is_closed() => EngineError::ShuttingDown,
            None => EngineError::DeviceLost("the device thread has ended".to_owned()),
        }
    }

    /// Why the gate is closed.
    pub(super) fn why_it_refuses(&self) -> Refusal {
        match &self.board.read().lost {
            Some(reason) => Refusal::DeviceLost(reason.clone()),
            None => Refusal::Draining,
        }
    }

    /// The models' speeds in tokens per second, as far as they are known.
    pub(super) fn rates(&self, now: Instant) -> Vec<Option<f64>> {
        let facts = self.board.read();
        let rates = facts.models.iter().map(|model| model.rate?.at(now));
        rates.collect()
    }

    /// Counts what the cache did for an admitted request.
    pub(super) fn count_cache(&self, model: usize, plan: &Plan) {
        let meters = &self.meters.models[model];
        meters.cache_hits.increment(plan.cached as u64);
        meters.cache_misses.increment(plan.pending.len() as u64);
    }

    /// The engine at a glance; `ids` are the models' ids in order.
    pub(super) fn status<'a>(&self, ids: impl Iterator<Item = &'a str>) -> EngineStatus {
        let now = Instant::now();
        let facts = self.board.read();
        let models = ids.zip(&facts.models).map(|(id, model)| ModelStatus {
            id: id.to_owned(),
            eager: model.eager,
            state: model.state.clone(),
            tokens_per_second: model.rate.and_then(|rate| rate.at(now)),
        });
        EngineStatus {
            models: models.collect(),
            interactive_tokens: self.gate.tokens(Class::Interactive),
            batch_tokens: self.gate.tokens(Class::Batch),
            last_ok: facts.last_ok,
            last_error: facts.last_error.clone(),
            busy_since: facts.busy_since,
            device_alive: facts.alive,
            device_lost: facts.lost.clone(),
            draining: self.gate.is_closed(),
        }
    }
}
