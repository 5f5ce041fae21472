//! Products with weights that are packed once, when they are loaded.
//!
//! `gemm` packs both matrices at every call, which is most of the work for a text of a few dozen tokens. Here the
//! weights are laid out in the order in which the kernel reads them, in the type they were saved in: f16 and bf16 are
//! converted to f32 in registers, exactly, so that they take half the memory and give the same bits as f32 weights.
//!
//! There are two kinds of [`Products`]: f32, and bf16 with the instruction of AVX512-BF16, at twice the rate. f32 from
//! bf16 products (each activation split into two terms) is *not* one of them: it takes two instructions at twice the
//! rate, gains nothing if weights are packed, and is less exact. No library offers this: oneDNN must be installed
//! separately, and the crates pack at every call and do not support AVX512-BF16.
//!
//! Every result is computed as chains of sums over `CHAIN` steps of k, from first to last, independently of the rows,
//! columns and threads that are computed with it, with the same bits in `avx512` and `scalar`. In f32 these are fused
//! multiply-adds.

#[cfg(target_arch = "x86_64")]
mod avx512;
mod blocking;
mod isa;
mod multiply;
mod pack;
mod rows;
mod scalar;
mod tile;

#[cfg(test)]
mod tests;

pub use blocking::COLUMNS;
pub use isa::{Isa, Products};
pub use pack::{Matrix, Packed, packed_bytes};
pub use rows::Rows;
