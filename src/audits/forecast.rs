//! Forecast of an audit before anything is scored: how much there is to score, and which p-values the known works allow.

use super::evidence::LEVEL;
use super::served_cost::ServedForecast;
use crate::datasets::{Sample, SampleId, estimated_tokens};
use crate::wire::number_of;
use mia::statistics::CalibrationScores;
use serde::{Deserialize, Serialize};
use std::collections::HashSet;
use utoipa::ToSchema;

/// Forecast of an audit before anything is scored.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct Forecast {
    /// Documents that are tested; a text without one counts alone.
    pub works: usize,
    /// Texts that they have together.
    pub texts: usize,
    /// Works of the calibration, without those that are left out for text that they share; absent without a stored calibration.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub known_works: Option<usize>,
    /// The smallest p-value that the known works allow; absent without them, and where they are too few for p-values.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub smallest_p: Option<f64>,
    /// The number of known works that a p-value of 0.01 takes; absent without a stored calibration.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub known_works_needed: Option<usize>,
    /// Tokens of the texts tested, estimated from their bytes, as none is tokenized yet.
    pub estimated_tokens: u64,
    /// Requests to models that are served elsewhere, with their tokens and cost; absent if all models run here.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub served: Option<ServedForecast>,
}

impl Forecast {
    /// The forecast for samples that were counted; `known` is the number of known works.
    pub fn new(counts: &WorkCounts, known: Option<usize>, served: Option<ServedForecast>) -> Self {
        Self {
            works: counts.documents.len() + counts.alone,
            texts: counts.texts,
            known_works: known,
            smallest_p: known.and_then(smallest_p),
            known_works_needed: known.map(|_| known_works_needed()),
            estimated_tokens: estimated_tokens(counts.bytes),
            served,
        }
    }
}

impl std::fmt::Display for Forecast {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let texts = number_of(self.texts, "text");
        let works = number_of(self.works, "work");
        let scored = if self.works == self.texts { texts } else { format!("{works} of {texts}") };
        write!(f, "{scored} to score, about {} tokens (estimated from their bytes)", self.estimated_tokens)?;
        self.served.as_ref().map_or(Ok(()), |served| write!(f, "; {served}"))
    }
}

/// Counts of the works that samples are of.
#[derive(Default)]
pub struct WorkCounts {
    documents: HashSet<String>,
    alone: usize,
    texts: usize,
    bytes: u64,
}

impl WorkCounts {
    /// The number of texts, and their bytes.
    pub fn texts_and_bytes(&self) -> (u64, u64) {
        (self.texts as u64, self.bytes)
    }

    /// Counts the next samples.
    pub fn with(mut self, samples: &[(usize, Sample)]) -> Self {
        for (_, sample) in samples {
            self.texts += 1;
            self.bytes += sample.text.len() as u64;
            match sample.document.as_ref().map(SampleId::to_string) {
                Some(document) => drop(self.documents.insert(document)),
                None => self.alone += 1,
            }
        }
        self
    }
}

/// The smallest p-value that `known` works allow; `None` where they are too few for p-values.
pub fn smallest_p(known: usize) -> Option<f64> {
    (known >= CalibrationScores::FEWEST).then(|| 1.0 / (known as f64 + 1.0))
}

/// The number of known works that a p-value at the level of verdicts takes.
pub fn known_works_needed() -> usize {
    (1.0 / LEVEL).ceil() as usize - 1
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn works_and_tokens_are_counted_before_scoring() {
        let sample = |text: &str, document: Option<&str>| Sample {
            text: text.to_owned(),
            document: document.map(|name| SampleId::Text(name.to_owned())),
            ..Sample::default()
        };
        let samples = [sample("0123456789", Some("a")), sample("0123456789", Some("a")), sample("01234567", None)];
        let counts = WorkCounts::default().with(&samples.into_iter().enumerate().collect::<Vec<_>>());
        let forecast = Forecast::new(&counts, Some(49), None);
        let expected = Forecast {
            works: 2,
            texts: 3,
            known_works: Some(49),
            smallest_p: Some(0.02),
            known_works_needed: Some(99),
            estimated_tokens: 7,
            served: None,
        };
        assert_eq!(forecast, expected);
        assert_eq!(forecast.to_string(), "2 works of 3 texts to score, about 7 tokens (estimated from their bytes)");
        let few = Forecast::new(&counts, Some(18), None);
        assert_eq!((few.smallest_p, few.known_works_needed), (None, Some(99)));
        let none = Forecast::new(&counts, None, None);
        assert_eq!((none.known_works, none.smallest_p, none.known_works_needed), (None, None, None));
    }
}
