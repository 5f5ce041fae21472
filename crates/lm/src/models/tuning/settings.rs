//! Settings of tuning, and the learning rate of each step.

use mia::random::{shuffle, stream};
use serde::{Deserialize, Serialize};
use smart_default::SmartDefault;
use std::f64::consts::PI;
use utoipa::ToSchema;

/// Everything about a tuning but the texts.
#[derive(Clone, Debug, PartialEq)]
pub struct TuningSettings {
    pub lora: LoraSettings,
    pub optimizer: OptimizerSettings,
    /// Seed of the order of the texts, the initial values and the dropped inputs.
    pub seed: u64,
    /// Base to be recorded in the adapter.
    pub base: String,
    /// The commit, branch or tag of the base.
    pub revision: Option<String>,
}

/// The shape of the adapter.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, SmartDefault, ToSchema)]
#[serde(default, deny_unknown_fields)]
pub struct LoraSettings {
    /// Rank r of every change.
    #[default(16)]
    #[schema(minimum = 1, maximum = 512)]
    pub rank: usize,
    /// Changes are scaled by `alpha / rank`.
    #[default(32.0)]
    pub alpha: f64,
    /// Share of the inputs of every change that is dropped at a step.
    #[default(0.05)]
    #[schema(minimum = 0, exclusive_maximum = 1)]
    pub dropout: f64,
    /// Modules to change, by the last parts of their names in transformers, such as `q_proj`; by default those that PEFT
    /// chooses for the family.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub target_modules: Option<Vec<String>>,
}

/// How the adapter is tuned: AdamW (Loshchilov and Hutter 2019) with a learning rate that rises from 0 over the warm-up steps
/// and falls back to 0 along half a cosine.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, SmartDefault, ToSchema)]
#[serde(default, deny_unknown_fields)]
pub struct OptimizerSettings {
    /// Peak learning rate.
    #[default(1e-3)]
    pub learning_rate: f64,
    /// Weight decay, decoupled from the gradient.
    #[default(5e-4)]
    pub weight_decay: f64,
    /// Decay of the mean of gradients.
    #[default(0.9)]
    pub beta1: f64,
    /// Decay of the mean of their squares.
    #[default(0.999)]
    pub beta2: f64,
    /// Added to the root of the mean of squares.
    #[default(1e-8)]
    pub epsilon: f64,
    /// Steps over which the learning rate rises.
    #[default(10)]
    pub warmup_steps: usize,
    /// Number of epochs.
    #[default(3)]
    #[schema(minimum = 1, maximum = 100)]
    pub epochs: usize,
    /// Texts of a step; those that do not fill a last one are left out of an epoch.
    #[default(8)]
    #[schema(minimum = 1, maximum = 1024)]
    pub batch_size: usize,
    /// Maximum number of tokens of a text; the rest is cut off.
    #[default(1024)]
    #[schema(minimum = 2)]
    pub max_length: usize,
    /// Norm that the gradient of a step is clipped to.
    #[default(1.0)]
    pub max_grad_norm: f64,
}

/// Computes the learning rate of a step, counted from 0: linear from 0 over the warm-up, then half a cosine down to 0 at
/// `steps`, as in `get_cosine_schedule_with_warmup` of transformers.
pub(super) fn learning_rate(settings: &OptimizerSettings, step: usize, steps: usize) -> f64 {
    let warmup = settings.warmup_steps;
    let share = if step < warmup {
        step as f64 / warmup as f64
    } else {
        let progress = (step - warmup) as f64 / steps.saturating_sub(warmup).max(1) as f64;
        (0.5 * (1.0 + (PI * progress).cos())).max(0.0)
    };
    settings.learning_rate * share
}

/// The texts of every step, by index: each epoch has all texts in another order, in batches of `size`; what does not fill
/// the last one is left out of that epoch.
pub(super) fn batches(texts: usize, size: usize, epochs: usize, seed: u64) -> Vec<Vec<usize>> {
    let epoch = |epoch: usize| {
        let mut order: Vec<usize> = (0..texts).collect();
        shuffle(&mut order, &mut stream(seed, &format!("order {epoch}")));
        order.chunks_exact(size.max(1)).map(<[usize]>::to_vec).collect::<Vec<_>>()
    };
    (0..epochs).flat_map(epoch).collect()
}

/// Parts of a batch with at most `most` tokens each, or one text; order kept.
pub(super) fn parts<'a>(texts: &[&'a [u32]], most: usize) -> Vec<Vec<&'a [u32]>> {
    let mut parts: Vec<Vec<&[u32]>> = Vec::new();
    let mut tokens = 0;
    for text in texts {
        match parts.last_mut() {
            Some(part) if tokens + text.len() <= most => part.push(text),
            _ => {
                parts.push(vec![text]);
                tokens = 0;
            }
        }
        tokens += text.len();
    }
    parts
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_rate_is_that_of_transformers() {
        // The formula of `get_cosine_schedule_with_warmup`, computed in Python for 10 of 45 steps and 1e-3.
        let settings = OptimizerSettings::default();
        let rate = |step| learning_rate(&settings, step, 45);
        for (step, expected) in
            [(0, 0.0), (1, 1e-4), (9, 9e-4), (10, 1e-3), (27, 5.224324151752575e-4), (44, 2.012853002380466e-6)]
        {
            assert!((rate(step) - expected).abs() < 1e-15, "{step}: {}", rate(step));
        }
        // Fewer steps than the warm-up has.
        assert_eq!(learning_rate(&settings, 5, 6), 5e-4);
    }

    #[test]
    fn every_epoch_has_every_text_once_in_another_order() {
        let all = batches(24, 8, 2, 42);
        assert_eq!(all.len(), 6);
        let sorted = |epoch: &[Vec<usize>]| {
            let mut texts = epoch.concat();
            texts.sort_unstable();
            texts
        };
        assert_eq!(sorted(&all[..3]), (0..24).collect::<Vec<_>>());
        assert_eq!(sorted(&all[3..]), (0..24).collect::<Vec<_>>());
        assert_ne!(all[..3], all[3..]);
        assert_eq!(all, batches(24, 8, 2, 42));
        assert_ne!(all, batches(24, 8, 2, 43));
        assert_eq!(batches(23, 8, 1, 1).len(), 2, "what does not fill a batch is left out");
        assert!(batches(7, 8, 1, 1).is_empty());
    }

    #[test]
    fn parts_hold_all_texts_in_order_and_few_tokens() {
        let texts: Vec<Vec<u32>> = [5, 5, 1, 12, 3].iter().map(|&length| vec![0; length]).collect();
        let texts: Vec<&[u32]> = texts.iter().map(Vec::as_slice).collect();
        let lengths = |most| {
            parts(&texts, most).iter().map(|part| part.iter().map(|text| text.len()).collect()).collect::<Vec<Vec<_>>>()
        };
        assert_eq!(lengths(10), [vec![5, 5], vec![1], vec![12], vec![3]]);
        assert_eq!(lengths(100), [vec![5, 5, 1, 12, 3]]);
    }
}
