//! Request for a fine-tune, as data, and the samples that it may be tuned on.

use crate::datasets::SampleTotals;
use crate::pool::Origin;
use lm::models::tuning::{LoraSettings, OptimizerSettings, TuningSettings};
use mia::methods::Fault;
use serde::{Deserialize, Serialize};
use std::fmt::Display;

/// Minimum number of texts that an adapter is tuned on: a batch of the default size.
pub const FEWEST_TEXTS: usize = 8;

/// The seed if none is given.
pub const DEFAULT_SEED: u64 = 42;

/// A fine-tune: the same request on the same texts gives the same adapter, bit for bit, on one machine.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FinetuneRequest {
    /// Id of the model to tune.
    pub model: String,
    /// The name that the adapter gets among those of the model.
    pub name: String,
    /// The shape of the adapter.
    #[serde(default)]
    pub lora: LoraSettings,
    /// Settings of the optimizer.
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
    /// The settings of the tuning of a model whose files come from there.
    pub fn tuning(&self, origin: &Origin) -> TuningSettings {
        let FinetuneRequest { model, lora, optimizer, seed, .. } = self.clone();
        let (base, revision) = match origin {
            Origin::Configured { source, revision, .. } => (source.text.clone(), revision.clone()),
            // A model that is part of the program is known by its id alone, and one that is served elsewhere is not tuned.
            Origin::Files(_) | Origin::Served(_) => (model, None),
        };
        TuningSettings { lora, optimizer, seed, base, revision }
    }

    /// Returns the number of steps it takes with `texts` texts: those that do not fill the last batch of an epoch are left out of
    /// it.
    pub fn steps(&self, texts: usize) -> usize {
        texts / self.optimizer.batch_size.max(1) * self.optimizer.epochs
    }

    /// Returns the faults of its numbers.
    pub fn faults(&self) -> Vec<Fault> {
        let (lora, optimizer) = (&self.lora, &self.optimizer);
        let mut faults = Vec::new();
        let mut expect = |holds: bool, pointer: &str, value: &dyn Display, range: &str| {
            if !holds {
                let name = pointer.rsplit('/').next().unwrap_or_default();
                faults.push(Fault::new(pointer.to_owned(), format!("{name} is {value}, expected {range}")));
            }
        };
        let positive = |number: f64| number.is_finite() && number > 0.0;
        let decay = |number: f64| (0.0..1.0).contains(&number);
        let OptimizerSettings { learning_rate, weight_decay, beta1, beta2, epsilon, max_grad_norm, .. } = *optimizer;
        expect((1..=512).contains(&lora.rank), "/lora/rank", &lora.rank, "1 to 512");
        expect(positive(lora.alpha), "/lora/alpha", &lora.alpha, "a number above 0");
        expect(decay(lora.dropout), "/lora/dropout", &lora.dropout, "a number in [0, 1)");
        let targets = lora.target_modules.as_ref().map_or(1, Vec::len);
        expect(targets > 0, "/lora/target_modules", &"an empty list", "names of modules");
        expect(positive(learning_rate), "/optimizer/learning_rate", &learning_rate, "a number above 0");
        let is_decay = weight_decay.is_finite() && weight_decay >= 0.0;
        expect(is_decay, "/optimizer/weight_decay", &weight_decay, "a number from 0");
        expect(decay(beta1), "/optimizer/beta1", &beta1, "a number in [0, 1)");
        expect(decay(beta2), "/optimizer/beta2", &beta2, "a number in [0, 1)");
        expect(positive(epsilon), "/optimizer/epsilon", &epsilon, "a number above 0");
        expect(positive(max_grad_norm), "/optimizer/max_grad_norm", &max_grad_norm, "a number above 0");
        let OptimizerSettings { epochs, batch_size, max_length, .. } = *optimizer;
        expect((1..=100).contains(&epochs), "/optimizer/epochs", &epochs, "1 to 100");
        expect((1..=1024).contains(&batch_size), "/optimizer/batch_size", &batch_size, "1 to 1024");
        expect(max_length >= 2, "/optimizer/max_length", &max_length, "at least 2");
        faults
    }
}

/// Maximum number of bytes of the texts of one fine-tune: all of them are in memory.
pub const MOST_BYTES: u64 = 256 << 20;
/// Maximum number of steps of one fine-tune: each is part of its result.
const MOST_STEPS: usize = 1_000_000;

/// Why samples cannot be tuned on, as far as their number tells.
#[must_use]
pub fn tuning_texts_fault(totals: &SampleTotals, request: &FinetuneRequest) -> Option<String> {
    let SampleTotals { samples, members, text_bytes, .. } = *totals;
    let batch = request.optimizer.batch_size;
    if let Some(fault) = totals.in_part_fault("a fine-tune") {
        Some(fault)
    } else if members > 0 {
        Some(format!(
            "{members} of {samples} texts are members; the model is to be tuned on texts that it has not seen"
        ))
    } else if samples < FEWEST_TEXTS {
        Some(format!("there are {samples} texts to tune on; it takes at least {FEWEST_TEXTS}"))
    } else if samples < batch {
        Some(format!("{samples} texts do not fill one batch of {batch}"))
    } else if text_bytes > MOST_BYTES {
        Some(format!("the texts have {text_bytes} bytes; the limit of a fine-tune is {MOST_BYTES}"))
    } else if request.steps(samples) > MOST_STEPS {
        Some(format!("{} steps are to be made; the limit of a fine-tune is {MOST_STEPS}", request.steps(samples)))
    } else {
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_left_out_is_what_fsd_was_published_with() {
        let request: FinetuneRequest = serde_json::from_str(r#"{"model": "demo", "name": "a"}"#).unwrap();
        assert_eq!((request.lora.rank, request.lora.alpha, request.lora.dropout), (16, 32.0, 0.05));
        let OptimizerSettings { learning_rate, weight_decay, warmup_steps, epochs, batch_size, .. } = request.optimizer;
        assert_eq!((learning_rate, weight_decay, warmup_steps, epochs, batch_size), (1e-3, 5e-4, 10, 3, 8));
        assert!(request.faults().is_empty());
        assert_eq!((request.steps(7), request.steps(8), request.steps(25)), (0, 3, 9));
    }

    #[test]
    fn numbers_out_of_range_are_named() {
        let request: FinetuneRequest = serde_json::from_str(
            r#"{"model": "demo", "name": "a", "lora": {"rank": 0, "dropout": 1.0},
                "optimizer": {"learning_rate": -1, "epochs": 0}}"#,
        )
        .unwrap();
        let faults: Vec<(String, String)> =
            request.faults().into_iter().map(|fault| (fault.pointer, fault.detail)).collect();
        let faults: Vec<(&str, &str)> = faults.iter().map(|(pointer, detail)| (&**pointer, &**detail)).collect();
        let expected = [
            ("/lora/rank", "rank is 0, expected 1 to 512"),
            ("/lora/dropout", "dropout is 1, expected a number in [0, 1)"),
            ("/optimizer/learning_rate", "learning_rate is -1, expected a number above 0"),
            ("/optimizer/epochs", "epochs is 0, expected 1 to 100"),
        ];
        assert_eq!(faults, expected);
        let unknown = serde_json::from_str::<FinetuneRequest>(r#"{"model": "demo", "name": "a", "lora": {"r": 4}}"#);
        assert!(unknown.unwrap_err().to_string().contains("unknown field `r`"));
    }

    #[test]
    fn members_and_too_few_are_named() {
        let fault = |samples, members, batch_size| {
            let request = FinetuneRequest {
                model: "m".to_owned(),
                name: "a".to_owned(),
                lora: LoraSettings::default(),
                optimizer: OptimizerSettings { batch_size, ..OptimizerSettings::default() },
                seed: 1,
            };
            tuning_texts_fault(&SampleTotals { samples, members, ..SampleTotals::default() }, &request)
        };
        assert_eq!(fault(8, 0, 8), None);
        assert!(fault(8, 1, 8).unwrap().starts_with("1 of 8 texts are members"));
        assert!(fault(7, 0, 4).unwrap().contains("at least 8"));
        assert!(fault(400_000, 0, 1).unwrap().contains("1200000 steps"));
        assert!(fault(8, 0, 9).unwrap().contains("one batch of 9"));
    }
}
