//! Training with AdamW on the decoder's differentiable form.

use crate::data::Text;
use anyhow::Result;
use candle_core::{Device, Tensor, Var};
use candle_nn::{AdamW, Optimizer, ParamsAdamW, loss::cross_entropy};
use lm::models::arch::Arch;
use lm::models::batch::PackedBatch;
use lm::models::decoder::Decoder;
use lm::models::ops::Form;
use rand::seq::SliceRandom;
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use std::collections::BTreeMap;
use std::f64::consts::PI;

/// Texts per step.
const BATCH: usize = 16;
/// Gradients with a norm above this are scaled down to it.
const CLIP: f64 = 1.0;

/// Linear warm-up to the peak learning rate, then cosine decay to a tenth of it.
pub struct Schedule {
    pub epochs: usize,
    /// Number of warm-up steps.
    pub warm_up: usize,
    pub peak: f64,
}

impl Schedule {
    fn rate(&self, step: usize, steps: usize) -> f64 {
        if step < self.warm_up {
            return self.peak * (step + 1) as f64 / self.warm_up as f64;
        }
        let along = (step - self.warm_up) as f64 / (steps - self.warm_up).max(1) as f64;
        self.peak * (0.1 + 0.45 * (1.0 + (PI * along).cos()))
    }
}

/// A model in training.
pub struct Trainer {
    pub arch: Arch,
    /// Parameters by their canonical names.
    pub parameters: BTreeMap<String, Var>,
    decoder: Decoder,
    schedule: Schedule,
    rng: ChaCha8Rng,
}

impl Trainer {
    /// Creates a model with seeded initial weights: normal with standard deviation 0.02, and less for the projections
    /// that write to the residual stream.
    pub fn new(arch: Arch, seed: u64, schedule: Schedule) -> Result<Self> {
        let mut rng = ChaCha8Rng::seed_from_u64(seed);
        let mut parameters = BTreeMap::new();
        let narrow = 0.02 / (2.0 * arch.sizes.layers as f64).sqrt();
        let mut source = |name: &str, shape: &[usize]| {
            let deviation = if name.contains("_out.") || name.contains("_down.") { narrow } else { 0.02 };
            let mut value = || match name {
                _ if name.contains("norm.weight") => 1.0,
                _ if name.ends_with("bias") => 0.0,
                _ => (deviation * normal(&mut rng)) as f32,
            };
            let values: Vec<f32> = (0..shape.iter().product()).map(|_| value()).collect();
            let var = Var::from_tensor(&Tensor::from_vec(values, shape, &Device::Cpu)?)?;
            let tensor = var.as_tensor().clone();
            parameters.insert(name.to_owned(), var);
            Ok(tensor)
        };
        let decoder = Decoder::new(arch.clone(), Form::Plain, &Device::Cpu, &mut source)?;
        Ok(Self { arch, parameters, decoder, schedule, rng })
    }

    /// Trains for the epochs of the schedule; `texts` returns the texts of an epoch.
    pub fn train<'a>(&mut self, texts: impl Fn(usize) -> Vec<&'a [Text]>) -> Result<()> {
        let vars: Vec<Var> = self.parameters.values().cloned().collect();
        let mut optimizer = AdamW::new(vars, ParamsAdamW { beta2: 0.95, weight_decay: 0.01, ..Default::default() })?;
        let epochs: Vec<Vec<&Text>> =
            (0..self.schedule.epochs).map(|epoch| texts(epoch).into_iter().flatten().collect()).collect();
        let steps = epochs.iter().map(|e| e.len().div_ceil(BATCH)).sum();
        let (mut step, start) = (0, std::time::Instant::now());
        for (epoch, mut order) in epochs.into_iter().enumerate() {
            order.shuffle(&mut self.rng);
            let mut total = 0.0;
            for batch in order.chunks(BATCH) {
                optimizer.set_learning_rate(self.schedule.rate(step, steps));
                total += self.step(&mut optimizer, batch)? * batch.len() as f64;
                step += 1;
            }
            let seconds = start.elapsed().as_secs();
            println!("epoch {}: loss {:.3} nats, {seconds} s", epoch + 1, total / order.len() as f64);
        }
        Ok(())
    }

    /// Runs one step and returns the mean loss over the tokens of the batch.
    fn step(&self, optimizer: &mut AdamW, texts: &[&Text]) -> Result<f64> {
        let sequences: Vec<&[u32]> = texts.iter().map(|t| t.ids.as_slice()).collect();
        let batch = PackedBatch::new(&sequences);
        let (rows, targets) = batch.scored();
        let hidden = self.decoder.hidden(&batch, None)?.index_select(&Tensor::new(rows, &Device::Cpu)?, 0)?;
        let loss = cross_entropy(&self.decoder.logits(&hidden)?, &Tensor::new(targets, &Device::Cpu)?)?;
        let mut gradients = loss.backward()?;
        let mut squares = 0.0;
        for var in self.parameters.values() {
            let gradient = gradients.get(var).ok_or_else(|| anyhow::anyhow!("a parameter has no gradient"))?;
            squares += f64::from(gradient.sqr()?.sum_all()?.to_scalar::<f32>()?);
        }
        if squares.sqrt() > CLIP {
            for var in self.parameters.values() {
                if let Some(gradient) = gradients.remove(var) {
                    gradients.insert(var, (gradient * (CLIP / squares.sqrt()))?);
                }
            }
        }
        optimizer.step(&gradients)?;
        Ok(f64::from(loss.to_scalar::<f32>()?))
    }
}

/// A standard normal number (Box-Muller transform).
fn normal(rng: &mut ChaCha8Rng) -> f64 {
    let (u, v): (f64, f64) = (rng.random(), rng.random());
    (-2.0 * (1.0 - u).ln()).sqrt() * (2.0 * PI * v).cos()
}
