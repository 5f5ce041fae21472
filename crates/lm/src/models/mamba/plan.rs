//! Selects the implementation of a mixer's steps: [`super::fused`], [`super::plain`] or [`super::gpu`].

use super::steps::{Columns, Conv, RmsNorm, Scan, ScanColumns};
use super::{fused, gpu, plain};
use crate::models::batch::PackedBatch;
use crate::models::cuda::Scans;
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
    Gpu(gpu::Kernels<'a>),
}

impl<'a> MixerPlan<'a> {
    /// For a batch whose first hidden states are `x`.
    pub fn new(form: Form, batch: &'a PackedBatch, scans: Option<&'a Scans>, x: &Tensor) -> Result<Self> {
        Ok(match (form, scans) {
            (Form::Fused(multiply), _) => Self::Fused { batch, positions: batch.positions(), multiply },
            (Form::Gpu(_), Some(scans)) => Self::Gpu(gpu::Kernels::new(scans, batch, x.device())?),
            (Form::Gpu(_), None) => bail!("there are no kernels for this scan on this device"),
            (Form::Plain, _) => Self::Plain(plain::Padding::new(batch, x.device())?),
        })
    }

    pub fn form(&self) -> Form {
        match self {
            Self::Fused { multiply, .. } => Form::Fused(*multiply),
            Self::Gpu(_) => Form::Gpu(DType::F32),
            Self::Plain(_) => Form::Plain,
        }
    }

    pub fn conv(&self, x: Columns, conv: &Conv) -> Result<Tensor> {
        match self {
            Self::Fused { positions, .. } => fused::conv(x, conv, positions),
            Self::Plain(padding) => plain::conv(x, conv, padding),
            Self::Gpu(kernels) => kernels.conv(x, conv),
        }
    }

    pub fn scan(&self, columns: &ScanColumns, scan: &Scan) -> Result<Tensor> {
        match self {
            Self::Fused { batch, .. } => fused::scan(columns, scan, &batch.sequences),
            Self::Plain(padding) => plain::scan(columns, scan, padding),
            Self::Gpu(kernels) => kernels.scan(columns, scan),
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
