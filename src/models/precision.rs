//! The type that a model computes in.

use super::ModelError;
use super::checkpoint::Checkpoint;
use super::kernels::packed::Products;
use super::ops::{Form, Multiply};
use crate::config::Dtype as Wanted;
use candle_core::DType;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// What the settings ask for; `auto` is f32 on the CPU, where it costs least, and on a GPU what most weights are stored in.
///
/// # Errors
/// [`ModelError::Config`] where a half type is asked for and the family has only f32.
pub fn choose(wanted: Wanted, on_cpu: bool, checkpoint: &Checkpoint) -> Result<DType, ModelError> {
    let only_f32 = !checkpoint.has_half_precision();
    let chosen = match wanted {
        Wanted::F32 => DType::F32,
        Wanted::F16 => DType::F16,
        Wanted::Bf16 => DType::BF16,
        Wanted::Auto if on_cpu || only_f32 => DType::F32,
        Wanted::Auto => match checkpoint.weights.main_dtype(|name| !checkpoint.described.network.ignores(name)) {
            Some(safetensors::Dtype::F16) => DType::F16,
            Some(safetensors::Dtype::BF16) => DType::BF16,
            _ => DType::F32,
        },
    };
    if only_f32 && chosen != DType::F32 {
        let reason = format!("models of this family run in f32 only; {} is asked for", name(chosen));
        return Err(ModelError::Config { key: "model_type".into(), reason });
    }
    Ok(chosen)
}

/// How far numbers in a half type may be from those in f32: twice what was seen, on the CPU, in the checkpoints of every
/// family that the tests have, which they hold to it; and, for AUROC, in a trained model with known members. A larger model
/// may stray further.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct Rounding {
    /// Of the log-probability of one token.
    #[schema(examples(0.36))]
    pub log_probability: f64,
    /// Of the mean log-probability over some hundred tokens.
    #[schema(examples(0.01))]
    pub mean_log_probability: f64,
    /// Of an AUROC.
    #[schema(examples(0.003))]
    pub auroc: f64,
}

/// What rounding does to the numbers of a form in a type; none in f32.
///
/// PyTorch's own forward of those checkpoints strays from f32 by up to 0.26 (bf16) and 0.045 (f16) in a log-probability, and by
/// up to 0.009 in the mean of a model; the plain form rounds elsewhere, and twice that is allowed. The kernels round at
/// products alone, and stray by up to 0.18 and 0.005: again twice that.
pub fn rounding(form: Form, dtype: DType) -> Option<Rounding> {
    let (log_probability, mean_log_probability) = match (form, dtype) {
        (Form::Fused(Multiply::Packed(Products::Bf16, _)), _) => (0.36, 0.01),
        (Form::Plain, DType::BF16) => (0.5, 0.018),
        (Form::Plain, DType::F16) => (0.09, 0.018),
        _ => return None,
    };
    Some(Rounding { log_probability, mean_log_probability, auroc: 0.003 })
}

/// What its numbers depend on: the type, and how products are taken where there are several ways. Packed products have the
/// same bits whatever instructions they run on.
pub fn path(form: Form, dtype: DType) -> &'static str {
    match form {
        Form::Fused(Multiply::Packed(Products::F32, _)) => "f32-packed",
        Form::Fused(Multiply::Packed(Products::Bf16, _)) => "bf16-packed",
        Form::Fused(Multiply::Gemm) | Form::Plain => name(dtype),
    }
}

/// What settings and answers call it.
pub fn name(dtype: DType) -> &'static str {
    match dtype {
        DType::F16 => "f16",
        DType::BF16 => "bf16",
        _ => "f32",
    }
}
