//! Packed weights.

use super::blocks::{BlockError, BlockFormat, Blocks};
use super::isa::{Isa, Products};
use super::matrix::{Element, LANES, Matrix, PackedLine};
use super::panels;
use super::terms::Terms;
use super::tile_panels;
use rayon::prelude::*;
use std::convert::Infallible;
use std::mem::MaybeUninit;
use std::ops::Range;

/// Bytes of weights that are read at a time, or those of one panel if it has more: enough for the full speed of a disk that
/// has several such requests.
const READ: usize = 1 << 20;

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

/// The memory of panels that are no longer used.
#[derive(Default)]
pub struct PanelMemory(Vec<PackedLine>);

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

/// The number of panels of `bytes` bytes each that are read at a time.
fn panels_at_once(bytes: usize) -> usize {
    (READ / bytes.max(1)).max(1)
}

/// Bytes of rows that a thread of [`Packed::read`] reads at a time, of weights `[n, k]`.
pub fn read_bytes(k: usize, element: Element, products: Products, isa: Isa) -> usize {
    let panel = PackedLayout::new(element, products, isa).columns().saturating_mul(k).saturating_mul(element.bytes());
    panels_at_once(panel).saturating_mul(panel)
}

impl Packed {
    /// Packs weights `[n, k]`.
    ///
    /// # Panics
    /// If the weights do not have that shape, bf16 products are requested for other weights than bf16, or the machine
    /// lacks the instructions: errors of the caller, never of a request.
    pub fn new(weights: Matrix, [n, k]: [usize; 2], products: Products, isa: Isa) -> Self {
        assert!(weights.len() == n * k, "packed: {n} x {k} weights expected, got {}", weights.len());
        let (element, bytes) = (weights.element(), weights.bytes());
        let width = k * element.bytes();
        let read = |rows: Range<usize>, (): &mut (), pack: &mut dyn FnMut(&[&[u8]])| {
            pack(&rows.map(|row| &bytes[row * width..(row + 1) * width]).collect::<Vec<_>>());
            Ok::<(), Infallible>(())
        };
        let Ok(packed) = Self::read([n, k], element, products, isa, PanelMemory::default(), read);
        packed
    }

    /// Packs weights `[n, k]` while they are read. Each thread reads the rows of a few panels and packs them before it reads
    /// the next ones: with more threads than processors, some wait for a disk while others pack, and no matrix is in memory
    /// a second time. `read` gets a range of rows and a buffer of the thread's own, and calls its last argument once, with the
    /// bytes of each row. `memory` is used if it has the size of the panels.
    ///
    /// # Errors
    /// Those of `read`.
    ///
    /// # Panics
    /// For the reasons of [`Packed::new`], or if `read` passes on another number of rows than it was asked for: errors of the
    /// caller, never of a request.
    pub fn read<B: Default, E: Send>(
        [n, k]: [usize; 2],
        element: Element,
        products: Products,
        isa: Isa,
        memory: PanelMemory,
        read: impl Fn(Range<usize>, &mut B, &mut dyn FnMut(&[&[u8]])) -> Result<(), E> + Sync,
    ) -> Result<Self, E> {
        assert!(products != Products::Bf16 || element == Element::Bf16, "packed: bf16 products need bf16 weights");
        assert!(isa.runs(products), "packed: this machine does not support {isa:?}");
        let layout = PackedLayout::new(element, products, isa);
        let (width, length) = (layout.columns(), layout.lines(element, k));
        let (at_once, count) = (panels_at_once(width * k * element.bytes()), n.div_ceil(width) * length);
        let memory = Some(memory.0).filter(|memory| memory.capacity() == count);
        let mut packed = memory.unwrap_or_else(|| Vec::with_capacity(count));
        packed.clear();
        let lines = &mut packed.spare_capacity_mut()[..count];
        let pieces = lines.par_chunks_mut((at_once * length).max(1)).enumerate();
        pieces.try_for_each_init(B::default, |buffer, (piece, lines)| {
            let first = piece * at_once * width;
            let (count, mut taken) = ((at_once * width).min(n - first), 0);
            read(first..first + count, buffer, &mut |rows| {
                for (lines, rows) in lines.chunks_mut(length.max(1)).zip(rows.chunks(width)) {
                    lines.fill(MaybeUninit::new(PackedLine([0; LANES])));
                    // SAFETY: each of them was written just now.
                    let lines = unsafe { lines.assume_init_mut() };
                    match layout {
                        PackedLayout::Vectors => panels::pack(lines, rows),
                        PackedLayout::Tiles(terms) => tile_panels::pack(lines, rows, element, terms),
                    }
                }
                taken = rows.len();
            })?;
            assert!(taken == count, "packed: {count} rows expected, got {taken}");
            Ok(())
        })?;
        // SAFETY: each piece has as many panels as its rows fill, and each of them was written.
        unsafe { packed.set_len(count) };
        Ok(Self { weights: Storage::Panels(packed), layout, element, products, isa, n, k })
    }

    /// The memory of the panels, for those of other weights; none of blocks.
    pub fn into_memory(self) -> PanelMemory {
        match self.weights {
            Storage::Panels(lines) => PanelMemory(lines),
            Storage::Blocks(_) => PanelMemory::default(),
        }
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::packed::tests::{in_each_type, noise, same};

    /// Packs several pieces of one or two panels each, the last one not full, with odd k and rows at odd addresses.
    #[test]
    fn weights_that_are_read_in_pieces_take_the_place_of_others() {
        let shape @ [n, k] = [325, 4097];
        in_each_type(&noise(n * k, 1), |name, matrix, values| {
            let (element, bytes) = (matrix.element(), matrix.bytes());
            let width = k * element.bytes();
            for isa in Isa::available(Products::F32) {
                // Row i is that of `i + shift`; that of `fails` cannot be read.
                let read = |memory, shift: usize, fails: usize| {
                    let read = |rows: Range<usize>, buffer: &mut Vec<u8>, pack: &mut dyn FnMut(&[&[u8]])| {
                        if rows.contains(&fails) {
                            return Err(rows);
                        }
                        buffer.clear();
                        buffer.push(0);
                        rows.map(|row| (row + shift) % n)
                            .for_each(|row| buffer.extend_from_slice(&bytes[row * width..(row + 1) * width]));
                        pack(&buffer[1..].chunks_exact(width).collect::<Vec<_>>());
                        Ok(())
                    };
                    Packed::read(shape, element, Products::F32, isa, memory, read)
                };
                let others = read(PanelMemory::default(), 7, n).unwrap();
                let place = others.first_line();
                let packed = read(others.into_memory(), 0, n).unwrap();
                assert_eq!(packed.first_line(), place, "{name} {isa:?}");
                if Packed::keeps_weights(element, isa) {
                    let mut row = vec![0.0; k];
                    for (index, values) in values.chunks_exact(k).enumerate() {
                        packed.copy_row(&mut row, index);
                        assert!(same(&row, values), "{name} {isa:?}, row {index}");
                    }
                }
                let Err(failed) = read(packed.into_memory(), 0, 200) else { panic!("row 200 was read") };
                assert!(failed.contains(&200));
            }
        });
    }

    #[test]
    #[should_panic(expected = "rows expected, got 0")]
    fn rows_that_are_not_given_are_missed() {
        let read = |_: Range<usize>, (): &mut (), _: &mut dyn FnMut(&[&[u8]])| Ok::<(), Infallible>(());
        let nothing = PanelMemory::default();
        let Ok(_) = Packed::read([1, 1], Element::F32, Products::F32, Isa::Scalar, nothing, read);
    }
}
