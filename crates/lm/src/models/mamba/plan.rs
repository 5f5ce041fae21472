//! Selects the implementation of a mixer's steps: [`super::fused`], [`super::plain`] or kernels of a GPU.

use super::steps::{Conv, RmsNorm};
use super::{fused, plain};
use crate::models::batch::PackedBatch;
use crate::models::cuda::{Columns, Scan, ScanColumns};
use crate::models::cuda::{ScanPlaces, Scans};
use crate::models::ops::{Form, Multiply};
use candle_core::{DType, Result, Tensor, bail};

/// State that all layers of one forward pass share.
pub enum MixerPlan<'a> {
    Fused {
        batch: &'a PackedBatch,
        positions: Vec<usize>,
        multiply: Multiply,
    },
    Plain(plain::Padding),
    /// Kernels for the convolution and the scan, and candle's operations for norms.
    Gpu(&'a Scans, ScanPlaces),
}

impl<'a> MixerPlan<'a> {
    /// For a batch whose first hidden states are `x`.
    pub fn new(form: Form, batch: &'a PackedBatch, scans: Option<&'a Scans>, x: &Tensor) -> Result<Self> {
        Ok(match (form, scans) {
            (Form::Fused(multiply), _) => Self::Fused { batch, positions: batch.positions(), multiply },
            (Form::Gpu(_), Some(scans)) => Self::Gpu(scans, ScanPlaces::new(batch, x.device())?),
            (Form::Gpu(_), None) => bail!("there are no kernels for this scan on this device"),
            (Form::Plain, _) => Self::Plain(plain::Padding::new(batch, x.device())?),
        })
    }

    pub fn form(&self) -> Form {
        match self {
            Self::Fused { multiply, .. } => Form::Fused(*multiply),
            Self::Gpu(..) => Form::Gpu(DType::F32),
            Self::Plain(_) => Form::Plain,
        }
    }

    pub fn conv(&self, x: Columns, conv: &Conv) -> Result<Tensor> {
        match self {
            Self::Fused { positions, .. } => fused::conv(x, conv, positions),
            Self::Plain(padding) => plain::conv(x, conv, padding),
            Self::Gpu(scans, places) => scans.conv(x, &conv.taps, &conv.bias, places),
        }
    }

    pub fn scan(&self, columns: &ScanColumns, scan: &Scan) -> Result<Tensor> {
        match self {
            Self::Fused { batch, .. } => fused::scan(columns, scan, &batch.sequences),
            Self::Plain(padding) => plain::scan(columns, scan, padding),
            Self::Gpu(scans, places) => scans.scan(columns, scan, places),
        }
    }
}

impl RmsNorm {
    /// x `[tokens, width]`, normalised row by row and group by group.
    pub fn forward(&self, x: &Tensor, form: Form) -> Result<Tensor> {
        match form {
            Form::Fused(_) => fused::rms_norm(x, self),
            Form::Gpu(_) | Form::Plain => plain::rms_norm(x, self),
        }
    }
}
