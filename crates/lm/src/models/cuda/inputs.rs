//! The arguments of GPU kernels.

use super::upload;
use crate::models::batch::PackedBatch;
use candle_core::{DType, Device, Error, Result, Tensor};
use kernels::cuda::{AttentionTiling, query_blocks};
use kernels::scan::ScanShape;
use std::ops::Range;

/// Rows of logits, computed from a product.
pub struct LogitRows<'a> {
    /// `[rows, columns]`, f32; column 0 is entry `first` of the vocabulary.
    pub product: &'a Tensor,
    /// `[columns]`, f32; added to every row.
    pub bias: Option<&'a Tensor>,
    /// Logits x become `cap tanh(x / cap)`.
    pub soft_cap: Option<f64>,
    /// `[rows]`, u32: the ids of the observed tokens.
    pub targets: &'a Tensor,
    pub first: usize,
}

/// The learned parameters of the scan, as described by [`kernels::scan::ScanWeights`].
pub struct Scan {
    pub shape: ScanShape,
    pub a: Tensor,
    pub d: Tensor,
    pub time_bias: Tensor,
    pub time_limit: (f64, f64),
}

/// Columns of a tensor `[tokens, width]`, starting at `first`; the reader determines how many.
#[derive(Clone, Copy)]
pub struct Columns<'a> {
    pub tensor: &'a Tensor,
    pub first: usize,
}

/// The inputs of the scan, as described by [`kernels::scan::ScanInput`].
pub struct ScanColumns<'a> {
    pub x: Columns<'a>,
    pub gate: Columns<'a>,
    pub time_steps: Columns<'a>,
    pub b: Columns<'a>,
    pub c: Columns<'a>,
}

/// The positions of a batch's tokens in their sequences, on the device.
#[cfg_attr(not(feature = "cuda"), expect(dead_code, reason = "only kernels read it"))]
pub struct ScanPlaces {
    // Kernels trust these values, so they can only be created here.
    /// `[sequences, 2]`: the first row of each sequence and the one after its last.
    pub(super) bounds: Tensor,
    /// `[tokens]`: the position of each token in its sequence.
    pub(super) positions: Tensor,
}

impl ScanPlaces {
    pub fn new(batch: &PackedBatch, device: &Device) -> Result<Self> {
        let on_device =
            |places: Vec<usize>| upload(&places.into_iter().map(to_u32).collect::<Result<Vec<_>>>()?, device);
        let bounds = batch.sequences.iter().flat_map(|s| [s.start, s.end]).collect();
        Ok(Self { bounds: on_device(bounds)?.reshape(((), 2))?, positions: on_device(batch.positions())? })
    }
}

/// The blocks of queries that the attention kernel processes, on the device.
#[cfg_attr(not(feature = "cuda"), expect(dead_code, reason = "only kernels read it"))]
pub struct QueryBlocks {
    // The kernel trusts these values, so they can only be created here.
    /// `[blocks, 3]`, see [`query_blocks`].
    pub(super) blocks: Tensor,
    /// The rows of the batch.
    pub(super) tokens: usize,
}

impl QueryBlocks {
    /// Divides the queries of a packed batch into blocks of at most `queries`.
    pub fn new(sequences: &[Range<usize>], queries: usize, device: &Device) -> Result<Self> {
        let blocks = query_blocks(sequences, queries).into_iter().flatten().map(to_u32).collect::<Result<Vec<_>>>()?;
        let tokens = sequences.iter().map(Range::len).sum();
        Ok(Self { blocks: upload(&blocks, device)?.reshape(((), 3))?, tokens })
    }
}

/// Returns the block sizes of attention; `None` if there is no kernel for the heads or the type.
pub fn attention_tiling(head_dim: usize, dtype: DType) -> Option<AttentionTiling> {
    matches!(dtype, DType::F16 | DType::BF16).then(|| AttentionTiling::new(head_dim)).flatten()
}

/// Converts a count to the type that kernels take.
pub fn to_u32(n: usize) -> Result<u32> {
    u32::try_from(n).map_err(|_| Error::Msg(format!("{n} exceeds the range of a GPU kernel's argument")))
}
