//! Causal self-attention of one layer, in both forms.

use super::batch::PackedBatch;
use super::kernels::attention::AttentionShape;
use super::ops::{Form, fused_attention};
use super::rotary::{RotaryTable, rotate_tensor};
use candle_core::{D, DType, Device, Result, Tensor};

/// What every layer of one forward pass shares.
pub struct AttentionPlan<'a> {
    shape: AttentionShape,
    batch: &'a PackedBatch,
    rotary: &'a RotaryTable,
    /// Only the plain form pads.
    padded: Option<Padded>,
}

/// The plain form pads around the attention and nowhere else.
struct Padded {
    /// Row of the packed batch for each place of `[sequences, longest]`; padding points at row 0.
    places: Tensor,
    /// Place for each row of the packed batch.
    rows: Tensor,
    /// `[longest, longest]`: 0 where a key is visible, minus infinity where it lies in the future.
    mask: Tensor,
    cos: Tensor,
    sin: Tensor,
}

impl<'a> AttentionPlan<'a> {
    /// Prepares what the chosen form needs for this batch.
    pub fn new(
        form: Form,
        shape: AttentionShape,
        batch: &'a PackedBatch,
        rotary: &'a RotaryTable,
        (dtype, device): (DType, &Device),
    ) -> Result<Self> {
        let padded = match form {
            Form::Fused => None,
            Form::Plain => Some(Padded::new(batch, rotary, dtype, device)?),
        };
        Ok(Self { shape, batch, rotary, padded })
    }

    /// qkv `[tokens, qkv_width]` to `[tokens, heads * head_dim]`.
    pub fn forward(&self, qkv: &Tensor) -> Result<Tensor> {
        match &self.padded {
            Some(padded) => self.plain(qkv, padded),
            None => fused_attention(qkv, &self.batch.sequences, self.shape, self.rotary),
        }
    }

    fn plain(&self, qkv: &Tensor, padded: &Padded) -> Result<Tensor> {
        let AttentionShape { heads, kv_heads, head_dim, scale } = self.shape;
        let part = |first: usize, count: usize| {
            let columns = qkv.narrow(D::Minus1, first * head_dim, count * head_dim)?;
            columns.reshape(((), count, head_dim))
        };
        let turned = |x: Tensor| rotate_tensor(&x, &padded.cos, &padded.sin);
        let queries = self.pad(&turned(part(0, heads)?)?, padded)?;
        let keys = self.repeat(&self.pad(&turned(part(heads, kv_heads)?)?, padded)?)?;
        let values = self.repeat(&self.pad(&part(heads + kv_heads, kv_heads)?, padded)?)?;
        let scores = (queries.matmul(&keys.t()?)? * f64::from(scale))?.broadcast_add(&padded.mask)?;
        let mixed = candle_nn::ops::softmax(&scores, D::Minus1)?.matmul(&values)?;
        mixed.transpose(1, 2)?.reshape(((), heads * head_dim))?.index_select(&padded.rows, 0)
    }

    /// `[tokens, h, d]` to `[sequences, h, longest, d]`.
    fn pad(&self, x: &Tensor, padded: &Padded) -> Result<Tensor> {
        let (_, heads, dim) = x.dims3()?;
        let places = x.contiguous()?.index_select(&padded.places, 0)?;
        places.reshape((self.batch.sequences.len(), (), heads, dim))?.transpose(1, 2)?.contiguous()
    }

    /// Every key and value head as often as query heads share it.
    fn repeat(&self, x: &Tensor) -> Result<Tensor> {
        let shared = self.shape.heads / self.shape.kv_heads;
        if shared == 1 {
            return Ok(x.clone());
        }
        let (b, h, t, d) = x.dims4()?;
        x.unsqueeze(2)?.expand((b, h, shared, t, d))?.contiguous()?.reshape((b, h * shared, t, d))
    }
}

impl Padded {
    fn new(batch: &PackedBatch, rotary: &RotaryTable, dtype: DType, device: &Device) -> Result<Self> {
        let longest = batch.longest();
        let mut places = vec![0u32; batch.sequences.len() * longest];
        let mut rows = vec![0u32; batch.ids.len()];
        for (i, sequence) in batch.sequences.iter().enumerate() {
            for (t, row) in sequence.clone().enumerate() {
                places[i * longest + t] = row as u32;
                rows[row] = (i * longest + t) as u32;
            }
        }
        let hidden = |i: usize| move |j: usize| if j > i { f32::NEG_INFINITY } else { 0.0 };
        let mask: Vec<f32> = (0..longest).flat_map(|i| (0..longest).map(hidden(i))).collect();
        let (cos, sin) = rotary.select(&batch.positions(), device)?;
        Ok(Self {
            places: Tensor::from_vec(places, batch.sequences.len() * longest, device)?,
            rows: Tensor::from_vec(rows, batch.ids.len(), device)?,
            mask: Tensor::from_vec(mask, (longest, longest), device)?.to_dtype(dtype)?,
            cos: cos.to_dtype(dtype)?,
            sin: sin.to_dtype(dtype)?,
        })
    }
}
