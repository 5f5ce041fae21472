//! What kernels are given.

use crate::models::batch::PackedBatch;
use candle_core::{Device, Error, Result, Tensor};

/// Rows of logits, to be made of a product.
pub struct Rows<'a> {
    /// `[rows, columns]`; column 0 is the entry `first` of the vocabulary.
    pub product: &'a Tensor,
    /// `[columns]`, f32; added to every row.
    pub bias: Option<&'a Tensor>,
    /// Logits x become `cap tanh(x / cap)`.
    pub soft_cap: Option<f64>,
    /// `[rows]`, u32: the tokens that came.
    pub targets: &'a Tensor,
    pub first: usize,
}

/// A contiguous tensor `[tokens, ..]` and the first of the columns that are read.
pub type Columns<'a> = (&'a Tensor, usize);

/// What a scan reads, in the shapes of [`crate::models::kernels::scan`].
pub struct ScanInput<'a> {
    pub x: Columns<'a>,
    pub gate: Columns<'a>,
    pub time_steps: Columns<'a>,
    pub b: Columns<'a>,
    pub c: Columns<'a>,
    pub a: &'a Tensor,
    pub d: &'a Tensor,
    pub time_bias: &'a Tensor,
    /// Bounds on the time step after softplus.
    pub time_limit: (f64, f64),
}

/// Where the tokens of a batch stand in their sequences, on the device.
#[cfg_attr(not(feature = "cuda"), expect(dead_code, reason = "only kernels read it"))]
pub struct ScanPlaces {
    // Kernels trust what these say, so nobody else may make them.
    /// `[sequences, 2]`: the first row, and the one past the last.
    pub(super) bounds: Tensor,
    /// `[tokens]`: the position of each.
    pub(super) positions: Tensor,
}

impl ScanPlaces {
    /// # Errors
    /// Where the device fails.
    pub fn new(batch: &PackedBatch, device: &Device) -> Result<Self> {
        let on_device =
            |places: Vec<usize>| Tensor::new(places.into_iter().map(to_u32).collect::<Result<Vec<_>>>()?, device);
        let bounds = batch.sequences.iter().flat_map(|s| [s.start, s.end]).collect();
        Ok(Self { bounds: on_device(bounds)?.reshape(((), 2))?, positions: on_device(batch.positions())? })
    }
}

/// A count as kernels take it.
pub fn to_u32(n: usize) -> Result<u32> {
    u32::try_from(n).map_err(|_| Error::Msg(format!("{n} is too much for a kernel of a GPU")))
}
