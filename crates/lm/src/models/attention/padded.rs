//! Attention in candle's operations, over sequences that are padded to the same length.

use crate::models::batch::{PackedBatch, similar_lengths};
use crate::models::cuda::upload;
use crate::models::ops::{product, soft_cap, wide};
use crate::models::rotary::{RotaryRows, rotate_tensor};
use candle_core::{D, Device, Result, Tensor};
use candle_nn::ops::softmax;
use kernels::attention::{AttentionShape, Visibility};
use std::cell::RefCell;
use std::ops::Range;

/// The maximum number of attention scores that the plain form holds at once, 1 GiB of f32; several copies exist at a
/// time. If there would be more, sequences are processed one after another, and the queries of one sequence block by
/// block.
pub const MOST_SCORES: usize = 1 << 28;

/// Masks of sequences up to this length are shared between layers, at most about 64 MiB for each kind of layer; masks
/// of longer sequences are rebuilt.
const LONGEST_SHARED_MASK: usize = 4096;

/// The plain form pads around the attention and nowhere else, and only among sequences of similar length.
pub struct Groups {
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

impl Groups {
    /// Groups the sequences of a batch; queries and keys are rotated if there is a table of positions.
    pub fn new(
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
                places: upload(&places, device)?,
                rotary: rotary.map(|rows| rows.tensors(longest, device)).transpose()?,
                block: (most_scores / per_query.max(1)).clamp(1, longest.max(1)),
                masks: RefCell::default(),
            });
        }
        Ok(Self { groups, rows: upload(&rows, device)? })
    }

    /// Maps queries, keys and values `[tokens, heads, head_dim]` to `[tokens, heads * head_dim]`.
    pub fn attend(&self, parts: [&Tensor; 3], shape: AttentionShape, visibility: Visibility) -> Result<Tensor> {
        let mixed = self.groups.iter().map(|group| group.attend(parts, shape, visibility));
        Tensor::cat(&mixed.collect::<Result<Vec<_>>>()?, 0)?.index_select(&self.rows, 0)
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
            let scores = queries.narrow(2, start, rows)?.contiguous()?;
            let mut scores = product(&scores, &seen_keys, true)?;
            if let Some(cap) = shape.soft_cap {
                scores = soft_cap(&scores, cap.into())?;
            }
            scores = scores.broadcast_add(&mask)?;
            let weights = softmax(&scores, D::Minus1)?.to_dtype(values.dtype())?;
            mixed.push(product(&weights, &values.narrow(2, 0, seen)?.contiguous()?, false)?);
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
        let mask = mask(visibility, start..(start + self.block).min(self.longest), like)?;
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

/// A mask `[queries, keys up to the last of them]`, built on the device: in a long text it has more elements than all
/// else that is copied there.
fn mask(visibility: Visibility, queries: Range<usize>, like: &Tensor) -> Result<Tensor> {
    let (shape, device) = ((queries.len(), queries.end), like.device());
    let column = |keys: Vec<u32>| upload(&keys, device)?.unsqueeze(1);
    let first = column(queries.clone().map(|query| visibility.first_key(query) as u32).collect())?;
    let last = column(queries.clone().map(|query| query as u32).collect())?;
    let keys = Tensor::arange(0, queries.end as u32, device)?.unsqueeze(0)?;
    let is_seen = (keys.broadcast_ge(&first)? * keys.broadcast_le(&last)?)?;
    let hidden = Tensor::full(f32::NEG_INFINITY, shape, device)?;
    is_seen.where_cond(&hidden.zeros_like()?, &hidden)?.to_dtype(like.dtype())
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
