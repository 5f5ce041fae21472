//! The layers of a decoder: in memory, or read from the checkpoint in every forward pass.
//!
//! While a streamed layer computes, threads read the next one, so at most two layers are in memory. Each thread reads a few rows of
//! a matrix and packs them before it reads the next ones: the disk is busy while others pack, and a layer has no second copy. It goes
//! into the memory of the layer before the last one, since new memory costs a fault for each page, and past the page cache, which
//! has no room for the model. Both ways build a layer by the same function from the same tensors, so they have the same results, bit
//! for bit.

use super::arch::Arch;
use super::batch::PackedBatch;
use super::device::release_freed;
use super::error::ModelError;
use super::layer::DecoderLayer;
use super::ops::{Form, TensorSource};
use kernels::packed::PanelMemory;
use rayon::{ThreadPool, ThreadPoolBuilder};
use serde::Serialize;
use std::sync::mpsc::{Receiver, SyncSender, channel, sync_channel};
use std::thread::{Builder, scope};
use std::time::{Duration, Instant};
use utoipa::ToSchema;

/// Tokens that run through a streamed layer at a time: the intermediate results of so many are in memory. A longer sequence runs
/// by itself.
pub const TOKENS_AT_ONCE: usize = 2_048;

/// Minimum number of threads that read: a disk is faster with several requests at a time.
const READERS: usize = 4;

/// Where the layers of a model are while it runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "lowercase")]
pub enum LayerPlacement {
    /// In memory.
    Resident,
    /// On disk: every forward pass reads them one after the other.
    #[serde(rename = "stream")]
    Streamed,
}

pub enum Layers {
    Resident(Vec<DecoderLayer>),
    Streamed(LayerStream),
}

/// Builds the layer of an index from the checkpoint, in the memory of another layer where there is one.
pub type LoadLayer = Box<dyn Fn(usize, Vec<PanelMemory>) -> Result<DecoderLayer, ModelError> + Send + Sync>;

pub struct LayerStream {
    count: usize,
    load: LoadLayer,
    /// The threads that read and pack the next layer.
    readers: ThreadPool,
}

impl Layers {
    /// Loads all layers.
    pub fn resident(arch: &Arch, form: Form, source: TensorSource<'_>) -> Result<Self, ModelError> {
        let layers = (0..arch.sizes.layers).map(|index| DecoderLayer::new(arch, index, form, source));
        layers.collect::<Result<_, _>>().map(Self::Resident)
    }

    /// The parts of a batch that run through each layer one after the other; `None` if the batch runs as a whole.
    pub fn split(&self, batch: &PackedBatch) -> Option<Vec<PackedBatch>> {
        match self {
            Self::Resident(_) => None,
            Self::Streamed(_) => Some(batch.split(TOKENS_AT_ONCE)),
        }
    }

    /// Calls `visit` with every layer, its index, and the time that was waited for layers so far, in order.
    ///
    /// # Errors
    /// Those of `visit` and, for streamed layers, of reading the checkpoint.
    pub fn visit(
        &self,
        mut visit: impl FnMut(usize, &DecoderLayer, Duration) -> Result<(), ModelError>,
    ) -> Result<(), ModelError> {
        match self {
            Self::Resident(layers) => {
                layers.iter().enumerate().try_for_each(|(index, layer)| visit(index, layer, Duration::ZERO))
            }
            Self::Streamed(stream) => stream.visit(visit),
        }
    }

    pub fn are_streamed(&self) -> bool {
        matches!(self, Self::Streamed(_))
    }
}

impl LayerStream {
    /// A stream of `count` layers.
    ///
    /// # Errors
    /// [`ModelError::Forward`] if the system gives no threads.
    pub fn new(count: usize, load: LoadLayer) -> Result<Self, ModelError> {
        let pool = ThreadPoolBuilder::new().num_threads(readers()).thread_name(|index| format!("layers-{index}"));
        Ok(Self { count, load, readers: pool.build().map_err(no_threads)? })
    }

    fn visit(
        &self,
        mut visit: impl FnMut(usize, &DecoderLayer, Duration) -> Result<(), ModelError>,
    ) -> Result<(), ModelError> {
        scope(|scope| {
            // Without room for any: the reader holds the next layer until the one before it has gone.
            let (sender, layers) = sync_channel(0);
            let (done, used) = channel();
            let reader = Builder::new().name("layers".to_owned());
            reader.spawn_scoped(scope, move || self.read_all(&sender, &used)).map_err(no_threads)?;
            let mut waited = Duration::ZERO;
            for index in 0..self.count {
                let since = Instant::now();
                let layer =
                    layers.recv().map_err(|_| ModelError::Forward("the thread that reads layers ended".into()))?;
                waited += since.elapsed();
                let layer = layer?;
                visit(index, &layer, waited)?;
                // Nobody takes the last ones.
                done.send(layer).ok();
            }
            Ok(())
        })
    }

    /// Reads all layers, up to the first error, for as long as somebody takes them. When the one before a layer was taken, the one
    /// before that had been used.
    fn read_all(&self, layers: &SyncSender<Result<DecoderLayer, ModelError>>, used: &Receiver<DecoderLayer>) {
        for index in 0..self.count {
            let memory = used.try_recv().map_or_else(|_| Vec::new(), DecoderLayer::into_memory);
            // Returns what else the layer had to the system.
            release_freed();
            let layer = self.readers.install(|| (self.load)(index, memory));
            let is_last = layer.is_err();
            if layers.send(layer).is_err() || is_last {
                return;
            }
        }
    }
}

/// The number of threads that read the layers of a model.
pub fn readers() -> usize {
    rayon::current_num_threads().max(READERS)
}

fn no_threads(why: impl ToString) -> ModelError {
    ModelError::Forward(format!("no thread to read layers: {}", why.to_string()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::models::arch::Sizes;
    use candle_core::{DType, Device, Tensor};
    use std::sync::Arc;
    use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};

    const COUNT: usize = 6;

    fn stream(load: impl Fn(usize) -> Result<(), ModelError> + Send + Sync + 'static) -> Layers {
        let sizes =
            Sizes { vocab: 4, hidden: 4, layers: COUNT, heads: 1, kv_heads: 1, head_dim: 4, inner: 4, context: 4 };
        let arch = Arch::new(sizes);
        let load = move |index, _| {
            load(index)?;
            let zeros = |_: &str, shape: &[usize]| Ok(Tensor::zeros(shape, DType::F32, &Device::Cpu)?);
            DecoderLayer::new(&arch, index, Form::Plain, &mut { zeros })
        };
        Layers::Streamed(LayerStream::new(COUNT, Box::new(load)).unwrap())
    }

    /// The indices of the layers that are visited up to the first error, and the error.
    fn visited(layers: &Layers, fails_at: usize) -> (Vec<usize>, Result<(), String>) {
        let mut visited = Vec::new();
        let result = layers.visit(|index, _, _| {
            visited.push(index);
            if index == fails_at { Err(ModelError::OutOfMemory("full".to_owned())) } else { Ok(()) }
        });
        (visited, result.map_err(|error| error.to_string()))
    }

    #[test]
    fn layers_come_in_order_and_one_is_read_ahead() {
        let loaded = Arc::new(AtomicUsize::new(0));
        let counter = Arc::clone(&loaded);
        let layers = stream(move |index| {
            assert_eq!(counter.fetch_add(1, SeqCst) % COUNT, index);
            Ok(())
        });
        let mut visits = 0;
        let in_memory = |index: usize, _: &DecoderLayer, _: Duration| {
            visits += 1;
            let begun = loaded.load(SeqCst);
            assert!(begun <= index + 2, "layer {begun} is read while layer {index} computes");
            Ok(())
        };
        layers.visit(in_memory).unwrap();
        assert_eq!((visits, loaded.load(SeqCst)), (COUNT, COUNT));
    }

    #[test]
    fn a_disk_that_fails_ends_the_pass_and_not_the_model() {
        let reads = AtomicUsize::new(0);
        let fails_once = move |index| match (index, reads.fetch_add(1, SeqCst)) {
            (3, 0..COUNT) => Err(ModelError::File { path: "x".to_owned(), reason: "Input/output error".to_owned() }),
            _ => Ok(()),
        };
        let layers = stream(fails_once);
        assert_eq!(visited(&layers, COUNT), (vec![0, 1, 2], Err("x: Input/output error".to_owned())));
        assert_eq!(visited(&layers, COUNT), ((0..COUNT).collect(), Ok(())));
    }

    #[test]
    fn a_pass_that_fails_ends_the_reading() {
        let loaded = Arc::new(AtomicUsize::new(0));
        let counter = Arc::clone(&loaded);
        let layers = stream(move |_| {
            counter.fetch_add(1, SeqCst);
            Ok(())
        });
        assert_eq!(visited(&layers, 1), (vec![0, 1], Err("out of memory: full".to_owned())));
        assert!(loaded.load(SeqCst) <= 3);
    }
}
