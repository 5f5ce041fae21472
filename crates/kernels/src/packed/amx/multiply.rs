//! Divides products of tiles among threads.

use super::ROWS;
use super::machine::TileMachine;
use super::part::{Activations, TilePart};
use super::strips::{Strips, row_blocks};
use crate::activation::Activation;
use crate::packed::matrix::blocks;
use crate::packed::pack::Packed;
use crate::packed::target::Target;
use rayon::prelude::*;
use std::ops::Range;

/// Rows per thread from which on a thread converts its own block and multiplies it by all panels; below that, all rows are
/// converted first, and the threads divide the panels.
const OWN_ROWS: usize = 128;
/// Parts per thread where panels are divided, so that no thread waits long for the last one.
const PARTS: usize = 4;

/// The products of x `[m, k]` on the threads of the pool, with an activation applied to the results.
///
/// # Safety
/// The target has m rows of n results, no other thread accesses them, and the machine has the instructions.
pub unsafe fn multiply<M: TileMachine>(weights: &Packed, target: Target, x: &[f32], activation: Option<Activation>) {
    let (m, threads) = (x.len() / weights.k.max(1), rayon::current_num_threads());
    let fill = |x: Activations, parts: Vec<(Range<usize>, Range<usize>)>| {
        parts.into_par_iter().with_max_len(1).for_each(|(rows, panels)| {
            // SAFETY: the parts are disjoint and inside the target, as the caller guarantees.
            unsafe { TilePart { weights, target, x, rows, panels, activation }.fill::<M>() }
        });
    };
    if m < OWN_ROWS * threads {
        // SAFETY: the machine has the instructions, as the caller guarantees.
        let strips = unsafe { Strips::new::<M>(x, weights.k, weights.terms()) };
        let row_parts: Vec<_> = row_blocks(m, ROWS).collect();
        let width = weights.panels().div_ceil((PARTS * threads).div_ceil(row_parts.len().max(1))).max(1);
        let with_panels =
            |rows: Range<usize>| blocks(weights.panels(), width).map(move |panels| (rows.clone(), panels));
        fill(Activations::Strips(&strips), row_parts.into_iter().flat_map(with_panels).collect());
    } else {
        let count = m.div_ceil(ROWS).next_multiple_of(threads);
        let parts = row_blocks(m, m.div_ceil(count)).map(|rows| (rows, 0..weights.panels()));
        fill(Activations::Values(x), parts.collect());
    }
}

/// Multiplies a range of panels by a range of converted rows, which starts at a strip, on this thread.
///
/// # Safety
/// The target has the rows and the columns of the panels, and no other thread accesses them.
pub unsafe fn multiply_panels<M: TileMachine>(
    weights: &Packed,
    target: Target,
    strips: &Strips,
    rows: Range<usize>,
    panels: Range<usize>,
) {
    let part = TilePart { weights, target, x: Activations::Strips(strips), rows, panels, activation: None };
    // SAFETY: guaranteed by the caller.
    unsafe { part.fill::<M>() };
}
