//! Warnings for readers of an audit.

use super::rates::false_positive_budget;
use serde::Serialize;
use std::collections::HashMap;
use utoipa::ToSchema;

/// With fewer samples of a class, its rates are too coarse.
const FEW_SAMPLES: usize = 100;

/// Lengths that differ by more than this factor are considered mixed.
const MIXED_LENGTHS: f64 = 1.5;

/// A reason for caution.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, ToSchema)]
pub struct Warning {
    /// The kind of warning.
    pub code: WarningCode,
    /// The finding, with its numbers.
    pub detail: String,
}

/// Kinds of warnings.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum WarningCode {
    /// A class has fewer than 100 samples.
    FewSamples,
    /// A requested false positive rate allows no false positive at all.
    ZeroFalsePositiveBudget,
    /// The longest text has more than 1.5 times as many tokens as the shortest.
    MixedLengths,
    /// The same text is labelled both member and non-member.
    LabelConflict,
    /// Texts were truncated to the model's context.
    TruncatedTexts,
    /// The audit was interrupted and begun anew, since the program or the machine was another one.
    StartedOver,
    /// Texts are equal, nearly equal or of one document, so that there are fewer clusters than texts.
    Duplicates,
    /// Some clusters have so few texts that most texts of others count nowhere in the verdict.
    UnequalDocuments,
    /// The words of the texts alone tell members from non-members.
    DistributionShift,
    /// The control has another tokenization, so that methods with weights by position have no control.
    ControlTokenization,
    /// The calibration is too small for the rates that are asked for.
    CalibrationSmall,
    /// The texts of the calibration have other lengths than those tested.
    CalibrationMismatch,
    /// Texts of the calibration are tested as well; they were removed from the calibration.
    CalibrationOverlap,
    /// Texts ran twice for weights by the entropy of the dataset, since the cache does not hold the statistics of all.
    RepeatedPasses,
    /// The weights of the model are quantised, which weakens what it shows of its training data.
    QuantizedModel,
}

/// The properties of one sample that warnings depend on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AuditSample<'a> {
    /// The text, or anything else that is equal for equal texts and different for different ones.
    pub text: &'a [u8],
    /// True if it is labelled a member; `None` without a label.
    pub member: Option<bool>,
    /// Number of scored tokens, n.
    pub scored_tokens: usize,
    /// True if the text was truncated to the model's context.
    pub truncated: bool,
}

/// All warnings about an audit of `samples` that reports the true positive rate at `fpr_targets`.
///
/// Without any label, there are no comparisons of the two classes to warn about.
pub fn warnings(samples: &[AuditSample], fpr_targets: &[f64]) -> Vec<Warning> {
    let mut warnings = Vec::new();
    if samples.iter().any(|sample| sample.member.is_some()) {
        let count = |member| samples.iter().filter(|sample| sample.member == Some(member)).count();
        let (members, non_members) = (count(true), count(false));
        warnings.extend(few_samples(members, non_members));
        warnings.extend(zero_false_positive_budget(fpr_targets, non_members));
        warnings.extend(label_conflict(samples));
    }
    warnings.extend(mixed_lengths(samples));
    warnings.extend(truncated_texts(samples));
    warnings
}

/// Warnings about a method that could not score every labelled sample: for a class with too few scores, if the class
/// itself is large enough or most of its scores are missing, and for targets that allow no false positive as a result.
/// `scored` and `labelled` count members, then non-members.
pub fn method_warnings(label: &str, scored: [usize; 2], labelled: [usize; 2], fpr_targets: &[f64]) -> Vec<Warning> {
    let mut warnings = Vec::new();
    for (index, class) in ["members", "non-members"].into_iter().enumerate() {
        let (scored, labelled) = (scored[index], labelled[index]);
        if scored < labelled && scored < FEW_SAMPLES && (labelled >= FEW_SAMPLES || scored * 2 < labelled) {
            let detail = format!(
                "`{label}` has a score for {scored} of {labelled} {class}: with fewer than {FEW_SAMPLES}, \
                its rates and area are coarse"
            );
            warnings.push(Warning { code: WarningCode::FewSamples, detail });
        }
    }
    let lost = |fpr: &&f64| {
        false_positive_budget(**fpr, scored[1]) == 0 && false_positive_budget(**fpr, labelled[1]) > 0 && scored[1] > 0
    };
    let lost: Vec<f64> = fpr_targets.iter().filter(lost).copied().collect();
    if !lost.is_empty() {
        let detail = format!(
            "`{label}`: {} no false positive among the {} non-members that it scores",
            rates_that_allow(&lost),
            scored[1]
        );
        warnings.push(Warning { code: WarningCode::ZeroFalsePositiveBudget, detail });
    }
    warnings
}

fn few_samples(members: usize, non_members: usize) -> Option<Warning> {
    (members.min(non_members) < FEW_SAMPLES).then(|| Warning {
        code: WarningCode::FewSamples,
        detail: format!(
            "{members} members and {non_members} non-members: with fewer than {FEW_SAMPLES} of a class, rates and areas are \
             coarse"
        ),
    })
}

fn zero_false_positive_budget(fpr_targets: &[f64], non_members: usize) -> Option<Warning> {
    let none = |fpr: &f64| false_positive_budget(*fpr, non_members) == 0;
    let targets: Vec<f64> = fpr_targets.iter().copied().filter(none).collect();
    (!targets.is_empty()).then(|| Warning {
        code: WarningCode::ZeroFalsePositiveBudget,
        detail: format!(
            "{} no false positive among {non_members} non-members, so the true positive rate there depends on the highest \
             of them alone",
            rates_that_allow(&targets)
        ),
    })
}

fn rates_that_allow(targets: &[f64]) -> String {
    match targets {
        [target] => format!("a false positive rate of {target} allows"),
        targets => {
            let listed: Vec<String> = targets.iter().map(f64::to_string).collect();
            format!("false positive rates of {} allow", listed.join(", "))
        }
    }
}

fn label_conflict(samples: &[AuditSample]) -> Option<Warning> {
    // For each text, whether it occurs as a non-member and as a member.
    let mut labels: HashMap<&[u8], [bool; 2]> = HashMap::new();
    for sample in samples {
        if let Some(member) = sample.member {
            labels.entry(sample.text).or_default()[usize::from(member)] = true;
        }
    }
    let conflicts = labels.values().filter(|seen| **seen == [true; 2]).count();
    (conflicts > 0).then(|| Warning {
        code: WarningCode::LabelConflict,
        detail: format!("{conflicts} distinct texts are labelled both member and non-member"),
    })
}

fn mixed_lengths(samples: &[AuditSample]) -> Option<Warning> {
    // A text without scored tokens has no score, so its length does not matter.
    let lengths = samples.iter().map(|sample| sample.scored_tokens).filter(|&n| n > 0);
    let (shortest, longest) = (lengths.clone().min()?, lengths.max()?);
    (longest as f64 > MIXED_LENGTHS * shortest as f64).then(|| Warning {
        code: WarningCode::MixedLengths,
        detail: format!(
            "texts have {shortest} to {longest} scored tokens, more than a factor of {MIXED_LENGTHS}: zlib and \
             decayed scores depend on length"
        ),
    })
}

fn truncated_texts(samples: &[AuditSample]) -> Option<Warning> {
    let truncated = samples.iter().filter(|sample| sample.truncated).count();
    (truncated > 0).then(|| Warning {
        code: WarningCode::TruncatedTexts,
        detail: format!("{truncated} of {} texts were truncated to the model's context", samples.len()),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample(text: &str, member: impl Into<Option<bool>>) -> AuditSample<'_> {
        AuditSample { text: text.as_bytes(), member: member.into(), scored_tokens: 10, truncated: false }
    }

    fn codes(samples: &[AuditSample], fpr_targets: &[f64]) -> Vec<WarningCode> {
        let warnings = warnings(samples, fpr_targets);
        warnings.into_iter().map(|warning| warning.code).collect()
    }

    #[test]
    fn no_warnings() {
        let texts: Vec<String> = (0..200).map(|i| i.to_string()).collect();
        let samples: Vec<AuditSample> = texts
            .iter()
            .enumerate()
            .map(|(i, text)| AuditSample { scored_tokens: [0, 10, 15][i % 3], ..sample(text, i % 2 == 0) })
            .collect();
        assert_eq!(codes(&samples, &[0.01, 0.05]), []);
        assert_eq!(codes(&samples, &[0.005, 0.01]), [WarningCode::ZeroFalsePositiveBudget]);
    }

    #[test]
    fn all_warnings() {
        use WarningCode::*;
        let long = AuditSample { scored_tokens: 16, truncated: true, ..sample("b", false) };
        let samples = [sample("a", true), sample("a", false), long];
        assert_eq!(
            codes(&samples, &[0.05, 0.01, 1.0]),
            [FewSamples, ZeroFalsePositiveBudget, LabelConflict, MixedLengths, TruncatedTexts]
        );
    }

    #[test]
    fn without_labels_there_are_no_warnings_about_classes() {
        let samples = [sample("a", None), sample("a", None)];
        assert_eq!(codes(&samples, &[0.05]), []);
        assert_eq!(codes(&[], &[0.05]), []);
    }

    #[test]
    fn a_method_that_scores_few_samples_gets_warnings() {
        let warn = |scored, labelled| method_warnings("m", scored, labelled, &[0.05, 0.5]);
        assert_eq!(warn([200, 200], [200, 200]), []);
        assert_eq!(warn([199, 150], [200, 200]), []);
        let none = warn([200, 0], [200, 200]);
        assert_eq!(none.len(), 1);
        assert!(none[0].detail.contains("`m` has a score for 0 of 200 non-members"), "{none:?}");
        let few = warn([99, 10], [200, 200]);
        let codes: Vec<WarningCode> = few.iter().map(|warning| warning.code).collect();
        assert_eq!(codes, [WarningCode::FewSamples, WarningCode::FewSamples, WarningCode::ZeroFalsePositiveBudget]);
        // Few samples are reported for the audit as a whole; for a method, only if it lost most of them.
        assert_eq!(warn([40, 50], [50, 50]), []);
        assert_eq!(warn([4, 50], [50, 50]).len(), 1);
    }

    #[test]
    fn codes_as_clients_see_them() {
        let json = serde_json::to_value(&warnings(&[sample("a", true)], &[])[0]).expect("JSON");
        assert_eq!(json["code"], "few_samples");
        assert!(json["detail"].as_str().is_some_and(|detail| detail.starts_with("1 members and 0 non-members")));
    }
}
