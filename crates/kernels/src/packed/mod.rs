//! Products with weights that are packed once, when they are loaded.
//!
//! `gemm` packs both matrices at every call, which is most of the work for a text of a few dozen tokens. Here the
//! weights are laid out in the order in which the kernel reads them, in the type they were saved in: f16 and bf16 are
//! converted to f32 in registers, exactly, so that they take half the memory and give the same bits as f32 weights.
//!
//! Weights in the block formats of GGML stay in blocks: a thread converts a part of a panel to f32, multiplies all of its rows
//! by it and goes on to the next, so that the products are those of f32 weights, bit for bit.
//!
//! There are three kinds of [`Products`]: f32; bf16, with the instruction of AVX512-BF16 at twice the rate, or of AMX at
//! twenty times the rate; and, with AMX only, f32 from bf16 terms (`amx`), which at twice the rate would gain nothing. No
//! library offers this: oneDNN must be installed separately, and the crates pack at every call and support neither
//! AVX512-BF16 nor AMX.
//!
//! In vectors, every result is computed as chains of sums over `CHAIN` steps of k, from first to last, independently of the
//! rows, columns and threads that are computed with it, with the same bits in `avx512`, `avx2` and `scalar`. In f32 these are fused
//! multiply-adds.

mod amx;
#[cfg(target_arch = "x86_64")]
mod avx2;
#[cfg(target_arch = "x86_64")]
mod avx512;
mod blocks;
mod flushed;
mod isa;
mod matrix;
mod multiply;
mod pack;
mod panels;
mod rows;
mod scalar;
mod target;
mod terms;
mod tile_panels;

#[cfg(test)]
mod tests;

pub use blocks::{BlockError, BlockFormat};
pub use isa::{Isa, Products};
pub use matrix::{Element, Matrix};
pub use multiply::scratch_bytes;
pub use pack::{Packed, PanelMemory, packed_bytes, read_bytes};
pub use panels::COLUMNS as MAX_COLUMNS;
pub use rows::Rows;
