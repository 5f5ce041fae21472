//! Rotary positions (Su et al. 2021): the first `dims` elements of a head are rotated by angles that grow with the
//! position. Element i is paired with element i + dims / 2; families that pair neighbours are permuted into this order
//! when they are loaded.

use candle_core::{D, Device, Result, Tensor};
use kernels::rotation::Angles;
use std::sync::{Arc, OnceLock, PoisonError, RwLock};

/// The rotary positions of a configuration.
#[derive(Clone, Debug, PartialEq)]
pub struct Rotary {
    /// Elements of a head that are rotated; even, and at most the size of the head.
    pub dims: usize,
    /// Base of the wavelengths.
    pub theta: f64,
    pub scaling: RotaryScaling,
}

/// Scaling of wavelengths for a longer context.
#[derive(Clone, Debug, PartialEq)]
pub enum RotaryScaling {
    None,
    /// All by the same factor (Chen et al. 2023).
    Linear {
        factor: f64,
    },
    /// Those longer than the original context allows, with a smooth transition (Llama 3.1, Grattafiori et al. 2024).
    Llama3 {
        factor: f64,
        low_frequency: f64,
        high_frequency: f64,
        original_context: f64,
    },
    /// Each frequency is divided by a number of its own: what GGUF files have for Llama 3.1.
    Divided(Vec<f32>),
}

impl Rotary {
    /// Unscaled positions over the first `dims` elements.
    pub fn plain(dims: usize, theta: f64) -> Self {
        Self { dims, theta, scaling: RotaryScaling::None }
    }

    /// The angle per position for each pair, `[dims / 2]`; in f32, as the reference computes them.
    fn frequencies(&self) -> Vec<f32> {
        let frequency = |i: usize| (1.0 / self.theta.powf((2 * i) as f64 / self.dims as f64)) as f32;
        (0..self.dims / 2).map(|i| self.scaling.apply(i, frequency(i))).collect()
    }
}

impl RotaryScaling {
    /// The frequency of a pair of elements.
    fn apply(&self, pair: usize, frequency: f32) -> f32 {
        match *self {
            Self::None => frequency,
            Self::Linear { factor } => frequency / factor as f32,
            Self::Divided(ref divisors) => divisors.get(pair).map_or(frequency, |divisor| frequency / divisor),
            Self::Llama3 { factor, low_frequency, high_frequency, original_context } => {
                let wavelength = 2.0 * std::f64::consts::PI / f64::from(frequency);
                let scaled = f64::from(frequency) / factor;
                if wavelength < original_context / high_frequency {
                    frequency
                } else if wavelength > original_context / low_frequency {
                    scaled as f32
                } else {
                    let kept = (original_context / wavelength - low_frequency) / (high_frequency - low_frequency);
                    ((1.0 - kept) * scaled + kept * f64::from(frequency)) as f32
                }
            }
        }
    }
}

/// Cosines and sines for as many positions as have been requested so far: a context may be far longer than any text.
pub struct RotaryTable {
    frequencies: Vec<f32>,
    rows: RwLock<Arc<RotaryRows>>,
}

/// The angles of the first positions, and their tensors.
#[derive(Default)]
pub struct RotaryRows {
    pub angles: Angles,
    /// Cosines and sines on the device that asked first.
    on_device: OnceLock<[Tensor; 2]>,
}

impl RotaryTable {
    pub fn new(rotary: &Rotary) -> Self {
        Self { frequencies: rotary.frequencies(), rows: RwLock::default() }
    }

    /// A table with at least the first `positions` rows.
    pub fn rows(&self, positions: usize) -> Arc<RotaryRows> {
        let known = Arc::clone(&self.rows.read().unwrap_or_else(PoisonError::into_inner));
        if known.angles.positions() >= positions {
            return known;
        }
        let angles = Angles::new(&self.frequencies, positions.next_power_of_two());
        let rows = Arc::new(RotaryRows { angles, on_device: OnceLock::new() });
        *self.rows.write().unwrap_or_else(PoisonError::into_inner) = Arc::clone(&rows);
        rows
    }
}

impl RotaryRows {
    /// Cosines and sines `[positions, 1, half]` of the first positions as tensors.
    pub fn tensors(&self, positions: usize, device: &Device) -> Result<(Tensor, Tensor)> {
        let tables = match self.on_device.get().filter(|[cos, _]| cos.device().same_device(device)) {
            Some(tables) => tables.clone(),
            None => {
                let shape = (self.angles.positions(), 1, self.angles.half());
                let table = |values: &[f32]| Tensor::from_slice(values, shape, device);
                let tables = [table(self.angles.cos())?, table(self.angles.sin())?];
                self.on_device.get_or_init(|| tables.clone());
                tables
            }
        };
        let [cos, sin] = tables.map(|table| table.narrow(0, 0, positions));
        Ok((cos?, sin?))
    }
}

/// The same rotation in differentiable operations, for x `[.., head_dim]` and tables from [`RotaryRows::tensors`].
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
