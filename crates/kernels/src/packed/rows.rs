//! Activations in the form that the kernels read.

use super::amx::{Strips, by_machine};
use super::isa::Products;
use super::matrix::{Element, PackedLine, ROWS};
use super::pack::{Packed, PackedLayout};
use crate::simd::vectorised;
use rayon::prelude::*;
use std::ops::Range;

/// Rows of activations, prepared for multiplication with the weights they were created for.
pub struct Rows<'a> {
    pub(super) values: Values<'a>,
    k: usize,
    count: usize,
}

pub(super) enum Values<'a> {
    /// `[rows, k]`
    F32(&'a [f32]),
    /// `[rows, ceil(k / 2)]`: two bf16 in a word, the first in the lower half.
    Pairs(Vec<u32>),
    /// Tiles of bf16 terms.
    Strips(Strips),
}

impl<'a> Rows<'a> {
    /// See [`Packed::rows`].
    pub(super) fn new(weights: &Packed, x: &'a [f32]) -> Self {
        let k = weights.k.max(1);
        assert!(x.len().is_multiple_of(k), "packed: {} values are not whole rows of {k}", x.len());
        let values = match (weights.layout, weights.products) {
            (PackedLayout::Tiles(terms), _) => {
                // SAFETY: packing refuses instructions that are not available.
                Values::Strips(by_machine!(weights.isa, M => unsafe { Strips::new::<M>(x, weights.k, terms) }))
            }
            (PackedLayout::Vectors, Products::Bf16) => {
                let mut pairs = vec![0; x.len() / k * k.div_ceil(2)];
                let rows = pairs.par_chunks_mut(k.div_ceil(2)).zip(x.par_chunks(k));
                rows.with_min_len(ROWS).for_each(|(pairs, row)| vectorised!(round_pairs(pairs, row)));
                Values::Pairs(pairs)
            }
            (PackedLayout::Vectors, _) => Values::F32(x),
        };
        Self { values, k: weights.k, count: x.len() / k }
    }

    pub fn count(&self) -> usize {
        self.count
    }

    /// Returns true if these rows have the form that the weights require.
    pub(super) fn fits(&self, weights: &Packed) -> bool {
        let fits = match self.values {
            Values::F32(_) => weights.layout == PackedLayout::Vectors && weights.products == Products::F32,
            Values::Pairs(_) => weights.layout == PackedLayout::Vectors && weights.products == Products::Bf16,
            Values::Strips(ref strips) => weights.layout == PackedLayout::Tiles(strips.terms),
        };
        self.k == weights.k && fits
    }
}

/// The values of a row, rounded to bf16, two in a word; the last one of an odd number is paired with zero.
#[inline(always)]
fn round_pairs(pairs: &mut [u32], row: &[f32]) {
    let (whole, rest) = row.as_chunks::<2>();
    for (pair, &[a, b]) in pairs.iter_mut().zip(whole) {
        *pair = rounded(a) | rounded(b) << 16;
    }
    if let (Some(last), Some(&a)) = (pairs.last_mut(), rest.first()) {
        *last = rounded(a);
    }
}

/// The bits of the nearest bf16, ties to even, like `half` but in a form that the compiler vectorises.
#[inline(always)]
pub(super) fn rounded(x: f32) -> u32 {
    let bits = x.to_bits();
    if x.is_nan() { bits >> 16 | 0x40 } else { bits.wrapping_add(0x7fff + (bits >> 16 & 1)) >> 16 }
}

/// At most [`ROWS`](super::matrix::ROWS) rows and one panel, for a chain of k; the first `columns` results are computed.
pub(super) struct Tile<'a> {
    pub x: &'a Rows<'a>,
    pub rows: Range<usize>,
    pub k: usize,
    /// The steps of k, from an even one on.
    pub steps: Range<usize>,
    /// The weights of the panel for these steps, as [`panels`](super::panels) has them.
    pub lines: &'a [PackedLine],
    pub element: Element,
    pub columns: usize,
}

/// Adjacent columns of R rows.
#[cfg(target_arch = "x86_64")]
pub(super) struct Strip<'a, const R: usize, T> {
    /// Starts with the first element of the first row.
    values: &'a [T],
    stride: usize,
    pub steps: usize,
}

#[cfg(target_arch = "x86_64")]
impl<'a, const R: usize, T: Copy> Strip<'a, R, T> {
    pub fn new(values: &'a [T], row: usize, stride: usize, columns: Range<usize>) -> Self {
        let first = row * stride + columns.start;
        let values = &values[first..first + (R - 1) * stride + columns.len()];
        Self { values, stride, steps: columns.len() }
    }

    /// # Safety
    /// r is less than R, and q less than the number of steps.
    #[inline(always)]
    pub unsafe fn get(&self, r: usize, q: usize) -> T {
        // SAFETY: guaranteed by the caller and by `new`.
        unsafe { *self.values.get_unchecked(r * self.stride + q) }
    }
}
