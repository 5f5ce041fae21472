//! The type that a model computes in.

use super::checkpoint::Checkpoint;
use super::error::ModelError;
use super::gguf::TensorType;
use super::ops::{Form, Multiply};
use candle_core::DType;
use kernels::packed::Products;
use serde::{Deserialize, Serialize};
use strum::{EnumString, VariantNames};
use utoipa::ToSchema;

/// Type that models compute in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, EnumString, VariantNames)]
#[serde(rename_all = "lowercase")]
#[strum(serialize_all = "lowercase")]
pub enum Dtype {
    /// On the CPU single precision, on a GPU what the weights are stored in.
    Auto,
    /// Single precision.
    F32,
    /// IEEE half precision.
    F16,
    /// bfloat16.
    Bf16,
}

/// The type that the settings request; `auto` is f32 on the CPU, where it is cheapest, and the type of most weights on
/// a GPU.
pub fn choose(wanted: Dtype, on_cpu: bool, checkpoint: &Checkpoint) -> Result<DType, ModelError> {
    let only_f32 = !checkpoint.has_half_precision();
    let chosen = match wanted {
        Dtype::F32 => DType::F32,
        Dtype::F16 => DType::F16,
        Dtype::Bf16 => DType::BF16,
        Dtype::Auto if on_cpu || only_f32 => DType::F32,
        Dtype::Auto => match checkpoint.weights.main_kind(|name| !checkpoint.description.network.ignores(name)) {
            Some(TensorType::Plain(safetensors::Dtype::F16)) => DType::F16,
            Some(TensorType::Plain(safetensors::Dtype::BF16)) => DType::BF16,
            _ => DType::F32,
        },
    };
    if only_f32 && chosen != DType::F32 {
        let reason = format!("models of this family run in f32 only, but {} is requested", name(chosen));
        return Err(ModelError::Config { key: "model_type".into(), reason });
    }
    Ok(chosen)
}

/// The numeric path that results depend on: the type, and how products are computed if there are several ways.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema, strum::IntoStaticStr)]
#[serde(rename_all = "kebab-case")]
#[strum(serialize_all = "kebab-case")]
pub enum NumericPath {
    /// Products in f32.
    F32,
    /// Products in f32, in the vectors of AVX-512.
    F32Packed,
    /// Products in f32, of three bf16 terms of an input and as many of a weight as its stored type needs, in the tiles of AMX.
    F32Tiles,
    /// Everything in f16, by candle's operations.
    F16,
    /// Everything in bf16, by candle's operations.
    Bf16,
    /// Products in bf16, in the vectors of AVX512-BF16, and the rest in f32.
    Bf16Packed,
    /// Products in bf16, in the tiles of AMX, and the rest in f32.
    Bf16Tiles,
    /// In f32, by the kernels of a GPU.
    F32Gpu,
    /// Products and what is between them in f16, by the kernels of a GPU; sums over layers and logits in f32.
    F16Gpu,
    /// The same in bf16.
    Bf16Gpu,
}

impl NumericPath {
    /// The name in caches and responses.
    pub fn name(self) -> &'static str {
        self.into()
    }
}

/// How far numbers may differ from those in f32 where a half type rounds them: twice the observed difference, on the CPU, in
/// the test checkpoints of every family, which the tests enforce; and, for AUROC, in a trained model with known members.
/// Larger models may differ more.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct Rounding {
    /// What rounds; absent in reports of earlier versions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(examples("bf16-packed"))]
    pub path: Option<NumericPath>,
    /// For the log-probability of one token.
    #[schema(examples(0.36))]
    pub log_probability: f64,
    /// For the mean log-probability over several hundred tokens.
    #[schema(examples(0.01))]
    pub mean_log_probability: f64,
    /// For an AUROC.
    #[schema(examples(0.003))]
    pub auroc: f64,
}

/// The effect of rounding for a form and a type; `None` where nothing is rounded but sums in f32.
///
/// PyTorch's own forward pass of those checkpoints differs from f32 by up to 0.26 (bf16) and 0.045 (f16) in a
/// log-probability, and by up to 0.009 in the mean of a model; the plain form rounds elsewhere, and twice that is
/// allowed; so it is of the kernels of a GPU, which round less. The kernels of the CPU round only at products, and differ by up
/// to 0.18 and 0.005: again, twice that is allowed.
pub fn rounding(form: Form, dtype: DType) -> Option<Rounding> {
    path(form, dtype).rounding()
}

impl NumericPath {
    /// The effect of rounding on this path; `None` where nothing is rounded but sums in f32.
    pub fn rounding(self) -> Option<Rounding> {
        let (log_probability, mean_log_probability, auroc) = match self {
            Self::F32 | Self::F32Packed | Self::F32Tiles | Self::F32Gpu => return None,
            Self::Bf16Packed | Self::Bf16Tiles => (0.36, 0.01, 0.003),
            Self::Bf16 | Self::Bf16Gpu => (0.5, 0.018, 0.003),
            Self::F16 | Self::F16Gpu => (0.09, 0.018, 0.003),
        };
        Some(Rounding { path: Some(self), log_probability, mean_log_probability, auroc })
    }
}

/// The numeric path of a form in a type. Packed products have the same bits on all instruction sets without tiles, and on
/// all with tiles.
pub fn path(form: Form, dtype: DType) -> NumericPath {
    match (form, dtype) {
        (Form::Fused(Multiply::Packed(Products::F32, isa)), _) if isa.is_tiled() => NumericPath::F32Tiles,
        (Form::Fused(Multiply::Packed(Products::F32, _)), _) => NumericPath::F32Packed,
        (Form::Fused(Multiply::Packed(Products::Bf16, isa)), _) if isa.is_tiled() => NumericPath::Bf16Tiles,
        (Form::Fused(Multiply::Packed(Products::Bf16, _)), _) => NumericPath::Bf16Packed,
        (Form::Gpu(DType::F16), _) => NumericPath::F16Gpu,
        (Form::Gpu(DType::BF16), _) => NumericPath::Bf16Gpu,
        (Form::Gpu(_), _) => NumericPath::F32Gpu,
        (_, DType::F16) => NumericPath::F16,
        (_, DType::BF16) => NumericPath::Bf16,
        _ => NumericPath::F32,
    }
}

/// The name in settings and responses.
pub fn name(dtype: DType) -> &'static str {
    match dtype {
        DType::F16 => "f16",
        DType::BF16 => "bf16",
        _ => "f32",
    }
}
