//! Models whose layers are read in every pass: long passes that are watched, and batches that grow.

use super::rig::{Latch, Rig, Script, audit, client, eventually, fake_stats, fakes, ids, stats};
use crate::engine::{Class, EngineError, Pass, Refusal, Request};
use lm::models::lora::LoadedAdapter;
use lm::models::{BatchStats, CausalLm, LayerProgress, LayerWatch, LoadedModel, ModelError, Pending};
use std::ops::ControlFlow;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::time::{Duration, Instant};

const LAYERS: usize = 3;

/// Called before each layer; the time that the pass has waited so far.
type OnLayer = Arc<dyn Fn(usize) -> Result<Duration, ModelError> + Send + Sync>;

struct Streaming {
    on_layer: OnLayer,
    watch: Option<LayerWatch>,
}

impl CausalLm for Streaming {
    fn begin(&self, sequences: &[&[u32]], _: Option<&LoadedAdapter>) -> Result<Pending<BatchStats>, ModelError> {
        for layer in 0..LAYERS {
            let waited = (self.on_layer)(layer)?;
            let watch = self.watch.as_ref().expect("the engine watches");
            if watch(LayerProgress { layer, layers: LAYERS, waited }) == ControlFlow::Break(()) {
                return Err(ModelError::Cancelled);
            }
        }
        Ok(Pending::Ready(sequences.iter().map(|ids| fake_stats("m", ids).to_vec()).collect()))
    }

    fn watch(&mut self, watch: LayerWatch) {
        self.watch = Some(watch);
    }
}

/// A rig of one model, which calls this before each layer.
fn rig(on_layer: impl Fn(usize) -> Result<Duration, ModelError> + Send + Sync + 'static) -> Rig {
    let on_layer: OnLayer = Arc::new(on_layer);
    let load = move |_: usize| -> Result<LoadedModel, ModelError> {
        Ok(LoadedModel::Causal(Box::new(Streaming { on_layer: Arc::clone(&on_layer), watch: None })))
    };
    Rig::with(&Script::new("m").streamed().loading(Arc::new(load)))
}

/// A rig whose model stands before the latch in the second layer of its first pass.
fn held() -> (Rig, Arc<Latch>) {
    let (latch, passes) = (Arc::new(Latch::default()), AtomicUsize::new(0));
    let inner = Arc::clone(&latch);
    let rig = rig(move |layer| {
        if layer == 1 && passes.fetch_add(1, SeqCst) == 0 {
            inner.pass();
        }
        Ok(Duration::ZERO)
    });
    (rig, latch)
}

#[tokio::test]
async fn batches_grow_while_passes_wait_for_layers() {
    let waiting = |waited| rig(move |_| Ok(waited));
    let expected = [(Duration::from_secs(3600), [200.0, 400.0, 800.0, 800.0]), (Duration::ZERO, [100.0; 4])];
    for (waited, expected) in expected {
        let (rig, mut budgets) = (waiting(waited), Vec::new());
        for (first, tokens) in [(1, 100), (2, 100), (3, 200), (4, 400)] {
            rig.run_checked(client, &[ids(first, tokens)]).await;
            budgets.push(rig.metric("batch_budget_tokens{model=m,device=fake:0}"));
        }
        assert_eq!(budgets, expected);
        rig.assert_idle().await;
    }
}

#[tokio::test]
async fn a_pass_that_nobody_waits_for_ends() {
    let (rig, latch) = held();
    let abandoned = rig.submit(client(vec![ids(1, 10), ids(2, 10)]));
    latch.reached().await;
    drop(abandoned);
    let next = rig.submit(client(vec![ids(3, 10)]));
    latch.open();
    assert_eq!(stats(&next.wait().await.unwrap()), fakes("m", &[ids(3, 10)]));
    assert_eq!(rig.metric("forwards_total{model=m,outcome=cancelled}"), 1.0);
    assert_eq!(rig.metric("forwards_total{model=m,outcome=ok}"), 1.0);
    rig.assert_idle().await;
}

#[tokio::test]
async fn the_end_of_the_engine_ends_a_pass() {
    let (rig, latch) = held();
    let pending = rig.submit(audit(vec![ids(1, 10)]));
    latch.reached().await;
    let shutdown = rig.shutdown_behind(Duration::ZERO);
    eventually(|| rig.engine.shared().is_stopped()).await;
    latch.open();
    assert_eq!(pending.wait().await.unwrap_err(), EngineError::ShuttingDown);
    shutdown.await.unwrap();
}

#[tokio::test]
async fn layers_that_cannot_be_read_fail_the_batch_once_and_not_the_model() {
    let passes = Arc::new(AtomicUsize::new(0));
    let counter = Arc::clone(&passes);
    let rig = rig(move |layer| match (layer, counter.load(SeqCst)) {
        (1, 0) => {
            counter.store(1, SeqCst);
            Err(ModelError::File { path: "model.safetensors".to_owned(), reason: "Input/output error".to_owned() })
        }
        _ => Ok(Duration::ZERO),
    });
    let sequences: Vec<_> = (1..=5).map(|n| ids(n, 10)).collect();
    let failure = rig.submit(audit(sequences.clone())).wait().await.unwrap_err();
    assert_eq!(failure, EngineError::LoadFailed("model.safetensors: Input/output error".to_owned()));
    rig.run_checked(audit, &sequences).await;
    assert_eq!(rig.metric("forwards_total{model=m,outcome=unreadable}"), 1.0);
    rig.assert_idle().await;
}

#[tokio::test]
async fn progress_is_known_while_a_pass_runs() {
    let (rig, latch) = held();
    let pending = rig.submit(client(vec![ids(1, 10)]));
    latch.reached().await;
    let status = rig.engine.status();
    let (busy, progress) = (status.busy_since().unwrap(), status.busy_without_progress_since().unwrap());
    assert!(progress > busy, "the first layer counts as progress");
    latch.open();
    pending.wait().await.unwrap();
    eventually(|| rig.engine.status().busy_without_progress_since().is_none()).await;
}

#[tokio::test]
async fn a_deadline_before_the_end_of_any_pass_is_refused() {
    let took = Duration::from_millis(30);
    let rig = rig(move |_| {
        std::thread::sleep(took / LAYERS as u32);
        Ok(Duration::ZERO)
    });
    let within = |time: Duration| {
        let mut request = Request::new("m", "sha256:m".into(), Class::Interactive, Some(Instant::now() + time));
        drop(request.add(Pass::score(ids(7, 10))));
        request
    };
    rig.run_checked(client, &[ids(1, 10)]).await;
    let refusal = rig.refusal(within(took / 3));
    assert!(matches!(refusal, Refusal::CannotMeetDeadline { estimate, .. } if estimate >= took), "{refusal:?}");
    rig.run(within(Duration::from_secs(3600))).await;
    rig.assert_idle().await;
}
