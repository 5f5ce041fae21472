//! The warnings of a report.

use crate::audits::request::AuditRequest;
use crate::audits::results::{AuditResults, SampleScores};
use crate::statistics::{AuditSample, Warning, WarningCode, method_warnings, warnings};

/// What to be cautious about in some of the samples.
pub fn cautions(request: &AuditRequest, results: &AuditResults, rows: &[usize]) -> Vec<Warning> {
    let (scores, targets) = (&results.rows, &request.metrics.fpr_targets);
    let sample = |&row: &usize| AuditSample {
        text: scores[row].text.as_bytes(),
        member: scores[row].member,
        scored_tokens: scores[row].scored_tokens,
        truncated: scores[row].truncated,
    };
    let mut all = warnings(&rows.iter().map(sample).collect::<Vec<_>>(), targets);
    let count = |member, counted: &dyn Fn(&SampleScores) -> bool| {
        rows.iter().map(|&row| &scores[row]).filter(|row| row.member == Some(member) && counted(row)).count()
    };
    let labelled = [true, false].map(|member| count(member, &|_| true));
    for (place, column) in results.listed() {
        let scored = [true, false].map(|member| count(member, &|row| row.scores[place].is_some()));
        all.extend(method_warnings(&column.method.label, scored, labelled, targets));
    }
    all
}

/// What to know of the run itself.
pub fn cautions_of_run(results: &AuditResults) -> Option<Warning> {
    let repeated = results.repeated_passes;
    (repeated > 0).then(|| Warning {
        code: WarningCode::RepeatedPasses,
        detail: format!(
            "{repeated} forward passes ran twice: `entropy_dataset` reads the texts in two rounds, and the cache \
             (`engine.cache`) did not hold the statistics of the first one; the scores are the same"
        ),
    })
}
