//! Watch over passes through streamed layers, which may take hours: their progress is known to health, and a pass that nobody waits
//! for any more ends.

use crate::engine::admission::RequestContext;
use crate::engine::queued::QueuedPass;
use crate::engine::shared::Shared;
use lm::models::LayerProgress;
use std::cell::RefCell;
use std::ops::ControlFlow;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Time between two lines of the log about one pass.
const BETWEEN_LINES: Duration = Duration::from_secs(60);

pub(super) struct PassWatch {
    model: Arc<str>,
    device: usize,
    shared: Arc<Shared>,
    pass: RefCell<WatchedPass>,
}

/// The pass that runs, or the last one.
struct WatchedPass {
    /// Those of its sequences.
    requests: Vec<Arc<RequestContext>>,
    /// Time that it has waited for layers.
    waited: Duration,
    /// When the log last had a line about it, or when it began.
    logged: Instant,
}

impl PassWatch {
    pub(super) fn new(model: Arc<str>, device: usize, shared: Arc<Shared>) -> Self {
        let pass = WatchedPass { requests: Vec::new(), waited: Duration::ZERO, logged: Instant::now() };
        Self { model, device, shared, pass: RefCell::new(pass) }
    }

    pub(super) fn begin(&self, passes: &[QueuedPass]) {
        let mut requests: Vec<_> = passes.iter().map(|pass| Arc::clone(pass.request())).collect();
        requests.dedup_by_key(|request| request.number);
        *self.pass.borrow_mut() = WatchedPass { requests, waited: Duration::ZERO, logged: Instant::now() };
    }

    /// Notes progress; the pass goes on as long as somebody waits for one of its sequences and the engine runs.
    pub(super) fn note(&self, progress: LayerProgress) -> ControlFlow<()> {
        let now = Instant::now();
        self.shared.facts().devices[self.device].progressed = Some(now);
        let mut pass = self.pass.borrow_mut();
        pass.waited = progress.waited;
        if now.saturating_duration_since(pass.logged) >= BETWEEN_LINES {
            pass.logged = now;
            let (model, waited_seconds) = (&*self.model, progress.waited.as_secs_f64());
            let LayerProgress { layer, layers, .. } = progress;
            tracing::info!(model, layer, layers, waited_seconds, "a batch runs through layers that are read from disk");
        }
        let is_wanted = pass.requests.iter().any(|request| request.is_wanted(now));
        if is_wanted && !self.shared.is_stopped() { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
    }

    /// Forgets the requests of the pass, so that they end with it.
    pub(super) fn end(&self) {
        self.pass.borrow_mut().requests.clear();
    }

    /// Time that the last pass waited for layers.
    pub(super) fn waited(&self) -> Duration {
        self.pass.borrow().waited
    }
}
