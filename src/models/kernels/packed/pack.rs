//! The layout of packed weights: panels of columns, two steps of k at a time.

use super::blocking::{COLUMNS, blocks};
use super::isa::{Isa, Products};
use half::{bf16, f16};
use rayon::prelude::*;
use std::ops::Range;

/// Lanes of a vector of 32-bit words.
pub(super) const LANES: usize = 16;
/// Vectors per panel.
pub(super) const VECTORS: usize = COLUMNS / LANES;

/// Weights `[n, k]`, in row-major order.
#[derive(Clone, Copy)]
pub enum Matrix<'a> {
    F32(&'a [f32]),
    F16(&'a [f16]),
    Bf16(&'a [bf16]),
}

/// The element type of packed weights.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Element {
    F32,
    F16,
    Bf16,
}

/// A vector of words, aligned for vector loads.
#[derive(Clone, Copy)]
#[repr(C, align(64))]
pub(super) struct PackedLine(pub [u32; LANES]);

/// Weights `[n, k]`, divided into panels of [`COLUMNS`] of the n; the last panel is padded with zeros, as is k to an
/// even number.
///
/// For every two steps of k, a panel has either, in f32, the words of the first step and those of the second, or words
/// that hold both steps in two halves, the first in the lower one.
pub struct Packed {
    lines: Vec<PackedLine>,
    pub(super) element: Element,
    pub(super) products: Products,
    pub(super) isa: Isa,
    pub(super) n: usize,
    pub(super) k: usize,
}

impl Matrix<'_> {
    fn element(&self) -> Element {
        match self {
            Self::F32(_) => Element::F32,
            Self::F16(_) => Element::F16,
            Self::Bf16(_) => Element::Bf16,
        }
    }

    fn len(&self) -> usize {
        match self {
            Self::F32(values) => values.len(),
            Self::F16(values) => values.len(),
            Self::Bf16(values) => values.len(),
        }
    }

    fn bits(&self, index: usize) -> u32 {
        match self {
            Self::F32(values) => values[index].to_bits(),
            Self::F16(values) => values[index].to_bits().into(),
            Self::Bf16(values) => values[index].to_bits().into(),
        }
    }
}

impl Element {
    /// Lines of a panel for two steps of k.
    pub(super) fn lines_of_pair(self) -> usize {
        if self == Self::F32 { 2 * VECTORS } else { VECTORS }
    }

    /// The weight of a column of a panel at step q of k.
    pub(super) fn value(self, panel: &[PackedLine], column: usize, q: usize) -> f32 {
        let (pair, vector, lane) = (q / 2 * self.lines_of_pair(), column / LANES, column % LANES);
        let half = || (panel[pair + vector].0[lane] >> (16 * (q % 2))) as u16;
        match self {
            Self::F32 => f32::from_bits(panel[pair + q % 2 * VECTORS + vector].0[lane]),
            Self::F16 => f16::from_bits(half()).to_f32(),
            Self::Bf16 => bf16::from_bits(half()).to_f32(),
        }
    }
}

/// Bytes of weights `[n, k]` once packed, for a given element size.
pub fn packed_bytes([n, k]: [usize; 2], element_bytes: usize) -> usize {
    // The size may be a mere claim of a file.
    let filled = |n: usize, step| n.checked_next_multiple_of(step).unwrap_or(usize::MAX);
    filled(n, COLUMNS).saturating_mul(filled(k, 2)).saturating_mul(element_bytes)
}

impl Packed {
    /// Packs weights `[n, k]`.
    ///
    /// If the weights do not have that shape, bf16 products are requested for other weights than bf16, or the machine
    /// lacks the instructions: errors of the caller, never of a request.
    pub fn new(weights: Matrix, [n, k]: [usize; 2], products: Products, isa: Isa) -> Self {
        let element = weights.element();
        assert!(weights.len() == n * k, "packed: {n} x {k} weights expected, got {}", weights.len());
        assert!(products == Products::F32 || element == Element::Bf16, "packed: bf16 products need bf16 weights");
        assert!(isa.runs(products), "packed: this machine does not support {isa:?}");
        let per_pair = element.lines_of_pair();
        let mut lines = vec![PackedLine([0; LANES]); n.div_ceil(COLUMNS) * k.div_ceil(2) * per_pair];
        let panels = lines.par_chunks_mut((k.div_ceil(2) * per_pair).max(1)).enumerate();
        panels.for_each(|(panel, lines)| {
            let first = panel * COLUMNS;
            let columns = first..(first + COLUMNS).min(n);
            // A few steps of all columns at a time, so that both the source and the destination stay in the L1 cache.
            for steps in blocks(k, LANES) {
                for column in columns.clone() {
                    let (vector, lane) = ((column - first) / LANES, (column - first) % LANES);
                    for q in steps.clone() {
                        let (bits, pair) = (weights.bits(column * k + q), q / 2 * per_pair);
                        match element {
                            Element::F32 => lines[pair + q % 2 * VECTORS + vector].0[lane] = bits,
                            Element::F16 | Element::Bf16 => lines[pair + vector].0[lane] |= bits << (16 * (q % 2)),
                        }
                    }
                }
            }
        });
        Self { lines, element, products, isa, n, k }
    }

    /// Outputs and inputs, `[n, k]`.
    pub fn shape(&self) -> [usize; 2] {
        [self.n, self.k]
    }

    /// Copies the weights of one output as f32 into `out` `[k]`.
    ///
    /// # Panics
    /// If there is no such output, or `out` has another length: errors of the caller, never of a request.
    pub fn copy_row(&self, out: &mut [f32], row: usize) {
        assert!(row < self.n && out.len() == self.k, "packed: there is no row {row} of length {}", out.len());
        let (panel, column) = (self.panel(row / COLUMNS), row % COLUMNS);
        out.iter_mut().enumerate().for_each(|(q, out)| *out = self.element.value(panel, column, q));
    }

    /// The number of panels.
    pub fn panels(&self) -> usize {
        self.n.div_ceil(COLUMNS)
    }

    /// The columns of adjacent panels.
    pub fn columns(&self, panels: Range<usize>) -> Range<usize> {
        (panels.start * COLUMNS).min(self.n)..(panels.end * COLUMNS).min(self.n)
    }

    /// The words of a panel.
    pub(super) fn panel(&self, panel: usize) -> &[PackedLine] {
        let length = self.k.div_ceil(2) * self.element.lines_of_pair();
        &self.lines[panel * length..(panel + 1) * length]
    }
}
