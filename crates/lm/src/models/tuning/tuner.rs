//! Tuning step by step.

use super::loss::loss_gradient;
use super::settings::{OptimizerSettings, TuningSettings, batches, learning_rate, parts};
use super::tuned_module::{TunedModule, adaptation};
use crate::models::batch::PackedBatch;
use crate::models::checkpoint::Checkpoint;
use crate::models::decoder::Decoder;
use crate::models::error::ModelError;
use crate::models::families::Network;
use crate::models::lora::{self, Dropout, PeftConfig, TargetModule, default_targets, select, target_modules};
use crate::models::storage::{Layout, Storage};
use candle_core::backprop::GradStore;
use candle_core::{Device, Tensor, Var};
use candle_nn::optim::{AdamW, Optimizer, ParamsAdamW};
use mia::random::stream;
use std::ops::ControlFlow;

/// Tokens that run at once: a longer batch is split and its gradients are added, so that a step's memory, and the time for
/// which the processor is taken, have a bound.
pub(super) const MOST_TOKENS: usize = 2048;

/// Why an adapter cannot be tuned.
#[derive(Debug, Clone, thiserror::Error)]
pub enum TuningError {
    /// The model takes no adapters, or not this one.
    #[error("{0}")]
    Unsupported(String),
    /// There are too few texts for a single step.
    #[error("{texts} texts do not fill one batch of {batch_size}")]
    TooFew { texts: usize, batch_size: usize },
    /// The loss, the gradient or the result of a step is not finite.
    #[error("{what} at step {step} of {steps} is not finite; a smaller `learning_rate` may help")]
    NotFinite { what: &'static str, step: usize, steps: usize },
    /// Whoever follows it has ended it.
    #[error("the tuning was stopped")]
    Stopped,
    /// The model could not be loaded, or its pass failed.
    #[error(transparent)]
    Model(#[from] ModelError),
}

/// Outcome of one step.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct StepReport {
    /// Counted from 1.
    pub step: usize,
    /// Mean cross-entropy of the scored tokens, before the step.
    pub loss: f64,
    pub learning_rate: f64,
    /// Norm of the gradient before it was clipped.
    pub gradient_norm: f64,
    /// Tokens that ran.
    pub tokens: usize,
}

/// An adapter while it is tuned.
pub struct Tuner {
    decoder: Decoder,
    storage: Storage,
    config: PeftConfig,
    modules: Vec<TunedModule>,
    optimizer: AdamW,
    settings: OptimizerSettings,
    dropout: Option<Dropout>,
    texts: Vec<Vec<u32>>,
    batches: Vec<Vec<usize>>,
    done: usize,
}

impl Tuner {
    /// Loads the base in differentiable operations and in f32, and prepares the first step.
    pub fn new(
        checkpoint: &Checkpoint,
        device: &Device,
        settings: &TuningSettings,
        texts: Vec<Vec<u32>>,
    ) -> Result<Self, TuningError> {
        let TuningSettings { lora, optimizer, seed, .. } = settings;
        let Network::Decoder(arch, storage) = &checkpoint.description.network else {
            let reason = format!("models of type `{}` have no default LoRA targets", checkpoint.model_type());
            return Err(TuningError::Unsupported(reason));
        };
        let available = target_modules(arch, storage, &checkpoint.weights);
        let names = lora.target_modules.clone().unwrap_or_else(|| default_targets(&available));
        let targets = select(&available, &names).map_err(TuningError::Unsupported)?;
        check_rank(lora.rank, &targets)?;
        let batches = batches(texts.len(), optimizer.batch_size, optimizer.epochs, *seed);
        if batches.is_empty() {
            return Err(TuningError::TooFew { texts: texts.len(), batch_size: optimizer.batch_size });
        }
        let modules = targets.into_iter().map(|target| TunedModule::new(target, lora.rank, *seed, device));
        let modules = modules.collect::<Result<Vec<_>, _>>()?;
        let variables: Vec<Var> = modules.iter().flat_map(|module| [module.down.clone(), module.up.clone()]).collect();
        let longest = optimizer.max_length.min(arch.sizes.context);
        let cut = |mut text: Vec<u32>| {
            text.truncate(longest);
            text
        };
        Ok(Self {
            decoder: checkpoint.differentiable(device)?,
            storage: *storage,
            config: config(settings, names),
            modules,
            optimizer: AdamW::new(variables, adam(optimizer)).map_err(ModelError::from)?,
            settings: optimizer.clone(),
            dropout: Dropout::new(lora.dropout, stream(*seed, "dropout")),
            texts: texts.into_iter().map(cut).collect(),
            batches,
            done: 0,
        })
    }

    pub fn steps(&self) -> usize {
        self.batches.len()
    }

    /// Makes the next step; `None` once all are made. `before_part` is called before each part of it, and may end it.
    pub fn step(
        &mut self,
        before_part: &mut dyn FnMut() -> ControlFlow<()>,
    ) -> Result<Option<StepReport>, TuningError> {
        let Some(batch) = self.batches.get(self.done) else { return Ok(None) };
        let texts: Vec<&[u32]> = batch.iter().map(|&index| self.texts[index].as_slice()).collect();
        let scored: usize = texts.iter().map(|text| text.len().saturating_sub(1)).sum();
        let mut sum = Gradients::default();
        for part in parts(&texts, MOST_TOKENS) {
            if before_part().is_break() {
                return Err(TuningError::Stopped);
            }
            // Its graph is not needed while the next part runs.
            sum.store = None;
            sum.add(self.gradients(&part, scored)?, &self.modules)?;
        }
        let (step, steps, loss) = (self.done + 1, self.steps(), sum.loss / scored.max(1) as f64);
        let norm = sum.norm()?;
        for (what, number) in [("the loss", loss), ("the gradient", norm)] {
            if !number.is_finite() {
                return Err(TuningError::NotFinite { what, step, steps });
            }
        }
        let rate = learning_rate(&self.settings, self.done, steps);
        self.optimizer.set_learning_rate(rate);
        if let Some(store) = sum.clipped(norm, self.settings.max_grad_norm, &self.modules)? {
            self.optimizer.step(&store).map_err(ModelError::from)?;
        }
        for module in &self.modules {
            if !module.is_finite().map_err(ModelError::from)? {
                return Err(TuningError::NotFinite { what: "the adapter", step, steps });
            }
        }
        self.done = step;
        let tokens = texts.iter().map(|text| text.len()).sum();
        Ok(Some(StepReport { step, loss, learning_rate: rate, gradient_norm: norm, tokens }))
    }

    /// The summed loss of some texts, and the gradients of their share in the mean over `scored` tokens.
    fn gradients(&self, texts: &[&[u32]], scored: usize) -> Result<(f64, Option<GradStore>), ModelError> {
        let batch = PackedBatch::new(texts);
        let (rows, targets) = batch.scored();
        if rows.is_empty() {
            return Ok((0.0, None));
        }
        let (arch, scale) = (self.decoder.arch(), self.config.scale());
        let adapter = adaptation(&self.modules, arch, &self.storage, scale, self.dropout.as_ref())?;
        let hidden = self.decoder.hidden(&batch, Some(&adapter))?;
        let hidden = hidden.index_select(&Tensor::new(rows, hidden.device())?, 0)?;
        let (loss, gradient) = loss_gradient(self.decoder.head(), &hidden, &targets, 1.0 / scored as f64)?;
        // The sum of h dL/dh with dL/dh fixed has the gradients of L itself.
        let gradients = hidden.mul(&gradient)?.sum_all()?.backward()?;
        Ok((loss, Some(gradients)))
    }

    /// The adapter's files as they are now: names and contents.
    pub fn files(&self) -> Result<[(&'static str, Vec<u8>); 2], ModelError> {
        let modules: Vec<_> = self
            .modules
            .iter()
            .map(|module| (&module.target, module.down.as_tensor(), module.up.as_tensor()))
            .collect();
        lora::save(&self.config, self.storage.layout == Layout::Transposed, &modules)
    }

    /// The gradients of the mean loss of some texts, by the names of PEFT's tensors, without a step.
    #[cfg(test)]
    pub(super) fn named_gradients(&self, texts: &[&[u32]]) -> (f64, Vec<(String, Tensor)>) {
        let scored = texts.iter().map(|text| text.len() - 1).sum();
        let (loss, gradients) = self.gradients(texts, scored).unwrap();
        let gradients = gradients.unwrap();
        let named = self.variables().into_iter().map(|(name, variable)| {
            let gradient = gradients.get(variable.as_tensor()).expect("a gradient").clone();
            (name, gradient)
        });
        (loss / scored as f64, named.collect())
    }

    /// The variables by the names of PEFT's tensors.
    #[cfg(test)]
    pub(super) fn variables(&self) -> Vec<(String, Var)> {
        let named = |module: &TunedModule| {
            let name = format!("base_model.model.{}", module.target.name());
            [(&module.down, "lora_A"), (&module.up, "lora_B")]
                .map(|(variable, kind)| (format!("{name}.{kind}.weight"), variable.clone()))
        };
        self.modules.iter().flat_map(named).collect()
    }
}

/// Gradients of the variables, summed over the parts of a batch.
#[derive(Default)]
struct Gradients {
    loss: f64,
    /// `[down, up]` of each module, none before the first part.
    sums: Vec<Tensor>,
    store: Option<GradStore>,
}

impl Gradients {
    fn add(&mut self, (loss, store): (f64, Option<GradStore>), modules: &[TunedModule]) -> Result<(), ModelError> {
        self.loss += loss;
        let Some(store) = store else { return Ok(()) };
        let variables = modules.iter().flat_map(|module| [&module.down, &module.up]);
        let gradients = variables.map(|variable| match store.get(variable) {
            Some(gradient) => Ok(gradient.clone()),
            None => Err(ModelError::Forward("a variable of the adapter has no gradient".into())),
        });
        let gradients = gradients.collect::<Result<Vec<_>, _>>()?;
        self.sums = match self.sums.as_slice() {
            [] => gradients,
            sums => sums.iter().zip(&gradients).map(|(sum, more)| sum + more).collect::<Result<_, _>>()?,
        };
        self.store = Some(store);
        Ok(())
    }

    /// The Euclidean norm of all gradients together.
    fn norm(&self) -> Result<f64, ModelError> {
        let mut squares = 0.0;
        for gradient in &self.sums {
            squares += f64::from(gradient.sqr()?.sum_all()?.to_scalar::<f32>()?);
        }
        Ok(squares.sqrt())
    }

    /// The gradients, scaled down to a norm of at most `most` as `clip_grad_norm_` of PyTorch does it.
    fn clipped(self, norm: f64, most: f64, modules: &[TunedModule]) -> Result<Option<GradStore>, ModelError> {
        let Some(mut store) = self.store else { return Ok(None) };
        let factor = (most / (norm + 1e-6)).min(1.0);
        let variables = modules.iter().flat_map(|module| [&module.down, &module.up]);
        for (variable, gradient) in variables.zip(self.sums) {
            store.insert(variable, (gradient * factor)?);
        }
        Ok(Some(store))
    }
}

/// Returns the configuration recorded in the adapter.
fn config(settings: &TuningSettings, target_modules: Vec<String>) -> PeftConfig {
    PeftConfig {
        rank: settings.lora.rank,
        alpha: settings.lora.alpha,
        dropout: settings.lora.dropout,
        target_modules,
        has_all_layers: true,
        rank_stabilized: false,
        base: Some(settings.base.clone()),
        revision: settings.revision.clone(),
    }
}

fn check_rank(rank: usize, targets: &[TargetModule]) -> Result<(), TuningError> {
    let dimension = |target: &TargetModule| target.inputs.min(target.rows.len());
    match targets.iter().find(|target| dimension(target) < rank) {
        Some(small) => {
            let (leaf, dimension) = (small.leaf(), dimension(small));
            Err(TuningError::Unsupported(format!("rank {rank} is above the dimension {dimension} of `{leaf}`")))
        }
        None => Ok(()),
    }
}

fn adam(settings: &OptimizerSettings) -> ParamsAdamW {
    ParamsAdamW {
        lr: settings.learning_rate,
        beta1: settings.beta1,
        beta2: settings.beta2,
        eps: settings.epsilon,
        weight_decay: settings.weight_decay,
    }
}
