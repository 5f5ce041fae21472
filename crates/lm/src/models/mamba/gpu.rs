//! The steps of a mixer for which there are GPU kernels, over the packed batch.

use super::steps::{Columns, Conv, Scan, ScanColumns};
use crate::models::batch::PackedBatch;
use crate::models::cuda::{GpuScanInput, ScanPlaces, Scans};
use candle_core::{Device, Result, Tensor};

/// The kernels, and the batch they run over.
pub struct Kernels<'a> {
    scans: &'a Scans,
    places: ScanPlaces,
}

impl<'a> Kernels<'a> {
    pub fn new(scans: &'a Scans, batch: &PackedBatch, device: &Device) -> Result<Self> {
        Ok(Self { scans, places: ScanPlaces::new(batch, device)? })
    }

    /// The convolution with its activation, `[tokens, channels]`.
    pub fn conv(&self, x: Columns, conv: &Conv) -> Result<Tensor> {
        self.scans.conv((x.tensor, x.first), &conv.taps, &conv.bias, &self.places)
    }

    /// The gated result of the scan, `[tokens, channels]`.
    pub fn scan(&self, columns: &ScanColumns, scan: &Scan) -> Result<Tensor> {
        let ScanColumns { x, gate, time_steps, b, c } = columns;
        let input = GpuScanInput {
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
