//! Causal self-attention of a forward pass, in both forms.

use super::batch::PackedBatch;
use super::kernels::attention::{AttentionShape, Visibility};
use super::ops::{Form, QueryKeyNorms, fused_attention, soft_cap, wide};
use super::rotary::{RotaryRows, RotaryTable, rotate_tensor};
use candle_core::{D, Device, Result, Tensor};
use candle_nn::ops::softmax;
use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;

/// The most scores that the plain form holds at once, 1 GiB of f32: sequences that would need more go one after another.
pub const MOST_SCORES: usize = 1 << 28;

/// What every layer of one forward pass shares.
pub struct AttentionPlan<'a> {
    shape: AttentionShape,
    batch: &'a PackedBatch,
    rotary: Option<Arc<RotaryRows>>,
    /// Only the plain form pads.
    groups: Option<Groups>,
}

/// The plain form pads around the attention and nowhere else, and only among sequences of about the same length.
struct Groups {
    groups: Vec<Group>,
    /// For each row of the packed batch its place behind one another in all groups.
    rows: Tensor,
}

/// Sequences padded to the longest of them.
struct Group {
    count: usize,
    longest: usize,
    /// Row of the packed batch for each place of `[count, longest]`; padding points at row 0.
    places: Tensor,
    /// Cosines and sines `[longest, 1, half]`.
    rotary: Option<(Tensor, Tensor)>,
}

impl<'a> AttentionPlan<'a> {
    /// Prepares what the chosen form needs for this batch.
    pub fn new(
        form: Form,
        shape: AttentionShape,
        batch: &'a PackedBatch,
        rotary: Option<&RotaryTable>,
        device: &Device,
    ) -> Result<Self> {
        let rotary = rotary.map(|table| table.rows(batch.longest()));
        let groups = match form {
            Form::Fused => None,
            Form::Plain => Some(Groups::new(batch, rotary.as_deref(), shape.heads, device)?),
        };
        Ok(Self { shape, batch, rotary, groups })
    }

    /// qkv `[tokens, qkv_width]` to `[tokens, heads * head_dim]`; the fused form may overwrite qkv.
    pub fn forward(&self, qkv: &Tensor, norms: Option<&QueryKeyNorms>, visibility: Visibility) -> Result<Tensor> {
        let Some(groups) = &self.groups else {
            norms.map_or(Ok(()), |norms| norms.fused(qkv, self.shape))?;
            return fused_attention(qkv, &self.batch.sequences, self.shape, visibility, self.rotary.as_deref());
        };
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
    fn new(batch: &PackedBatch, rotary: Option<&RotaryRows>, heads: usize, device: &Device) -> Result<Self> {
        let mut rows = vec![0u32; batch.ids.len()];
        let (mut groups, mut before) = (Vec::new(), 0);
        for sequences in similar(&batch.sequences, heads) {
            let longest = sequences.iter().map(Range::len).max().unwrap_or(0);
            let mut places = vec![0u32; sequences.len() * longest];
            for (i, sequence) in sequences.iter().enumerate() {
                for (t, row) in sequence.clone().enumerate() {
                    places[i * longest + t] = row as u32;
                    rows[row] = (before + i * longest + t) as u32;
                }
            }
            before += places.len();
            let turns = rotary.map(|rows| rows.tensors(longest, device)).transpose()?;
            groups.push(Group { count: sequences.len(), longest, places: Tensor::new(places, device)?, rotary: turns });
        }
        Ok(Self { groups, rows: Tensor::new(rows, device)? })
    }
}

/// Sequences whose lengths lie between the same powers of two, so that padding at most doubles them; and of those no
/// more together than [`MOST_SCORES`] allows.
fn similar(sequences: &[Range<usize>], heads: usize) -> Vec<Vec<Range<usize>>> {
    let mut by_size: BTreeMap<usize, Vec<Range<usize>>> = BTreeMap::new();
    for sequence in sequences.iter().filter(|sequence| !sequence.is_empty()) {
        by_size.entry(sequence.len().next_power_of_two()).or_default().push(sequence.clone());
    }
    let parts = by_size.into_iter().flat_map(|(size, sequences)| {
        let together = (MOST_SCORES / heads.saturating_mul(size).saturating_mul(size).max(1)).max(1);
        sequences.chunks(together).map(<[_]>::to_vec).collect::<Vec<_>>()
    });
    parts.collect()
}

impl Group {
    /// Queries, keys and values `[tokens, heads, head_dim]` to `[count * longest, heads * head_dim]`.
    fn attend(&self, [q, k, v]: [&Tensor; 3], shape: AttentionShape, visibility: Visibility) -> Result<Tensor> {
        let queries = self.turn(self.pad(q)?)?.transpose(1, 2)?.contiguous()?;
        let keys = repeat(&self.turn(self.pad(k)?)?.transpose(1, 2)?.contiguous()?, shape)?;
        let values = repeat(&self.pad(v)?.transpose(1, 2)?.contiguous()?, shape)?;
        let scores = (wide(&queries.matmul(&keys.t()?)?)? * f64::from(shape.scale))?;
        let scores = shape.soft_cap.map_or(Ok(scores.clone()), |cap| soft_cap(&scores, cap.into()))?;
        let scores = scores.broadcast_add(&self.mask(visibility, &scores)?)?;
        let mixed = softmax(&scores, D::Minus1)?.to_dtype(values.dtype())?.matmul(&values)?;
        mixed.transpose(1, 2)?.reshape(((), shape.out_width()))
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

    /// `[longest, longest]`: 0 where a key is visible, minus infinity where it is not.
    fn mask(&self, visibility: Visibility, scores: &Tensor) -> Result<Tensor> {
        let row = |i: usize| {
            let seen = visibility.first_key(i)..=i;
            (0..self.longest).map(move |j| if seen.contains(&j) { 0.0 } else { f32::NEG_INFINITY })
        };
        let mask: Vec<f32> = (0..self.longest).flat_map(row).collect();
        Tensor::from_vec(mask, (self.longest, self.longest), scores.device())?.to_dtype(scores.dtype())
    }
}

/// `[count, kv_heads, longest, dim]` with every key and value head as often as query heads share it.
fn repeat(x: &Tensor, shape: AttentionShape) -> Result<Tensor> {
    let shared = shape.heads / shape.kv_heads;
    if shared == 1 {
        return Ok(x.clone());
    }
    let (b, h, t, d) = x.dims4()?;
    x.unsqueeze(2)?.expand((b, h, shared, t, d))?.contiguous()?.reshape((b, h * shared, t, d))
}
