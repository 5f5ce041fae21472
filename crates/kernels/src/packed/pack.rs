//! Packed weights.

use super::blocks::{BlockError, BlockFormat, Blocks};
use super::isa::{Isa, Products};
use super::matrix::{Element, LANES, Matrix, PackedLine};
use super::panels;
use super::terms::Terms;
use super::tile_panels;
use rayon::prelude::*;
use std::ops::Range;

/// The order of the weights of a panel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum PackedLayout {
    /// Every two steps of k, as [`panels`] has them.
    Vectors,
    /// Tiles of terms, as [`tile_panels`] has them.
    Tiles(Terms),
}

/// Weights `[n, k]`, divided into panels of some of the n; the last panel is padded with zeros, as is k.
pub struct Packed {
    pub(super) weights: Storage,
    pub(super) layout: PackedLayout,
    pub(super) element: Element,
    pub(super) products: Products,
    pub(super) isa: Isa,
    pub(super) n: usize,
    pub(super) k: usize,
}

/// Storage of the weights.
pub(super) enum Storage {
    /// Panels, as the layout has them.
    Panels(Vec<PackedLine>),
    /// Quantised blocks, dequantised to panels in f32 by each product.
    Blocks(Blocks),
}

impl PackedLayout {
    fn new(element: Element, products: Products, isa: Isa) -> Self {
        if isa.is_tiled() { Self::Tiles(Terms::new(products, element)) } else { Self::Vectors }
    }

    fn columns(self) -> usize {
        match self {
            Self::Vectors => panels::COLUMNS,
            Self::Tiles(_) => tile_panels::COLUMNS,
        }
    }

    /// Lines of a panel of k steps.
    fn lines(self, element: Element, k: usize) -> usize {
        match self {
            Self::Vectors => k.div_ceil(2).saturating_mul(panels::lines_of_pair(element)),
            Self::Tiles(terms) => tile_panels::steps(k).saturating_mul(tile_panels::lines_of_step(terms)),
        }
    }
}

/// Bytes of weights `[n, k]` once packed.
pub fn packed_bytes([n, k]: [usize; 2], element: Element, products: Products, isa: Isa) -> usize {
    // The size may be a mere claim of a file, so that it saturates.
    let layout = PackedLayout::new(element, products, isa);
    n.div_ceil(layout.columns()).saturating_mul(layout.lines(element, k)).saturating_mul(size_of::<PackedLine>())
}

impl Packed {
    /// Packs weights `[n, k]`.
    ///
    /// # Panics
    /// If the weights do not have that shape, bf16 products are requested for other weights than bf16, or the machine
    /// lacks the instructions: errors of the caller, never of a request.
    pub fn new(weights: Matrix, [n, k]: [usize; 2], products: Products, isa: Isa) -> Self {
        let element = weights.element();
        assert!(weights.len() == n * k, "packed: {n} x {k} weights expected, got {}", weights.len());
        assert!(products != Products::Bf16 || element == Element::Bf16, "packed: bf16 products need bf16 weights");
        assert!(isa.runs(products), "packed: this machine does not support {isa:?}");
        let layout = PackedLayout::new(element, products, isa);
        let (width, length) = (layout.columns(), layout.lines(element, k));
        let mut lines = vec![PackedLine([0; LANES]); n.div_ceil(width) * length];
        lines.par_chunks_mut(length.max(1)).enumerate().for_each(|(panel, lines)| {
            let columns = panel * width..((panel + 1) * width).min(n);
            match layout {
                PackedLayout::Vectors => panels::pack(lines, weights, columns, k),
                PackedLayout::Tiles(terms) => tile_panels::pack(lines, weights, columns, k, terms),
            }
        });
        Self { weights: Storage::Panels(lines), layout, element, products, isa, n, k }
    }

    /// Keeps weights `[n, k]` in blocks: the bytes of each of the n rows, in the order of the outputs. Products are those of
    /// f32, bit for bit those of weights that were converted to f32 before they were packed; they run on `isa`, of
    /// [`Isa::best_for_blocks`].
    ///
    /// # Errors
    /// [`BlockError`] if k is not a whole number of blocks, a row has another length than k requires, or a scale is not
    /// finite.
    ///
    /// # Panics
    /// If the machine lacks the instructions, or they are those of tiles: errors of the caller, never of a request.
    pub fn of_blocks(rows: &[&[u8]], k: usize, format: BlockFormat, isa: Isa) -> Result<Self, BlockError> {
        assert!(isa.runs_blocks(), "packed: {isa:?} does not multiply blocks");
        let weights = Storage::Blocks(Blocks::new(rows, k, format)?);
        let (layout, element, products) = (PackedLayout::Vectors, Element::F32, Products::F32);
        Ok(Self { weights, layout, element, products, isa, n: rows.len(), k })
    }

    /// Outputs and inputs, `[n, k]`.
    pub fn shape(&self) -> [usize; 2] {
        [self.n, self.k]
    }

    /// Returns true if [`Packed::copy_row`] gives the weights back: terms of f32 weights represent less than the weights.
    pub fn keeps_weights(element: Element, isa: Isa) -> bool {
        !isa.is_tiled() || element != Element::F32
    }

    /// Copies the weights of one output as f32 into `out` `[k]`.
    ///
    /// # Panics
    /// If there is no such output, `out` has another length, or the weights are not kept: errors of the caller, never of
    /// a request.
    pub fn copy_row(&self, out: &mut [f32], row: usize) {
        assert!(row < self.n && out.len() == self.k, "packed: there is no row {row} of length {}", out.len());
        assert!(Self::keeps_weights(self.element, self.isa), "packed: terms of f32 weights are not the weights");
        if let Storage::Blocks(blocks) = &self.weights {
            return blocks.copy_row(out, row);
        }
        let width = self.layout.columns();
        let (panel, column) = (self.panel(row / width), row % width);
        for (q, out) in out.iter_mut().enumerate() {
            *out = match self.layout {
                PackedLayout::Vectors => panels::value(panel, self.element, column, q),
                PackedLayout::Tiles(terms) => tile_panels::value(panel, terms, column, q),
            };
        }
    }

    pub fn panels(&self) -> usize {
        self.n.div_ceil(self.layout.columns())
    }

    /// The columns of a panel, but for the last.
    pub fn panel_width(&self) -> usize {
        self.layout.columns()
    }

    /// The columns of adjacent panels.
    pub fn columns(&self, panels: Range<usize>) -> Range<usize> {
        let width = self.layout.columns();
        (panels.start * width).min(self.n)..(panels.end * width).min(self.n)
    }

    /// Terms of weights and activations, if products are computed from tiles.
    ///
    /// # Panics
    /// If they are not: an error of the caller, never of a request.
    pub(super) fn terms(&self) -> Terms {
        match self.layout {
            PackedLayout::Tiles(terms) => terms,
            PackedLayout::Vectors => panic!("packed: weights for vectors have no terms"),
        }
    }

    /// The first line of all panels.
    pub(super) fn first_line(&self) -> *const PackedLine {
        self.lines().as_ptr()
    }

    /// The words of a panel.
    ///
    /// # Panics
    /// If the weights are kept in blocks: an error of the caller, never of a request.
    pub(super) fn panel(&self, panel: usize) -> &[PackedLine] {
        let length = self.layout.lines(self.element, self.k);
        &self.lines()[panel * length..(panel + 1) * length]
    }

    fn lines(&self) -> &[PackedLine] {
        match &self.weights {
            Storage::Panels(lines) => lines,
            Storage::Blocks(_) => panic!("packed: weights in blocks have no panels"),
        }
    }
}
