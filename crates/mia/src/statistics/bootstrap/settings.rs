//! The settings of a bootstrap.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

const MOST_REPLICATES: usize = 100_000;

/// Resampling of the scores of an audit.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Bootstrap {
    /// Number of replicates, 1 to 100,000.
    #[schema(minimum = 1, maximum = 100_000)]
    pub replicates: usize,
    /// The same seed draws the same samples.
    pub seed: u64,
    /// The share of the replicates within an interval, between 0 and 1.
    #[schema(exclusive_minimum = 0.0, exclusive_maximum = 1.0)]
    pub confidence: f64,
}

impl Default for Bootstrap {
    fn default() -> Self {
        Self { replicates: 1000, seed: 0, confidence: 0.95 }
    }
}

impl Bootstrap {
    /// The invalid settings: the name of each field and the reason. Empty if all are valid.
    pub fn faults(&self) -> Vec<(&'static str, String)> {
        let mut faults = Vec::new();
        if !(1..=MOST_REPLICATES).contains(&self.replicates) {
            let detail = format!("{} replicates: must be from 1 to {MOST_REPLICATES}", self.replicates);
            faults.push(("replicates", detail));
        }
        if !(self.confidence > 0.0 && self.confidence < 1.0) {
            faults.push(("confidence", format!("{}: must be greater than 0 and less than 1", self.confidence)));
        }
        faults
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_as_clients_send_them() {
        let parse = serde_json::from_str::<Bootstrap>;
        assert_eq!(parse("{}").expect("defaults"), Bootstrap { replicates: 1000, seed: 0, confidence: 0.95 });
        assert!(parse(r#"{ "replicate": 5 }"#).is_err());
        let faults = |replicates, confidence| -> Vec<&str> {
            let settings = Bootstrap { replicates, seed: 0, confidence };
            settings.faults().into_iter().map(|(field, _)| field).collect()
        };
        assert!(faults(1, 0.5).is_empty() && faults(100_000, 0.999).is_empty());
        assert_eq!(faults(0, 1.0), ["replicates", "confidence"]);
        assert_eq!(faults(100_001, 0.0), ["replicates", "confidence"]);
        assert_eq!(faults(5, f64::NAN), ["confidence"]);
    }
}
