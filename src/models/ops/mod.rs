//! The operations of the decoder, each in two forms with the same result.
//!
//! *Fused* runs the kernels of this crate on the CPU, for inference. *Plain* is built from candle's differentiable
//! operations and runs on every device: for training, and for inference where no kernel exists. candle's own fused
//! operations drop gradients without a word, so the plain form uses none of them. In f16 and bf16 the plain form takes
//! norms, rotations, softmax and activations in f32.

mod attention;
mod linear;
mod mlp;
mod norm;
mod weight;

pub use attention::{QueryKeyNorms, fused_attention};
pub use linear::Linear;
pub use mlp::{activate, gate};
pub use norm::Norm;
pub use weight::Weight;

use crate::models::kernels::packed::{Isa, Products};
use crate::models::kernels::simd::Level;
use candle_core::{CpuStorage, DType, Device, Layout, Result, Storage, Tensor, bail};

/// Which form an operation takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// Kernels on the CPU, f32 but for what products may round, no gradients.
    Fused(Multiply),
    /// candle's differentiable operations.
    Plain,
}

/// What the fused form multiplies by weights with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Multiply {
    /// f32 by the `gemm` crate, which runs everywhere.
    Gemm,
    /// The kernels for packed weights, by instructions that the machine has.
    Packed(Products, Isa),
}

impl Form {
    /// The fastest form for inference in a type on a device, with the instructions in use.
    pub fn inference(device: &Device, dtype: DType) -> Self {
        let level = Level::in_use();
        Self::fastest(device.is_cpu(), dtype, |products| Isa::best(products, level))
    }

    /// As [`Form::inference`], where packed products have these instructions or none.
    fn fastest(on_cpu: bool, dtype: DType, isa: impl Fn(Products) -> Option<Isa>) -> Self {
        let packed = |products| isa(products).map(|isa| Self::Fused(Multiply::Packed(products, isa)));
        match dtype {
            DType::F32 if on_cpu => packed(Products::F32).unwrap_or(Self::Fused(Multiply::Gemm)),
            DType::BF16 if on_cpu => packed(Products::Bf16).unwrap_or(Self::Plain),
            _ => Self::Plain,
        }
    }

    /// Whether the kernels of the CPU run.
    pub fn is_fused(self) -> bool {
        matches!(self, Self::Fused(_))
    }
}

/// The tensor in a type wide enough for sums: f32 for the half types, its own otherwise.
pub fn wide(x: &Tensor) -> Result<Tensor> {
    match x.dtype() {
        DType::F16 | DType::BF16 => x.to_dtype(DType::F32),
        _ => Ok(x.clone()),
    }
}

/// `cap tanh(x / cap)` in differentiable operations.
pub fn soft_cap(x: &Tensor, cap: f64) -> Result<Tensor> {
    (x / cap)?.tanh()? * cap
}

/// Calls `read` with the contiguous f32 elements of a CPU tensor.
pub fn with_slice<T>(tensor: &Tensor, read: impl FnOnce(&[f32]) -> Result<T>) -> Result<T> {
    let (storage, layout) = tensor.storage_and_layout();
    match &*storage {
        Storage::Cpu(storage) => read(elements(storage, layout)?),
        _ => bail!("a kernel of the CPU was given a tensor of another device"),
    }
}

/// The contiguous f32 elements of a storage.
pub(super) fn elements<'a>(storage: &'a CpuStorage, layout: &Layout) -> Result<&'a [f32]> {
    match (storage, layout.contiguous_offsets()) {
        (CpuStorage::F32(values), Some((start, end))) => Ok(&values[start..end]),
        _ => bail!("a kernel of the CPU wants contiguous f32, not {:?} {layout:?}", dtype_of(storage)),
    }
}

/// The contiguous f32 elements of a storage, for writing.
pub(super) fn elements_mut<'a>(storage: &'a mut CpuStorage, layout: &Layout) -> Result<&'a mut [f32]> {
    let dtype = dtype_of(storage);
    match (storage, layout.contiguous_offsets()) {
        (CpuStorage::F32(values), Some((start, end))) => Ok(&mut values[start..end]),
        _ => bail!("a kernel of the CPU wants contiguous f32, not {dtype:?} {layout:?}"),
    }
}

fn dtype_of(storage: &CpuStorage) -> DType {
    candle_core::backend::BackendStorage::dtype(storage)
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
        // AVX-512 of the first kinds, without AVX512-BF16.
        assert_eq!(fastest(true, DType::F32, &without_bf16), packed(Products::F32));
        assert_eq!(fastest(true, DType::BF16, &without_bf16), Form::Plain);
        assert_eq!(fastest(true, DType::F32, &[]), Form::Fused(Multiply::Gemm));
        assert_eq!(fastest(true, DType::BF16, &[]), Form::Plain);
        assert_eq!(fastest(true, DType::F16, &all), Form::Plain);
        assert_eq!(fastest(false, DType::F32, &all), Form::Plain);
    }
}
