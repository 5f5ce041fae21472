//! The gradient of causal self-attention over a packed batch, one task per sequence and key head.
//!
//! Probabilities are computed again, block by block as in the forward pass: with P = softmax(S) and the gradient G of the
//! result, the values get P^T G, and the scores P (G V^T - rowsum(P (G V^T))).

use crate::activation::soft_cap;
use crate::attention::{AttentionShape, BLOCK, Visibility, gather, softmax_rows};
use crate::gemm::{MatrixView, product};
use crate::rotation::Angles;
use crate::simd::vectorised;
use gemm::Parallelism;
use rayon::prelude::*;
use std::ops::Range;

/// The inputs of the attention, and the gradient of its result.
pub struct AttentionGradient<'a> {
    /// `[tokens, qkv_width]`
    pub qkv: &'a [f32],
    /// `[tokens, heads * head_dim]`
    pub gradient: &'a [f32],
    pub shape: AttentionShape,
    pub visibility: Visibility,
    pub rotary: Option<&'a Angles>,
}

/// The gradients of one key head in one sequence, and of the queries that share it; each `[length, head_dim]`.
struct HeadGradients {
    queries: Vec<Vec<f32>>,
    keys: Vec<f32>,
    values: Vec<f32>,
}

/// The scores of a block of queries.
#[derive(Default)]
struct QueryBlock {
    scores: Vec<f32>,
    /// The derivatives of the capped scores; empty without a cap.
    slopes: Vec<f32>,
    gradient: Vec<f32>,
}

impl AttentionGradient<'_> {
    /// Writes the gradient of `qkv`, `[tokens, qkv_width]`.
    ///
    /// # Panics
    /// If the slices are smaller than required by the ranges and the shape: an error of the caller, never of a request.
    pub fn write(&self, out: &mut [f32], sequences: &[Range<usize>]) {
        let (shape, width) = (self.shape, self.shape.qkv_width());
        let heads = shape.kv_heads;
        let task = |task: usize| self.head(&sequences[task / heads], task % heads);
        let all: Vec<HeadGradients> = (0..sequences.len() * heads).into_par_iter().map(task).collect();
        for (task, gradients) in all.into_iter().enumerate() {
            let (rows, head) = (&sequences[task / heads], task % heads);
            let mut place = |column: usize, values: &[f32]| {
                for (row, values) in rows.clone().zip(values.chunks_exact(shape.head_dim)) {
                    out[row * width + column..][..shape.head_dim].copy_from_slice(values);
                }
            };
            let first = head * self.group();
            for (index, queries) in gradients.queries.iter().enumerate() {
                place(shape.query_column(first + index), queries);
            }
            place(shape.key_column(first), &gradients.keys);
            place(shape.value_column(first), &gradients.values);
        }
    }

    /// Query heads that share a key head.
    fn group(&self) -> usize {
        self.shape.heads / self.shape.kv_heads
    }

    fn head(&self, rows: &Range<usize>, head: usize) -> HeadGradients {
        let (shape, length, d) = (self.shape, rows.len(), self.shape.head_dim);
        let (width, out_width) = (shape.qkv_width(), shape.out_width());
        let qkv = &self.qkv[rows.start * width..rows.end * width];
        let part = |column: usize, rotary| {
            let mut part = Vec::with_capacity(length * d);
            gather(&mut part, qkv, [width, column, d], length, rotary);
            part
        };
        let first = head * self.group();
        let keys = part(shape.key_column(first), self.rotary);
        let values = part(shape.value_column(first), None);
        let mut gradients =
            HeadGradients { queries: Vec::new(), keys: vec![0.0; length * d], values: vec![0.0; length * d] };
        let mut block = QueryBlock::default();
        for query_head in first..first + self.group() {
            let queries = part(shape.query_column(query_head), self.rotary);
            let mut given = Vec::with_capacity(length * d);
            let results = &self.gradient[rows.start * out_width..rows.end * out_width];
            gather(&mut given, results, [out_width, shape.query_column(query_head), d], length, None);
            let mut of_queries = vec![0.0; length * d];
            for start in (0..length).step_by(BLOCK) {
                let places = [start, (start + BLOCK).min(length), self.visibility.first_key(start)];
                self.block(&mut block, places, [&queries, &keys, &values, &given]);
                block.add_to(&mut of_queries, &mut gradients, places, [&queries, &keys, &given], d);
            }
            self.rotate_back(&mut of_queries);
            gradients.queries.push(of_queries);
        }
        self.rotate_back(&mut gradients.keys);
        gradients
    }

    /// Probabilities of the queries `start..end` for the keys from `first_key`, and the gradients of their scores.
    fn block(
        &self,
        block: &mut QueryBlock,
        [start, end, first_key]: [usize; 3],
        [queries, keys, values, given]: [&[f32]; 4],
    ) {
        let (shape, d) = (self.shape, self.shape.head_dim);
        let (rows, seen) = (end - start, end - first_key);
        let (queries, given) = (MatrixView::rows(&queries[start * d..], d), MatrixView::rows(&given[start * d..], d));
        let keys = MatrixView::transposed(&keys[first_key * d..], d);
        let values = MatrixView::transposed(&values[first_key * d..], d);
        block.scores.resize(rows * seen, 0.0);
        block.gradient.resize(rows * seen, 0.0);
        product(&mut block.scores, seen, queries, keys, [rows, seen, d], false, Parallelism::None);
        block.slopes.clear();
        if let Some(cap) = shape.soft_cap {
            soft_cap(&mut block.scores, shape.scale, cap);
            block.slopes.extend(block.scores.iter().map(|s| shape.scale * (1.0 - (s / cap) * (s / cap))));
        }
        let scale = if shape.soft_cap.is_some() { 1.0 } else { shape.scale };
        let scores = &mut block.scores;
        vectorised!(softmax_rows(scores, seen, [start, first_key], self.visibility, scale));
        product(&mut block.gradient, seen, given, values, [rows, seen, d], false, Parallelism::None);
        for (gradient, scores) in block.gradient.chunks_exact_mut(seen).zip(block.scores.chunks_exact(seen)) {
            let mean: f32 = gradient.iter().zip(scores).map(|(g, p)| g * p).sum();
            gradient.iter_mut().zip(scores).for_each(|(g, p)| *g = p * (*g - mean) * scale);
        }
        // With a cap the scale is in the slopes.
        block.gradient.iter_mut().zip(&block.slopes).for_each(|(g, slope)| *g *= slope);
    }

    /// The gradient before the rotation: its transpose.
    fn rotate_back(&self, rows: &mut [f32]) {
        let Some(rotary) = self.rotary else { return };
        for (position, row) in rows.chunks_exact_mut(self.shape.head_dim).enumerate() {
            rotary.rotate_back(row, position);
        }
    }
}

impl QueryBlock {
    /// Adds what this block contributes: to its own queries, and to the keys and values that they see.
    fn add_to(
        &self,
        of_queries: &mut [f32],
        gradients: &mut HeadGradients,
        [start, end, first_key]: [usize; 3],
        [queries, keys, given]: [&[f32]; 3],
        d: usize,
    ) {
        let (rows, seen) = (end - start, end - first_key);
        let by_row = |data| MatrixView::rows(data, seen);
        let by_key = |data| MatrixView::transposed(data, seen);
        let none = Parallelism::None;
        let (queries, given) = (MatrixView::rows(&queries[start * d..], d), MatrixView::rows(&given[start * d..], d));
        let keys = MatrixView::rows(&keys[first_key * d..], d);
        product(&mut of_queries[start * d..], d, by_row(&self.gradient), keys, [rows, d, seen], false, none);
        let seen_keys = &mut gradients.keys[first_key * d..];
        product(seen_keys, d, by_key(&self.gradient), queries, [seen, d, rows], true, none);
        let seen_values = &mut gradients.values[first_key * d..];
        product(seen_values, d, by_key(&self.scores), given, [seen, d, rows], true, none);
    }
}
