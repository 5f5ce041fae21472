//! Rotary positions (Su et al. 2021): the first `dims` elements of a head are turned by angles that grow with position.

use candle_core::{D, Device, Result, Tensor};

/// What a configuration says of rotary positions; the halves form (element i is paired with element i + dims / 2).
#[derive(Clone, Debug, PartialEq)]
pub struct Rotary {
    /// Elements of a head that are turned; even, at most the head's size.
    pub dims: usize,
    /// Base of the wavelengths.
    pub theta: f64,
}

/// Cosines and sines for every position up to a context length.
pub struct RotaryTable {
    half: usize,
    /// `[positions, half]`
    cos: Vec<f32>,
    sin: Vec<f32>,
}

impl RotaryTable {
    /// Angles are formed as the reference does: inverse frequencies and their product with the position in f32.
    pub fn new(rotary: &Rotary, positions: usize) -> Self {
        let half = rotary.dims / 2;
        let inverse_frequency = |i: usize| (1.0 / rotary.theta.powf((2 * i) as f64 / rotary.dims as f64)) as f32;
        let inverse: Vec<f32> = (0..half).map(inverse_frequency).collect();
        let angles = (0..positions).flat_map(|p| inverse.iter().map(move |f| f64::from(p as f32 * f)));
        let (sin, cos) = angles.map(|a| (a.sin() as f32, a.cos() as f32)).unzip();
        Self { half, cos, sin }
    }

    /// Turns one head's row in place.
    #[inline]
    pub fn rotate(&self, row: &mut [f32], position: usize) {
        let at = position * self.half..(position + 1) * self.half;
        let (low, high) = row[..2 * self.half].split_at_mut(self.half);
        for (((a, b), &c), &s) in low.iter_mut().zip(high).zip(&self.cos[at.clone()]).zip(&self.sin[at]) {
            (*a, *b) = (*a * c - *b * s, *b * c + *a * s);
        }
    }

    /// Cosines and sines `[tokens, 1, half]` of the given positions as tensors.
    pub fn select(&self, positions: &[usize], device: &Device) -> Result<(Tensor, Tensor)> {
        let rows = |table: &[f32]| {
            let picked: Vec<f32> =
                positions.iter().flat_map(|p| &table[p * self.half..(p + 1) * self.half]).copied().collect();
            Tensor::from_vec(picked, (positions.len(), 1, self.half), device)
        };
        Ok((rows(&self.cos)?, rows(&self.sin)?))
    }
}

/// The same rotation in differentiable operations, for x `[tokens, heads, head_dim]` and tables of [`RotaryTable::select`].
pub fn rotate_tensor(x: &Tensor, cos: &Tensor, sin: &Tensor) -> Result<Tensor> {
    let half = cos.dim(D::Minus1)?;
    let rest = x.dim(D::Minus1)? - 2 * half;
    let (a, b) = (x.narrow(D::Minus1, 0, half)?, x.narrow(D::Minus1, half, half)?);
    let low = (a.broadcast_mul(cos)? - b.broadcast_mul(sin)?)?;
    let high = (b.broadcast_mul(cos)? + a.broadcast_mul(sin)?)?;
    if rest == 0 {
        return Tensor::cat(&[low, high], D::Minus1);
    }
    Tensor::cat(&[low, high, x.narrow(D::Minus1, 2 * half, rest)?], D::Minus1)
}
