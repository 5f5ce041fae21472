//! Which samples a model may be tuned on.

use super::request::{FEWEST_TEXTS, FinetuneRequest};
use crate::datasets::SampleTotals;

/// Maximum number of bytes of the texts of one fine-tune: all of them are in memory.
pub const MOST_BYTES: u64 = 256 << 20;
/// Maximum number of steps of one fine-tune: each is part of its result.
const MOST_STEPS: usize = 1_000_000;

/// Why samples cannot be tuned on, as far as their number tells.
#[must_use]
pub fn tuning_texts_fault(totals: &SampleTotals, request: &FinetuneRequest) -> Option<String> {
    let SampleTotals { samples, members, text_bytes, .. } = *totals;
    let batch = request.optimizer.batch_size;
    if members > 0 {
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
    use lm::models::tuning::{LoraSettings, OptimizerSettings};

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
