//! Causal self-attention in a forward pass, in both forms.

use super::batch::{PackedBatch, similar_lengths};
use super::kernels::attention::{AttentionShape, Visibility};
use super::ops::{Form, QueryKeyNorms, fused_attention, soft_cap, tuned_attention, wide};
use super::rotary::{RotaryRows, RotaryTable, rotate_tensor};
use candle_core::{D, Device, Result, Tensor};
use candle_nn::ops::softmax;
use std::cell::RefCell;
use std::ops::Range;
use std::sync::Arc;

/// The maximum number of attention scores that the plain form holds at once, 1 GiB of f32, of which several copies exist
/// at a time. If there would be more, sequences are processed one after another, and the queries of one sequence block
/// by block.
pub const MOST_SCORES: usize = 1 << 28;

/// Masks of sequences up to this length are shared between layers, at most about 64 MiB for each kind of layer; masks
/// of longer sequences are rebuilt.
const LONGEST_SHARED_MASK: usize = 4096;

/// State that all layers of one forward pass share.
pub struct AttentionPlan<'a> {
    shape: AttentionShape,
    batch: &'a PackedBatch,
    rotary: Option<Arc<RotaryRows>>,
    /// Set in the plain form only, which pads.
    groups: Option<Groups>,
}

/// The plain form pads around the attention and nowhere else, and only among sequences of similar length.
struct Groups {
    groups: Vec<Group>,
    /// For each row of the packed batch, its index in the concatenation of all groups.
    rows: Tensor,
}

/// Sequences padded to the longest one of them.
struct Group {
    count: usize,
    longest: usize,
    /// The row of the packed batch for each place of `[count, longest]`; padding refers to row 0.
    places: Tensor,
    /// Cosines and sines `[longest, 1, half]`.
    rotary: Option<(Tensor, Tensor)>,
    /// Number of queries in a block.
    block: usize,
    /// Masks that layers share, each with its visibility and the first query of its block; not used for long sequences.
    masks: RefCell<Vec<(Visibility, usize, Tensor)>>,
}

impl<'a> AttentionPlan<'a> {
    /// Prepares the state that the form needs for this batch.
    pub fn new(
        form: Form,
        shape: AttentionShape,
        batch: &'a PackedBatch,
        rotary: Option<&RotaryTable>,
        device: &Device,
    ) -> Result<Self> {
        let rotary = rotary.map(|table| table.rows(batch.longest()));
        let groups = match form {
            Form::Fused(_) => None,
            Form::Plain => Some(Groups::new(batch, rotary.as_deref(), shape.heads, MOST_SCORES, device)?),
        };
        Ok(Self { shape, batch, rotary, groups })
    }

    /// Maps qkv `[tokens, qkv_width]` to `[tokens, heads * head_dim]`; the fused form may overwrite qkv.
    pub fn forward(&self, qkv: &Tensor, norms: Option<&QueryKeyNorms>, visibility: Visibility) -> Result<Tensor> {
        let Some(groups) = &self.groups else {
            norms.map_or(Ok(()), |norms| norms.fused(qkv, self.shape))?;
            return fused_attention(qkv, &self.batch.sequences, self.shape, visibility, self.rotary.as_deref());
        };
        if norms.is_none()
            && let Some(mixed) =
                tuned_attention(qkv, &self.batch.sequences, self.shape, visibility, self.rotary.as_ref())?
        {
            return Ok(mixed);
        }
        let AttentionShape { heads, kv_heads, head_dim, .. } = self.shape;
        let part = |first: usize, count: usize| {
            let columns = qkv.narrow(D::Minus1, first * head_dim, count * head_dim)?;
            columns.reshape(((), count, head_dim))
        };
        let (mut queries, mut keys) = (part(0, heads)?, part(heads, kv_heads)?);
        if let Some(norms) = norms {
            (queries, keys) = (norms.plain_queries(&queries)?, norms.plain_keys(&keys)?);
        }
        let values = part(heads + kv_heads, kv_heads)?;
        let mixed = groups.groups.iter().map(|group| group.attend([&queries, &keys, &values], self.shape, visibility));
        Tensor::cat(&mixed.collect::<Result<Vec<_>>>()?, 0)?.index_select(&groups.rows, 0)
    }
}

impl Groups {
    fn new(
        batch: &PackedBatch,
        rotary: Option<&RotaryRows>,
        heads: usize,
        most_scores: usize,
        device: &Device,
    ) -> Result<Self> {
        let mut rows = vec![0u32; batch.ids.len()];
        let (mut groups, mut before) = (Vec::new(), 0);
        for sequences in similar(&batch.sequences, heads, most_scores) {
            let longest = sequences.iter().map(Range::len).max().unwrap_or(0);
            let mut places = vec![0u32; sequences.len() * longest];
            for (i, sequence) in sequences.iter().enumerate() {
                for (t, row) in sequence.clone().enumerate() {
                    places[i * longest + t] = row as u32;
                    rows[row] = (before + i * longest + t) as u32;
                }
            }
            before += places.len();
            let per_query = sequences.len().saturating_mul(heads).saturating_mul(longest);
            groups.push(Group {
                count: sequences.len(),
                longest,
                places: Tensor::new(places, device)?,
                rotary: rotary.map(|rows| rows.tensors(longest, device)).transpose()?,
                block: (most_scores / per_query.max(1)).clamp(1, longest.max(1)),
                masks: RefCell::default(),
            });
        }
        Ok(Self { groups, rows: Tensor::new(rows, device)? })
    }
}

/// Groups sequences of similar length, each group with at most `most_scores` scores.
fn similar(sequences: &[Range<usize>], heads: usize, most_scores: usize) -> Vec<Vec<Range<usize>>> {
    let groups = similar_lengths(sequences.iter().map(Range::len)).into_iter().flat_map(|places| {
        let longest = places.iter().map(|&place| sequences[place].len()).max().unwrap_or(1);
        let together = most_scores / heads.saturating_mul(longest).saturating_mul(longest).max(1);
        let parts = places.chunks(together.max(1));
        parts.map(|part| part.iter().map(|&place| sequences[place].clone()).collect()).collect::<Vec<_>>()
    });
    groups.collect()
}

impl Group {
    /// Maps queries, keys and values `[tokens, heads, head_dim]` to `[count * longest, heads * head_dim]`.
    fn attend(&self, [q, k, v]: [&Tensor; 3], shape: AttentionShape, visibility: Visibility) -> Result<Tensor> {
        // In f32: GPT-J and GPT-Neo were trained this way, and unscaled products exceed the range of f16.
        let queries = (wide(&self.turn(self.pad(q)?)?.transpose(1, 2)?.contiguous()?)? * f64::from(shape.scale))?;
        let keys = wide(&repeat(&self.turn(self.pad(k)?)?.transpose(1, 2)?.contiguous()?, shape)?)?;
        let values = repeat(&self.pad(v)?.transpose(1, 2)?.contiguous()?, shape)?;
        let mut mixed = Vec::new();
        for start in (0..self.longest).step_by(self.block) {
            let mask = self.mask(visibility, start, &queries)?;
            let (rows, seen) = mask.dims2()?;
            let seen_keys = keys.narrow(2, 0, seen)?.contiguous()?;
            let mut scores = queries.narrow(2, start, rows)?.contiguous()?.matmul(&seen_keys.t()?)?;
            if let Some(cap) = shape.soft_cap {
                scores = soft_cap(&scores, cap.into())?;
            }
            scores = scores.broadcast_add(&mask)?;
            let weights = softmax(&scores, D::Minus1)?.to_dtype(values.dtype())?;
            mixed.push(weights.matmul(&values.narrow(2, 0, seen)?.contiguous()?)?);
        }
        Tensor::cat(&mixed, 2)?.transpose(1, 2)?.reshape(((), shape.out_width()))
    }

    /// The mask for the block of queries from `start`, `[block, keys up to its last query]`: 0 for a visible key,
    /// negative infinity for any other.
    fn mask(&self, visibility: Visibility, start: usize, like: &Tensor) -> Result<Tensor> {
        let known = self.masks.borrow().iter().find(|(seen, first, _)| (*seen, *first) == (visibility, start)).cloned();
        if let Some((_, _, mask)) = known {
            return Ok(mask);
        }
        let end = (start + self.block).min(self.longest);
        let row = |i: usize| {
            let seen = visibility.first_key(i)..=i;
            (0..end).map(move |j| if seen.contains(&j) { 0.0 } else { f32::NEG_INFINITY })
        };
        let mask: Vec<f32> = (start..end).flat_map(row).collect();
        let mask = Tensor::from_vec(mask, (end - start, end), like.device())?.to_dtype(like.dtype())?;
        if self.longest <= LONGEST_SHARED_MASK {
            self.masks.borrow_mut().push((visibility, start, mask.clone()));
        }
        Ok(mask)
    }

    /// `[tokens, heads, dim]` to `[count, longest, heads, dim]`.
    fn pad(&self, x: &Tensor) -> Result<Tensor> {
        let (_, heads, dim) = x.dims3()?;
        x.contiguous()?.index_select(&self.places, 0)?.reshape((self.count, self.longest, heads, dim))
    }

    fn turn(&self, x: Tensor) -> Result<Tensor> {
        let Some((cos, sin)) = &self.rotary else { return Ok(x) };
        let wide_x = wide(&x)?;
        let (cos, sin) = (cos.to_dtype(wide_x.dtype())?, sin.to_dtype(wide_x.dtype())?);
        rotate_tensor(&wide_x, &cos, &sin)?.to_dtype(x.dtype())
    }
}

/// Repeats every key and value head of `[count, kv_heads, longest, dim]` once per query head that shares it.
fn repeat(x: &Tensor, shape: AttentionShape) -> Result<Tensor> {
    let shared = shape.heads / shape.kv_heads;
    if shared == 1 {
        return Ok(x.clone());
    }
    let (b, h, t, d) = x.dims4()?;
    x.unsqueeze(2)?.expand((b, h, shared, t, d))?.contiguous()?.reshape((b, h * shared, t, d))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::models::ops::Multiply;
    use crate::models::rotary::Rotary;

    /// Blocks of any size, down to a single query, give the results of the fused kernel.
    #[test]
    fn blocks_of_queries_change_nothing() {
        let shape = AttentionShape { heads: 4, kv_heads: 2, head_dim: 6, scale: 0.4, soft_cap: Some(3.0) };
        let lengths = [1usize, 7, 30, 33, 2, 64];
        let sequences: Vec<Vec<u32>> = lengths.iter().map(|&length| vec![0; length]).collect();
        let batch = PackedBatch::new(&sequences.iter().map(Vec::as_slice).collect::<Vec<_>>());
        let tokens = batch.ids.len();
        let values =
            (0..tokens * shape.qkv_width()).map(|i| ((i * 7919 + i / 13) % 1009) as f32 / 504.0 - 1.0).collect();
        let qkv = Tensor::from_vec(values, (tokens, shape.qkv_width()), &Device::Cpu).unwrap();
        let table = RotaryTable::new(&Rotary::plain(4, 100.0));
        for visibility in [Visibility::Past, Visibility::Window(5)] {
            let fused =
                AttentionPlan::new(Form::Fused(Multiply::Gemm), shape, &batch, Some(&table), &Device::Cpu).unwrap();
            let want: Vec<f32> =
                fused.forward(&qkv, None, visibility).unwrap().flatten_all().unwrap().to_vec1().unwrap();
            for most_scores in [1, 500, 5_000, MOST_SCORES] {
                let mut plan = AttentionPlan::new(Form::Plain, shape, &batch, Some(&table), &Device::Cpu).unwrap();
                let rotary = plan.rotary.clone();
                let groups = Groups::new(&batch, rotary.as_deref(), shape.heads, most_scores, &Device::Cpu).unwrap();
                plan.groups = Some(groups);
                let got: Vec<f32> =
                    plan.forward(&qkv, None, visibility).unwrap().flatten_all().unwrap().to_vec1().unwrap();
                assert_eq!(got.len(), want.len());
                // Means of values up to 1 with f32 weights, summed in a different order.
                let worst = got.iter().zip(&want).fold(0f32, |worst, (a, b)| worst.max((a - b).abs()));
                assert!(worst < 2e-6, "{visibility:?}, {most_scores} scores: {worst}");
            }
        }
    }
}
