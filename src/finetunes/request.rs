//! What is tuned, as data.

use crate::models::tuning::{LoraSettings, OptimizerSettings, TuningSettings};
use serde::{Deserialize, Serialize};

/// The fewest texts that an adapter is tuned on: a batch of the default size.
pub const FEWEST_TEXTS: usize = 8;

/// The seed if none is given.
const DEFAULT_SEED: u64 = 42;

/// A fine-tune: the same request on the same texts gives the same adapter, bit for bit, on one machine.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FinetuneRequest {
    /// What the adapter is to say it was tuned on: a directory or a repository.
    pub base: String,
    /// The commit, branch or tag of a repository.
    #[serde(default)]
    pub revision: Option<String>,
    /// The shape of the adapter.
    #[serde(default)]
    pub lora: LoraSettings,
    /// How it is tuned.
    #[serde(default)]
    pub optimizer: OptimizerSettings,
    /// Seed of the order of the texts, the initial values and the dropped inputs.
    #[serde(default = "default_seed")]
    pub seed: u64,
}

fn default_seed() -> u64 {
    DEFAULT_SEED
}

impl FinetuneRequest {
    /// The settings of the tuning.
    pub fn tuning(&self) -> TuningSettings {
        let FinetuneRequest { base, revision, lora, optimizer, seed } = self.clone();
        TuningSettings { lora, optimizer, seed, base, revision }
    }

    /// What is wrong with its numbers, each with the name of the setting.
    pub fn faults(&self) -> Vec<String> {
        let (lora, optimizer) = (&self.lora, &self.optimizer);
        let mut faults = Vec::new();
        let mut expect = |holds: bool, name: &str, value: &dyn std::fmt::Display, range: &str| {
            if !holds {
                faults.push(format!("{name} is {value}, expected {range}"));
            }
        };
        let positive = |number: f64| number.is_finite() && number > 0.0;
        let decay = |number: f64| (0.0..1.0).contains(&number);
        expect((1..=512).contains(&lora.rank), "rank", &lora.rank, "1 to 512");
        expect(positive(lora.alpha), "alpha", &lora.alpha, "a number above 0");
        expect(decay(lora.dropout), "dropout", &lora.dropout, "a number in [0, 1)");
        expect(positive(optimizer.learning_rate), "learning_rate", &optimizer.learning_rate, "a number above 0");
        let targets = lora.target_modules.as_ref().map_or(1, Vec::len);
        expect(targets > 0, "target_modules", &"an empty list", "names of modules");
        let weight_decay = optimizer.weight_decay;
        expect(weight_decay.is_finite() && weight_decay >= 0.0, "weight_decay", &weight_decay, "a number from 0");
        expect(decay(optimizer.beta1), "beta1", &optimizer.beta1, "a number in [0, 1)");
        expect(decay(optimizer.beta2), "beta2", &optimizer.beta2, "a number in [0, 1)");
        expect(positive(optimizer.epsilon), "epsilon", &optimizer.epsilon, "a number above 0");
        expect(positive(optimizer.max_grad_norm), "max_grad_norm", &optimizer.max_grad_norm, "a number above 0");
        expect((1..=100).contains(&optimizer.epochs), "epochs", &optimizer.epochs, "1 to 100");
        expect((1..=1024).contains(&optimizer.batch_size), "batch_size", &optimizer.batch_size, "1 to 1024");
        expect(optimizer.max_length >= 2, "max_length", &optimizer.max_length, "at least 2");
        faults
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_left_out_is_what_fsd_was_published_with() {
        let request: FinetuneRequest = serde_json::from_str(r#"{"base": "demo"}"#).unwrap();
        assert_eq!((request.lora.rank, request.lora.alpha, request.lora.dropout), (16, 32.0, 0.05));
        let OptimizerSettings { learning_rate, weight_decay, warmup_steps, epochs, batch_size, .. } = request.optimizer;
        assert_eq!((learning_rate, weight_decay, warmup_steps, epochs, batch_size), (1e-3, 5e-4, 10, 3, 8));
        assert!(request.faults().is_empty());
    }

    #[test]
    fn numbers_out_of_range_are_named() {
        let request: FinetuneRequest = serde_json::from_str(
            r#"{"base": "demo", "lora": {"rank": 0, "dropout": 1.0}, "optimizer": {"learning_rate": -1, "epochs": 0}}"#,
        )
        .unwrap();
        let faults = [
            "rank is 0, expected 1 to 512",
            "dropout is 1, expected a number in [0, 1)",
            "learning_rate is -1, expected a number above 0",
            "epochs is 0, expected 1 to 100",
        ];
        assert_eq!(request.faults(), faults);
        let unknown = serde_json::from_str::<FinetuneRequest>(r#"{"base": "demo", "lora": {"r": 4}}"#);
        assert!(unknown.unwrap_err().to_string().contains("unknown field `r`"));
    }
}
