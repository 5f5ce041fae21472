//! The parameters and inputs of the steps of a mixer.

use crate::models::error::ModelError;
use crate::models::ops::TensorSource;
use candle_core::Tensor;
use kernels::scan::ScanShape;

/// RMS normalisation in groups of columns, with weight `[width]`.
pub struct RmsNorm {
    pub weight: Tensor,
    pub groups: usize,
    pub eps: f64,
}

/// The convolution: taps `[kernel, channels]`, the last one for the token itself, and bias `[channels]`.
pub struct Conv {
    pub taps: Tensor,
    pub bias: Tensor,
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

impl RmsNorm {
    pub fn new(
        name: &str,
        width: usize,
        groups: usize,
        eps: f64,
        source: TensorSource<'_>,
    ) -> Result<Self, ModelError> {
        Ok(Self { weight: source(&format!("{name}.weight"), &[width])?, groups, eps })
    }
}
