//! The forms of operations.

use candle_core::{DType, Device};
use kernels::packed::{Isa, Products};
use kernels::simd::Level;

/// The form in which an operation runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// CPU kernels in f32, except for products that may round, without gradients.
    Fused(Multiply),
    /// GPU kernels, without gradients. Inputs and results of products have this type; the residual stream is in f32
    /// until a norm is applied to it, so that the sum over layers does not leave the range of f16.
    Gpu(DType),
    /// candle's differentiable operations.
    Plain,
}

/// Multiplication by weights in the fused form.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Multiply {
    /// In f32 with the `gemm` crate, which runs everywhere.
    Gemm,
    /// With the kernels for packed weights, using instructions that the machine has.
    Packed(Products, Isa),
}

impl Form {
    /// The fastest form for inference in a type on a device, with the instructions in use.
    pub fn inference(device: &Device, dtype: DType) -> Self {
        let level = Level::in_use();
        Self::fastest(device.is_cpu(), dtype, |products| Isa::best(products, level))
    }

    /// Like [`Form::inference`], with the given instructions for packed products, if any.
    fn fastest(on_cpu: bool, dtype: DType, isa: impl Fn(Products) -> Option<Isa>) -> Self {
        let packed = |products| isa(products).map(|isa| Self::Fused(Multiply::Packed(products, isa)));
        match dtype {
            DType::F32 if on_cpu => packed(Products::F32).unwrap_or(Self::Fused(Multiply::Gemm)),
            DType::BF16 if on_cpu => packed(Products::Bf16).unwrap_or(Self::Plain),
            _ => Self::Plain,
        }
    }

    /// Returns true if the CPU kernels are used.
    /// The instructions that multiply weights in the blocks that they are stored in, if this form keeps them there: products are
    /// then in f32, as they would be of the same weights in f32.
    pub fn isa_for_blocks(self) -> Option<Isa> {
        match self {
            Self::Fused(Multiply::Packed(Products::F32, isa)) if isa.runs_blocks() => Some(isa),
            Self::Fused(Multiply::Packed(Products::F32, _) | Multiply::Gemm) => Isa::best_for_blocks(Level::in_use()),
            Self::Fused(Multiply::Packed(Products::Bf16, _)) | Self::Gpu(_) | Self::Plain => None,
        }
    }

    pub fn is_fused(self) -> bool {
        matches!(self, Self::Fused(_))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn products_are_packed_where_the_machine_has_instructions_for_them() {
        let fastest = |on_cpu, dtype, has: &[Products]| {
            Form::fastest(on_cpu, dtype, |products| has.contains(&products).then_some(Isa::Avx512))
        };
        let packed = |products| Form::Fused(Multiply::Packed(products, Isa::Avx512));
        let (all, without_bf16) = ([Products::F32, Products::Bf16], [Products::F32]);
        assert_eq!(fastest(true, DType::F32, &all), packed(Products::F32));
        assert_eq!(fastest(true, DType::BF16, &all), packed(Products::Bf16));
        // AVX-512 without AVX512-BF16.
        assert_eq!(fastest(true, DType::F32, &without_bf16), packed(Products::F32));
        assert_eq!(fastest(true, DType::BF16, &without_bf16), Form::Plain);
        assert_eq!(fastest(true, DType::F32, &[]), Form::Fused(Multiply::Gemm));
        assert_eq!(fastest(true, DType::BF16, &[]), Form::Plain);
        assert_eq!(fastest(true, DType::F16, &all), Form::Plain);
        assert_eq!(fastest(false, DType::F32, &all), Form::Plain);
    }
}
