//! The arguments of GPU kernels.

use super::upload;
use crate::models::batch::PackedBatch;
use candle_core::{Device, Error, Result, Tensor};
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

/// A contiguous tensor `[tokens, ..]` and the first column that is read.
pub type GpuColumns<'a> = (&'a Tensor, usize);

/// The inputs of a scan, in the shapes of [`crate::models::kernels::scan`].
pub struct GpuScanInput<'a> {
    pub x: GpuColumns<'a>,
    pub gate: GpuColumns<'a>,
    pub time_steps: GpuColumns<'a>,
    pub b: GpuColumns<'a>,
    pub c: GpuColumns<'a>,
    pub a: &'a Tensor,
    pub d: &'a Tensor,
    pub time_bias: &'a Tensor,
    /// Bounds on the time step after softplus.
    pub time_limit: (f64, f64),
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
    /// # Errors
    /// If the device fails.
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
    ///
    /// # Errors
    /// If the device fails, or the rows exceed the range of the kernel's arguments.
    pub fn new(sequences: &[Range<usize>], queries: usize, device: &Device) -> Result<Self> {
        let blocks = query_blocks(sequences, queries).into_iter().flatten().map(to_u32).collect::<Result<Vec<_>>>()?;
        let tokens = sequences.iter().map(Range::len).sum();
        Ok(Self { blocks: upload(&blocks, device)?.reshape(((), 3))?, tokens })
    }
}

/// For each block of queries: the first row of its sequence, its own first row, and the row after the last of its
/// sequence. Those with most keys come first, so that none of them begins when the others are done.
pub fn query_blocks(sequences: &[Range<usize>], queries: usize) -> Vec<[usize; 3]> {
    let blocks = sequences.iter().flat_map(|s| s.clone().step_by(queries).map(|first| [s.start, first, s.end]));
    let mut blocks: Vec<_> = blocks.collect();
    blocks.sort_by_key(|[start, first, end]| std::cmp::Reverse((first + queries).min(*end) - start));
    blocks
}

/// Converts a count to the type that kernels take.
pub fn to_u32(n: usize) -> Result<u32> {
    u32::try_from(n).map_err(|_| Error::Msg(format!("{n} exceeds the range of a GPU kernel's argument")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_cover_every_query_once_and_the_longest_come_first() {
        let sequences = [0..5, 5..5, 5..6, 6..15];
        let blocks = query_blocks(&sequences, 4);
        assert_eq!(blocks, [[6, 14, 15], [6, 10, 15], [0, 4, 5], [0, 0, 5], [6, 6, 15], [5, 5, 6]]);
        let mut rows: Vec<usize> = blocks.iter().flat_map(|&[_, first, end]| first..(first + 4).min(end)).collect();
        rows.sort_unstable();
        assert_eq!(rows, (0..15).collect::<Vec<_>>());
    }
}
