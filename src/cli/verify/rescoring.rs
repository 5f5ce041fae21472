//! Step 4: some samples, chosen by the report itself, scored again.

use super::report_file::ReportFile;
use super::step::Finding;
use crate::audits::{
    self, AuditMetrics, AuditRequest, AuditResults, EvidenceRequest, OtherModel, Provenance, ScoreLine,
    is_of_text_alone,
};
use crate::datasets::{Sample, SampleBlocks};
use crate::pool::ModelInfo;
use crate::scorer::Scorer;
use crate::wire::number_of;
use anyhow::Result;
use lm::models::precision::NumericPath;
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
    claimed: Vec<ScoreLine>,
}

/// Number of samples to score again, and a text that the choice depends on.
#[derive(Clone, Copy)]
pub struct SampleChoice<'a> {
    pub count: usize,
    pub seed: &'a str,
}

/// The models that score them, by their ids here.
pub struct LocalModels {
    pub model: String,
    /// `None` if the audit has no control.
    pub control: Option<String>,
}

impl ChosenSamples {
    /// Chooses samples: those whose place, hashed with the report and the seed, comes first.
    pub fn choose(
        file: &ReportFile,
        samples: &[Sample],
        lines: &[ScoreLine],
        SampleChoice { count, seed }: SampleChoice,
    ) -> Self {
        let mut indexes: Vec<usize> = (0..samples.len().min(lines.len())).collect();
        let seeded = Sha256::new_with_prefix(file.digest).chain_update(seed);
        indexes.sort_by_cached_key(|index| {
            <[u8; 32]>::from(seeded.clone().chain_update((*index as u64).to_be_bytes()).finalize())
        });
        indexes.truncate(count);
        indexes.sort_unstable();
        Self {
            samples: indexes.iter().map(|index| samples[*index].clone()).collect(),
            claimed: indexes.iter().map(|index| lines[*index].clone()).collect(),
            indexes,
        }
    }

    /// Scores the samples and compares the scores.
    pub async fn findings(self, provenance: &Provenance, scorer: &Scorer, models: LocalModels) -> Result<Vec<Finding>> {
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
        let again = AuditRequest {
            model: models.model,
            methods,
            overflow: request.overflow,
            metrics: AuditMetrics { bootstrap: None, ..AuditMetrics::default() },
            evidence: EvidenceRequest { control: models.control, ..EvidenceRequest::default() },
        };
        let samples = SampleBlocks::Memory(self.samples.clone().into());
        let outcome = audits::run(Arc::new(again), &samples, None, scorer, |_| {}).await;
        let (compared, absent) = match outcome {
            Ok(outcome) => {
                let ModelDifferences { differing, absent } = ModelDifferences::new(provenance, &outcome.results);
                let compared = match differing.is_empty() {
                    true => self.compare(provenance, &outcome.results),
                    false => Finding::fails(differing.join("; ")),
                };
                let absent =
                    (!absent.is_empty()).then(|| Finding::not_checked(format!("{}: not run here", absent.join(", "))));
                (compared, absent)
            }
            Err(error) => (Finding::not_checked(format!("the samples could not be scored: {error}")), None),
        };
        Ok([Some(compared), absent, of_others].into_iter().flatten().collect())
    }

    fn compare(&self, provenance: &Provenance, results: &AuditResults) -> Finding {
        let same_numerics = is_same_numerics(&provenance.numerics, &results.numerics);
        let absolute = match rounding(provenance, results) {
            Ok(absolute) => absolute,
            Err(fault) => return Finding::fails(fault),
        };
        let (mut largest, mut compared, mut differing) = (0.0_f64, 0, Vec::new());
        for ((index, claimed), row) in self.indexes.iter().zip(&self.claimed).zip(&results.rows) {
            let is_close = |claimed: f64, computed: f64| {
                let difference = (claimed - computed).abs();
                let is_close = difference <= if same_numerics { 0.0 } else { absolute + RELATIVE * claimed.abs() };
                largest = if is_close { largest.max(difference) } else { largest };
                is_close
            };
            let again = ScoreLine::new(*index, row, results);
            let differences = claimed.differences(&again, &mut compared, is_close);
            differing.extend(differences.into_iter().map(|difference| format!("sample {index}, {difference}")));
        }
        if compared == 0 {
            return Finding::not_checked("no score can be computed of a sample alone");
        }
        let scored = format!(
            "{} of {}, chosen by the report's hash, scored again",
            number_of(compared, "score"),
            number_of(self.indexes.len(), "sample")
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

/// Models of the report beside those that run here, in words.
#[derive(Default)]
struct ModelDifferences {
    /// Weights, tokenizers and adapters that are not those of the report.
    differing: Vec<String>,
    /// Models that do not run here, whose scores are not compared.
    absent: Vec<String>,
}

impl ModelDifferences {
    fn new(provenance: &Provenance, results: &AuditResults) -> Self {
        let mut differences = Self::default();
        let asked = OtherModel::from(&provenance.model_info());
        differences.compare("model", &asked, Some(&results.model));
        if let Some(control) = &provenance.control {
            differences.compare("control", control, results.control.as_ref());
        }
        for other in &provenance.other_models {
            // The methods name it, so its id is the same here.
            let here = results.other_models.iter().find(|here| here.id == other.model);
            differences.compare("other model", other, here);
        }
        differences
    }

    fn compare(&mut self, part: &str, claimed: &OtherModel, here: Option<&ModelInfo>) {
        let Some(here) = here else {
            self.absent.push(format!("the {part} `{}`", claimed.model));
            return;
        };
        for (name, claimed, here) in [
            ("weights", Some(&claimed.model_digest), Some(&here.digest)),
            ("tokenizer", Some(&claimed.tokenizer_digest), Some(&here.tokenizer_digest)),
            ("adapter", claimed.adapter_digest.as_ref(), here.adapter.as_ref()),
        ] {
            if claimed != here {
                let digest = |digest: Option<&String>| digest.map_or("none".to_owned(), Clone::clone);
                let (claimed, here) = (digest(claimed), digest(here));
                self.differing.push(format!("{name} of the {part}: {here} here, {claimed} in the report"));
            }
        }
    }
}

/// True if everything that the bits of these scores depend on is as it was; the report may name models that took no part here.
fn is_same_numerics(claimed: &str, here: &str) -> bool {
    let claimed: HashSet<&str> = claimed.split("; ").collect();
    here.split("; ").all(|part| claimed.contains(part))
}

/// The largest difference of a score near 0 that rounding explains: with half types that of a log-probability, by what this program
/// knows of the path that the report names.
///
/// # Errors
/// If the report claims another rounding of its path.
fn rounding(provenance: &Provenance, results: &AuditResults) -> Result<f64, String> {
    let known = provenance.rounding.and_then(|claimed| claimed.path).and_then(NumericPath::rounding);
    if provenance.rounding != known {
        return Err("`rounding` of the report is not that of any numeric path".to_owned());
    }
    let halves = [known, results.model.rounding];
    Ok(halves.into_iter().flatten().map(|rounding| rounding.log_probability).fold(ABSOLUTE, f64::max))
}
