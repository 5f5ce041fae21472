//! The steps of a mixer for which a GPU has kernels, over the packed batch.

use super::mixer::{Columns, Conv, Scan, ScanColumns};
use crate::models::batch::PackedBatch;
use crate::models::cuda::{ScanInput, ScanPlaces, Scans};
use crate::models::kernels::scan::ScanShape;
use candle_core::{Result, Tensor};

/// The kernels, and the batch they run over.
pub struct Kernels {
    scans: Scans,
    places: ScanPlaces,
}

impl Kernels {
    /// For a batch whose first hidden states are `x`; None where there are no kernels, or where gradients are wanted.
    pub fn new(batch: &PackedBatch, shape: ScanShape, x: &Tensor) -> Result<Option<Self>> {
        match Scans::new(x.device(), shape)? {
            Some(scans) if !x.track_op() => Ok(Some(Self { scans, places: ScanPlaces::new(batch, x.device())? })),
            _ => Ok(None),
        }
    }

    /// The convolution with its activation, `[tokens, channels]`.
    pub fn conv(&self, x: Columns, conv: &Conv) -> Result<Tensor> {
        self.scans.conv((x.tensor, x.first), &conv.taps, &conv.bias, &self.places)
    }

    /// The gated result of the scan, `[tokens, channels]`.
    pub fn scan(&self, columns: &ScanColumns, scan: &Scan) -> Result<Tensor> {
        let ScanColumns { x, gate, time_steps, b, c } = columns;
        let input = ScanInput {
            x: (x.tensor, x.first),
            gate: (gate.tensor, gate.first),
            time_steps: (time_steps.tensor, time_steps.first),
            b: (b.tensor, b.first),
            c: (c.tensor, c.first),
            a: &scan.a,
            d: &scan.d,
            time_bias: &scan.time_bias,
            time_limit: scan.time_limit,
        };
        self.scans.scan(&input, &self.places)
    }
}
