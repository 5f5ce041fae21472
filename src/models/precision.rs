//! The type that a model computes in.

use super::ModelError;
use super::checkpoint::Checkpoint;
use super::kernels::packed::Products;
use super::ops::{Form, Multiply};
use crate::config::Dtype as Wanted;
use candle_core::DType;

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

/// What its numbers depend on: the type, and how products are taken where there are several ways.
pub fn path(form: Form, dtype: DType) -> &'static str {
    match form {
        Form::Fused(Multiply::Packed(Products::F32)) => "f32-packed",
        Form::Fused(Multiply::Packed(Products::Bf16)) => "bf16-packed",
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
