//! Weights before they are packed, and the lines that they are packed into.

use half::{bf16, f16};
use std::ops::Range;

/// Lanes of a vector of 32-bit words.
pub(super) const LANES: usize = 16;

/// Weights `[n, k]`, in row-major order.
#[derive(Clone, Copy)]
pub enum Matrix<'a> {
    F32(&'a [f32]),
    F16(&'a [f16]),
    Bf16(&'a [bf16]),
}

/// The element type of packed weights.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Element {
    F32,
    F16,
    Bf16,
}

/// A vector of words, aligned for loads of vectors and tiles.
#[derive(Clone, Copy)]
#[repr(C, align(64))]
pub(super) struct PackedLine(pub [u32; LANES]);

impl Element {
    /// Bytes of an element that is not packed.
    pub fn bytes(self) -> usize {
        match self {
            Self::F32 => 4,
            Self::F16 | Self::Bf16 => 2,
        }
    }
}

impl Matrix<'_> {
    /// The type of the weights.
    pub fn element(&self) -> Element {
        match self {
            Self::F32(_) => Element::F32,
            Self::F16(_) => Element::F16,
            Self::Bf16(_) => Element::Bf16,
        }
    }

    pub(super) fn len(&self) -> usize {
        match self {
            Self::F32(values) => values.len(),
            Self::F16(values) => values.len(),
            Self::Bf16(values) => values.len(),
        }
    }

    pub(super) fn bits(&self, index: usize) -> u32 {
        match self {
            Self::F32(values) => values[index].to_bits(),
            Self::F16(values) => values[index].to_bits().into(),
            Self::Bf16(values) => values[index].to_bits().into(),
        }
    }

    pub(super) fn value(&self, index: usize) -> f32 {
        match self {
            Self::F32(values) => values[index],
            Self::F16(values) => values[index].to_f32(),
            Self::Bf16(values) => values[index].to_f32(),
        }
    }
}

/// Maximum number of rows of a tile. Rows of activations are often a power of two apart; 8 of them still share the L1
/// cache.
pub(super) const ROWS: usize = 8;
/// Steps of k that are summed before they are added to the result: shorter chains round less. An even
/// number, and a multiple of the weights of every block.
pub(super) const CHAIN: usize = 512;

/// Splits `0..count` into ranges of at most `step`.
pub(super) fn blocks(count: usize, step: usize) -> impl Iterator<Item = Range<usize>> {
    (0..count).step_by(step).map(move |start| start..(start + step).min(count))
}
