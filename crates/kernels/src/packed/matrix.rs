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

    /// The elements of a row from its bytes.
    pub(super) fn values(self, row: &[u8]) -> impl Iterator<Item = f32> {
        row.chunks_exact(self.bytes()).map(move |bytes| match (self, bytes) {
            (Self::F16, &[low, high]) => f16::from_ne_bytes([low, high]).to_f32(),
            (Self::Bf16, &[low, high]) => bf16::from_ne_bytes([low, high]).to_f32(),
            _ => f32::from_ne_bytes(*bytes.first_chunk().unwrap_or(&[0; 4])),
        })
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

    /// The weights as bytes.
    pub(super) fn bytes(&self) -> &[u8] {
        fn bytes<T>(values: &[T]) -> &[u8] {
            // SAFETY: these types are numbers without padding, so that each of their bytes is initialised.
            unsafe { std::slice::from_raw_parts(values.as_ptr().cast(), size_of_val(values)) }
        }
        match self {
            Self::F32(values) => bytes(values),
            Self::F16(values) => bytes(values),
            Self::Bf16(values) => bytes(values),
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
