//! The products of one thread.

use super::machine::{StripProduct, TileMachine};
use super::strips::{StripView, Strips, lines_of_rows};
use super::{ACTIVATIONS, STRIP};
use crate::activation;
use crate::activation::Activation;
use crate::packed::matrix::{LANES, PackedLine, blocks};
use crate::packed::pack::Packed;
use crate::packed::target::Target;
use crate::packed::tile_panels::{COLUMNS, lines_of_step, steps};
use std::cell::RefCell;
use std::ops::Range;

/// Bytes of weights that stay in the L1 cache.
const WEIGHTS: usize = 32 << 10;
/// Results of the rows of a part, in all columns, above which they are written past the caches: they would not stay there until
/// they are read.
const STREAMED: usize = 1 << 18;
/// Lines of the sums of a strip.
const SUMS: usize = STRIP * COLUMNS / LANES;

/// Rows and panels to be multiplied; the rows begin a strip.
pub struct TilePart<'a> {
    pub weights: &'a Packed,
    /// For all rows.
    pub target: Target<'a>,
    pub x: Activations<'a>,
    pub rows: Range<usize>,
    pub panels: Range<usize>,
    /// Applied to the results.
    pub activation: Option<Activation>,
}

/// All rows of activations.
#[derive(Clone, Copy)]
pub enum Activations<'a> {
    /// `[rows, k]`, to be converted.
    Values(&'a [f32]),
    Strips(&'a Strips),
}

/// Memory of a thread that is used again, whatever is in it.
#[derive(Default)]
struct Scratch {
    rows: Vec<PackedLine>,
    sums: Vec<PackedLine>,
}

thread_local! {
    static SCRATCH: RefCell<Scratch> = RefCell::default();
}

/// Returns a pointer to at least `count` lines.
fn reserved(lines: &mut Vec<PackedLine>, count: usize) -> *mut PackedLine {
    if lines.len() < count {
        lines.resize(count, PackedLine([0; LANES]));
    }
    lines.as_mut_ptr()
}

impl TilePart<'_> {
    /// # Safety
    /// The results of the part are inside the allocation of the target, no other thread accesses them, and the machine has
    /// the instructions.
    pub unsafe fn fill<M: TileMachine>(&self) {
        let pieces: Vec<_> = self.pieces().collect();
        SCRATCH.with_borrow_mut(|Scratch { rows, sums }| {
            let places = if pieces.len() > 1 { self.strips() * self.panels.len() } else { self.strips() };
            let sums = reserved(sums, places * SUMS).cast::<f32>();
            for piece in &pieces {
                // SAFETY: guaranteed by the caller.
                let x = unsafe { self.converted::<M>(rows, piece.clone()) };
                // SAFETY: guaranteed by the caller.
                let mut tiles = unsafe { M::configured(self.rows_of_strip(0)) };
                for (place, panel) in self.panels.clone().enumerate() {
                    let place = if pieces.len() > 1 { place * self.strips() } else { 0 };
                    let sums = sums.wrapping_add(place * STRIP * COLUMNS);
                    // SAFETY: guaranteed by the caller, and the sums have room for the strips.
                    unsafe { self.multiply_panel(&mut tiles, x, panel, piece.clone(), sums) };
                }
            }
        });
        self.publish();
    }

    /// Multiplies a panel by all strips through a piece of the steps.
    ///
    /// # Safety
    /// As for [`TilePart::fill`]; and there are 4 KiB of sums for each strip.
    unsafe fn multiply_panel<M: TileMachine>(
        &self,
        tiles: &mut M,
        x: StripView,
        panel: usize,
        piece: Range<usize>,
        sums: *mut f32,
    ) {
        let (all, terms) = (steps(self.weights.k), self.weights.terms());
        let lines_ahead = self.lines_ahead();
        let mut ahead = self.panel(panel + 1, piece.start);
        for cut in blocks(piece.len(), self.steps_of_cut(piece.len())) {
            let first = piece.start + cut.start == 0;
            let last = piece.start + cut.end == all;
            for strip in 0..self.strips() {
                let rows = self.rows_of_strip(strip);
                let results = self.results(strip, panel);
                // Sums that are final at once need no place of their own, and the L1 cache has none to spare.
                let sums = if first && last { sums } else { sums.wrapping_add(strip * STRIP * COLUMNS) };
                let product = StripProduct {
                    x: x.from(cut.start).strip(strip, rows),
                    w: self.panel(panel, piece.start + cut.start),
                    sums,
                    steps: cut.len(),
                    rows,
                    first,
                    results: (last && !self.is_streamed()).then_some(results),
                    ahead,
                    lines_ahead,
                };
                ahead = ahead.wrapping_add(lines_ahead * cut.len());
                if rows < STRIP && strip > 0 {
                    tiles.configure(rows);
                }
                // SAFETY: the strip, the panel and the sums have these steps and rows, for which the tiles are configured.
                unsafe { tiles.multiply(terms, &product) };
                if rows < STRIP && strip > 0 {
                    tiles.configure(STRIP);
                }
                if last {
                    let columns = self.weights.columns(panel..panel + 1).len();
                    // SAFETY: guaranteed by the caller.
                    unsafe { M::store(results, sums, rows, columns, self.is_streamed()) };
                    if let Some(activation) = self.activation {
                        // SAFETY: these results were written by this thread, and are accessed by no other.
                        unsafe {
                            activation::apply_to_block(activation, results.out.0, results.stride, [rows, columns])
                        };
                    }
                }
            }
        }
    }

    /// The rows of the part as strips, through a piece of the steps.
    ///
    /// # Safety
    /// The machine has the instructions.
    unsafe fn converted<M: TileMachine>(&self, scratch: &mut Vec<PackedLine>, piece: Range<usize>) -> StripView {
        let (k, terms) = (self.weights.k, self.weights.terms());
        match self.x {
            Activations::Strips(strips) => strips.view(self.rows.start, k).from(piece.start),
            Activations::Values(x) => {
                let lines = reserved(scratch, lines_of_rows(self.rows.len(), piece.len(), terms.activation()));
                let x = &x[self.rows.start * k..self.rows.end * k];
                // SAFETY: the lines are reserved above; the machine has the instructions, as the caller guarantees.
                unsafe { M::convert(lines, x, k, piece.clone(), terms.activation()) };
                StripView::new(lines, piece.len(), terms)
            }
        }
    }

    fn strips(&self) -> usize {
        self.rows.len().div_ceil(STRIP)
    }

    fn rows_of_strip(&self, strip: usize) -> usize {
        (self.rows.len() - strip * STRIP).min(STRIP)
    }

    /// The weights of a panel from a step on; past the last panel, an address that is never read.
    fn panel(&self, panel: usize, step: usize) -> *const PackedLine {
        let panel_lines = steps(self.weights.k) * lines_of_step(self.weights.terms());
        self.weights.first_line().wrapping_add(panel * panel_lines + step * lines_of_step(self.weights.terms()))
    }

    /// Where the results of a strip and a panel begin.
    fn results(&self, strip: usize, panel: usize) -> Target<'_> {
        self.target.from(self.rows.start + strip * STRIP, panel * COLUMNS)
    }

    fn pieces(&self) -> impl Iterator<Item = Range<usize>> + use<> {
        let all = steps(self.weights.k);
        let bytes = size_of::<PackedLine>() * lines_of_rows(self.rows.len(), 1, self.weights.terms().activation());
        let most = (ACTIVATIONS / bytes.max(1)).max(1);
        blocks(all, all.div_ceil(all.div_ceil(most)))
    }

    /// Steps of a cut. It pays where each weight is loaded for one product only, and where enough strips pass.
    fn steps_of_cut(&self, piece: usize) -> usize {
        let terms = self.weights.terms();
        if terms.products().len() > 1 || self.strips() <= 2 {
            return piece;
        }
        let most = WEIGHTS / (size_of::<PackedLine>() * lines_of_step(terms));
        piece.div_ceil(piece.div_ceil(most))
    }

    /// Lines of the next panel that are fetched at each step, so that all are there after the last strip. With fewer strips,
    /// the bandwidth of memory decides.
    fn lines_ahead(&self) -> usize {
        if self.strips() > 2 { lines_of_step(self.weights.terms()).div_ceil(self.strips()) } else { 0 }
    }

    /// Returns true if results are written past the caches.
    fn is_streamed(&self) -> bool {
        let Target { out, stride, accumulate, .. } = self.target;
        !accumulate
            && self.activation.is_none()
            && out.0.addr().is_multiple_of(size_of::<PackedLine>())
            && stride.is_multiple_of(LANES)
            && self.rows.len() * stride > STREAMED
    }

    /// Makes streamed results visible to other threads, which the synchronisation of threads alone does not.
    fn publish(&self) {
        #[cfg(target_arch = "x86_64")]
        if self.is_streamed() {
            // SAFETY: every processor of this architecture has the instruction.
            unsafe { std::arch::x86_64::_mm_sfence() };
        }
    }
}
