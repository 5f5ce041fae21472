//! Causal self-attention over a packed batch on the CPU, one task per sequence and head.
//!
//! Queries are processed in blocks; a block is multiplied only with the keys from the first one that its first row
//! attends to up to its last row, so that almost half of the products (with a window, most of them) are never computed
//! and the scores never exceed `[BLOCK, length]`. No mask is stored.

use super::activation::soft_cap;
use super::gemm::{MatrixView, product, product_raw};
use super::math::exp_nonpositive;
use super::shared_mut::SharedMut;
use super::simd::vectorised;
use crate::rotation::Angles;
use gemm::Parallelism;
use rayon::prelude::*;
use std::ops::Range;

/// Query rows per block.
pub(super) const BLOCK: usize = 64;

/// The shape of the attention of one layer.
#[derive(Clone, Copy, Debug)]
pub struct AttentionShape {
    pub heads: usize,
    pub kv_heads: usize,
    pub head_dim: usize,
    /// Factor applied to the scores, usually 1 / sqrt(head_dim).
    pub scale: f32,
    /// Scores s become `cap tanh(s / cap)`.
    pub soft_cap: Option<f32>,
}

/// The keys of its sequence that a query attends to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Visibility {
    /// Its own key and all previous ones.
    Past,
    /// This many keys, its own being the last.
    Window(usize),
}

impl Visibility {
    /// The first key that the query at a position attends to.
    pub fn first_key(self, position: usize) -> usize {
        match self {
            Self::Past => 0,
            Self::Window(keys) => (position + 1).saturating_sub(keys),
        }
    }
}

impl From<Option<usize>> for Visibility {
    fn from(window: Option<usize>) -> Self {
        window.map_or(Self::Past, Self::Window)
    }
}

impl AttentionShape {
    /// Width of the fused projection: queries of all heads, then keys, then values.
    pub fn qkv_width(&self) -> usize {
        (self.heads + 2 * self.kv_heads) * self.head_dim
    }

    pub fn out_width(&self) -> usize {
        self.heads * self.head_dim
    }

    pub(super) fn query_column(&self, head: usize) -> usize {
        head * self.head_dim
    }

    pub(super) fn key_column(&self, head: usize) -> usize {
        (self.heads + head * self.kv_heads / self.heads) * self.head_dim
    }

    pub(super) fn value_column(&self, head: usize) -> usize {
        self.key_column(head) + self.kv_heads * self.head_dim
    }
}

/// Buffers that a task reuses from the previous one.
#[derive(Default)]
struct AttentionScratch {
    queries: Vec<f32>,
    keys: Vec<f32>,
    scores: Vec<f32>,
}

/// `out` `[tokens, heads * head_dim]` from `qkv` `[tokens, qkv_width]`; `sequences` are the row ranges of the batch.
///
/// # Panics
/// If the slices are smaller than required by the ranges and the shape: an error of the caller, never of a request.
pub fn causal(
    out: &mut [f32],
    qkv: &[f32],
    sequences: &[Range<usize>],
    shape: AttentionShape,
    visibility: Visibility,
    rotary: Option<&Angles>,
) {
    let tokens = sequences.last().map_or(0, |s| s.end);
    assert!(out.len() >= tokens * shape.out_width() && qkv.len() >= tokens * shape.qkv_width());
    assert!(shape.kv_heads > 0 && shape.heads.is_multiple_of(shape.kv_heads));
    // Tasks write disjoint rows only if the ranges are sorted and do not overlap.
    assert!(sequences.iter().all(|s| s.start <= s.end) && sequences.windows(2).all(|w| w[0].end <= w[1].start));
    let head = HeadTask { shape, visibility, rotary };
    let shared = SharedMut(out.as_mut_ptr());
    let tasks = sequences.len() * shape.heads;
    (0..tasks).into_par_iter().for_each_init(AttentionScratch::default, |scratch, task| {
        let rows = sequences[task / shape.heads].clone();
        let index = task % shape.heads;
        let qkv = &qkv[rows.start * shape.qkv_width()..rows.end * shape.qkv_width()];
        // SAFETY: the first row of the sequence at the head's columns, which the assertion above keeps inside `out`.
        let out = unsafe { shared.add(rows.start * shape.out_width() + shape.query_column(index)) };
        // SAFETY: only this task accesses the rows of this sequence at the columns of this head.
        unsafe { head.attend(out, qkv, rows.len(), index, scratch) };
    });
}

/// Parameters shared by the tasks of one call.
struct HeadTask<'a> {
    shape: AttentionShape,
    visibility: Visibility,
    rotary: Option<&'a Angles>,
}

impl HeadTask<'_> {
    /// Computes one head of one sequence.
    ///
    /// # Safety
    /// `out` points to `length` rows of `head_dim` elements, `out_width` apart, which no other thread accesses.
    unsafe fn attend(&self, out: *mut f32, qkv: &[f32], length: usize, head: usize, scratch: &mut AttentionScratch) {
        let shape = self.shape;
        let (d, width) = (shape.head_dim, shape.qkv_width());
        let (queries, keys) = ([width, shape.query_column(head), d], [width, shape.key_column(head), d]);
        gather(&mut scratch.queries, qkv, queries, length, self.rotary);
        gather(&mut scratch.keys, qkv, keys, length, self.rotary);
        for start in (0..length).step_by(BLOCK) {
            let end = (start + BLOCK).min(length);
            let first_key = self.visibility.first_key(start);
            let (rows, seen) = (end - start, end - first_key);
            scratch.scores.resize(rows * seen, 0.0);
            let queries = MatrixView::rows(&scratch.queries[start * d..], d);
            let keys = MatrixView::transposed(&scratch.keys[first_key * d..], d);
            product(&mut scratch.scores, seen, queries, keys, [rows, seen, d], false, Parallelism::None);
            if let Some(cap) = shape.soft_cap {
                soft_cap(&mut scratch.scores[..rows * seen], shape.scale, cap);
            }
            let scale = if shape.soft_cap.is_some() { 1.0 } else { shape.scale };
            let scores = &mut scratch.scores[..rows * seen];
            vectorised!(softmax_rows(scores, seen, [start, first_key], self.visibility, scale));
            let values = MatrixView::rows(&qkv[first_key * width + shape.value_column(head)..], width);
            // SAFETY: the rows `start..end` of the block are the caller's; scores hold `[rows, seen]`, and the values
            // of the sequence extend from `first_key` to its last row.
            unsafe {
                let out = out.add(start * shape.out_width());
                let scores = MatrixView::rows(&scratch.scores, seen);
                product_raw(out, shape.out_width(), scores, values, [rows, d, seen], false, Parallelism::None);
            }
        }
    }
}

/// Copies the `head_dim` columns from `column` on from every row of `width` elements, and rotates each by its position.
pub(super) fn gather(
    to: &mut Vec<f32>,
    rows: &[f32],
    [width, column, head_dim]: [usize; 3],
    length: usize,
    rotary: Option<&Angles>,
) {
    to.clear();
    for row in rows.chunks_exact(width).take(length) {
        to.extend_from_slice(&row[column..column + head_dim]);
    }
    if let Some(rotary) = rotary {
        for (position, row) in to.chunks_exact_mut(head_dim).enumerate() {
            rotary.rotate(row, position);
        }
    }
}

/// Row i holds the scores of the query at position `start + i` for the keys from `first_key`: visible ones are replaced
/// by their softmax (after multiplication by `scale`), the others by 0.
#[inline(always)]
pub(super) fn softmax_rows(
    scores: &mut [f32],
    width: usize,
    [start, first_key]: [usize; 2],
    visibility: Visibility,
    scale: f32,
) {
    for (i, row) in scores.chunks_exact_mut(width).enumerate() {
        let position = start + i;
        let (row, after) = row.split_at_mut(position + 1 - first_key);
        let (before, seen) = row.split_at_mut(visibility.first_key(position) - first_key);
        let mut max = f32::NEG_INFINITY;
        for &s in seen.iter() {
            max = if s > max { s } else { max };
        }
        for s in seen.iter_mut() {
            *s = exp_nonpositive((*s - max) * scale);
        }
        let inverse = 1.0 / seen.iter().sum::<f32>();
        for s in seen.iter_mut() {
            *s *= inverse;
        }
        before.fill(0.0);
        after.fill(0.0);
    }
}
