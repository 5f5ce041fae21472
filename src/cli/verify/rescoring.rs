//! Step 4: some samples, chosen by the report itself, scored again.

use super::report_file::ReportFile;
use super::step::Finding;
use crate::audits::{
    self, AuditMetrics, AuditRequest, AuditResults, EvidenceRequest, Provenance, ScoreLine, is_of_text_alone,
};
use crate::datasets::{Sample, SampleBlocks};
use crate::scorer::Scorer;
use crate::wire::number_of;
use anyhow::Result;
use indexmap::IndexMap;
use sha2::{Digest, Sha256};
use std::collections::HashSet;
use std::sync::Arc;

/// Largest difference of a score between numeric paths in f32: this, and [`RELATIVE`] of the score. It is the tolerance at which every
/// score is tested against the reference implementations, from which f32 itself keeps apart.
const ABSOLUTE: f64 = 1e-4;
const RELATIVE: f64 = 1e-3;

/// Samples that are scored again, with the scores that the report's lines have.
pub struct ChosenSamples {
    samples: Vec<Sample>,
    indexes: Vec<usize>,
    claimed: Vec<[IndexMap<Arc<str>, f64>; 2]>,
    methods: usize,
}

/// The models that score them, by their ids here.
pub struct LocalModels {
    pub model: String,
    /// `None` if the audit has no control.
    pub control: Option<String>,
}

impl ChosenSamples {
    /// Chooses samples: those whose place, hashed with the report, comes first. Whoever wrote the report could not choose them.
    pub fn choose(file: &ReportFile, samples: &[Sample], lines: &[ScoreLine], count: usize) -> Self {
        let mut indexes: Vec<usize> = (0..samples.len().min(lines.len())).collect();
        indexes.sort_by_cached_key(|index| {
            let hash = Sha256::new_with_prefix(file.digest).chain_update((*index as u64).to_be_bytes()).finalize();
            <[u8; 32]>::from(hash)
        });
        indexes.truncate(count);
        indexes.sort_unstable();
        let claimed = |index: &usize| [lines[*index].scores.clone(), lines[*index].control_scores.clone()];
        Self {
            samples: indexes.iter().map(|index| samples[*index].clone()).collect(),
            claimed: indexes.iter().map(claimed).collect(),
            indexes,
            methods: 0,
        }
    }

    /// Scores the samples and compares the scores.
    pub async fn findings(
        mut self,
        provenance: &Provenance,
        scorer: &Scorer,
        models: LocalModels,
    ) -> Result<Vec<Finding>> {
        let request = provenance.audit_request(None);
        let (methods, others): (Vec<_>, Vec<_>) =
            request.methods.into_iter().partition(|method| is_of_text_alone(&method.method));
        let others: Vec<String> = others.iter().map(|method| format!("`{}`", method.label)).collect();
        let of_others = (!others.is_empty()).then(|| {
            Finding::not_checked(format!(
                "{}: the score of a text depends on other samples, or on a tuning",
                others.join(", ")
            ))
        });
        self.methods = methods.len();
        let again = AuditRequest {
            model: models.model,
            methods,
            overflow: request.overflow,
            metrics: AuditMetrics { bootstrap: None, ..AuditMetrics::default() },
            evidence: EvidenceRequest { control: models.control, ..EvidenceRequest::default() },
        };
        let samples = SampleBlocks::Memory(std::mem::take(&mut self.samples).into());
        let outcome = audits::run(Arc::new(again), &samples, None, scorer, |_| {}).await;
        let compared = match outcome {
            Ok(outcome) => match other_models(provenance, &outcome.results) {
                differing if differing.is_empty() => self.compare(provenance, &outcome.results),
                differing => Finding::without(&differing, ""),
            },
            Err(error) => Finding::not_checked(format!("the samples could not be scored: {error}")),
        };
        Ok([Some(compared), of_others].into_iter().flatten().collect())
    }

    fn compare(&self, provenance: &Provenance, results: &AuditResults) -> Finding {
        let same_numerics = is_same_numerics(&provenance.numerics, &results.numerics);
        let absolute = rounding(provenance, results);
        let (mut largest, mut differing) = (0.0_f64, Vec::new());
        for ((index, [target, control]), row) in self.indexes.iter().zip(&self.claimed).zip(&results.rows) {
            for (place, column) in results.listed() {
                let label = &column.method.label;
                let pairs = [("", target, &row.scores), (" under the control", control, &row.control)];
                for (model, claimed, computed) in pairs {
                    let (claimed, computed) = (claimed.get(label).copied(), computed.get(place).copied().flatten());
                    let difference = match (claimed, computed) {
                        (None, None) => continue,
                        (Some(claimed), Some(computed)) => (claimed - computed).abs(),
                        _ => f64::INFINITY,
                    };
                    let allowed = absolute + RELATIVE * claimed.unwrap_or_default().abs();
                    if difference > if same_numerics { 0.0 } else { allowed } {
                        let number =
                            |score: Option<f64>| score.map_or("no score".to_owned(), |score| score.to_string());
                        let (claimed, computed) = (number(claimed), number(computed));
                        differing.push(format!("sample {index}, `{label}`{model}: {claimed}, scored again {computed}"));
                    } else {
                        largest = largest.max(difference);
                    }
                }
            }
        }
        let scored = format!(
            "{} by {}, chosen by the report's hash, scored again",
            number_of(self.indexes.len(), "sample"),
            number_of(self.methods, "method")
        );
        Finding::without(
            &differing,
            match same_numerics {
                true => format!("{scored}: equal bit for bit, under the same numerics"),
                false => format!(
                    "{scored}: within rounding, under other numerics than those of the report (largest difference {largest:.1e}, \
                 allowed {absolute} and a thousandth of the score)"
                ),
            },
        )
    }
}

/// Models that are not those of the report, in words.
fn other_models(provenance: &Provenance, results: &AuditResults) -> Vec<String> {
    let control = provenance.control.as_ref().zip(results.control.as_ref());
    let models = [
        Some(("model", &provenance.model_digest, &results.model.digest)),
        Some(("tokenizer", &provenance.tokenizer_digest, &results.model.tokenizer_digest)),
        control.map(|(control, here)| ("control", &control.model_digest, &here.digest)),
    ];
    let differing = models.into_iter().flatten().filter(|(_, claimed, here)| claimed != here);
    differing.map(|(part, claimed, here)| format!("the {part} is {here}, and the report's {claimed}")).collect()
}

/// True if everything that the bits of these scores depend on is as it was; the report may name models that took no part here.
fn is_same_numerics(claimed: &str, here: &str) -> bool {
    let claimed: HashSet<&str> = claimed.split("; ").collect();
    here.split("; ").all(|part| claimed.contains(part))
}

/// The largest difference of a score near 0 that rounding explains: with half types that of a log-probability.
fn rounding(provenance: &Provenance, results: &AuditResults) -> f64 {
    let halves = [provenance.rounding.as_ref(), results.model.rounding.as_ref()];
    halves.into_iter().flatten().map(|rounding| rounding.log_probability).fold(ABSOLUTE, f64::max)
}
