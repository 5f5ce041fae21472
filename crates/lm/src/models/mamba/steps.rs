//! The parameters and inputs of the steps of a mixer.

use crate::models::error::ModelError;
use crate::models::ops::TensorSource;
use candle_core::Tensor;

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

impl RmsNorm {
    pub fn new(
        name: &str,
        width: usize,
        groups: usize,
        eps: f64,
        source: TensorSource<'_>,
    ) -> Result<Self, ModelError> {
        Ok(Self { weight: source.tensor(&format!("{name}.weight"), &[width])?, groups, eps })
    }
}
