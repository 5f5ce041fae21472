//! Outcome of a verification: findings of each step.

use crate::cli::report_format::readable;
use serde::Serialize;
use std::fmt::Write;
use std::process::ExitCode;
use strum::Display;

/// Number of differences that a finding lists.
const LISTED: usize = 5;

/// Columns before the words of a finding.
const INDENT: usize = 28;

/// Result of one check.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Display, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum CheckState {
    #[strum(serialize = "holds")]
    Holds,
    #[strum(serialize = "fails")]
    Fails,
    #[strum(serialize = "not checked")]
    NotChecked,
}

/// One check with its result in words.
#[derive(Debug, Serialize)]
pub struct Finding {
    pub state: CheckState,
    pub detail: String,
}

/// One of the five steps.
#[derive(Debug, Serialize)]
pub struct VerificationStep {
    pub step: usize,
    pub name: &'static str,
    /// `fails` if one of the findings does, else `holds` if one does.
    pub state: CheckState,
    pub findings: Vec<Finding>,
}

impl Finding {
    pub fn is_holding(&self) -> bool {
        self.state == CheckState::Holds
    }

    pub fn holds(detail: impl Into<String>) -> Self {
        Self { state: CheckState::Holds, detail: detail.into() }
    }

    pub fn fails(detail: impl Into<String>) -> Self {
        Self { state: CheckState::Fails, detail: detail.into() }
    }

    pub fn not_checked(detail: impl Into<String>) -> Self {
        Self { state: CheckState::NotChecked, detail: detail.into() }
    }

    /// A finding that holds if there are no differences, and else lists the first of them.
    pub fn without(differences: &[String], holding: impl Into<String>) -> Self {
        if differences.is_empty() {
            return Self::holds(holding);
        }
        let more = differences.len().saturating_sub(LISTED);
        let more = if more > 0 { format!("; and {more} more") } else { String::new() };
        Self::fails(format!("{}{more}", differences.iter().take(LISTED).cloned().collect::<Vec<_>>().join("; ")))
    }
}

impl VerificationStep {
    pub fn new(step: usize, name: &'static str, findings: Vec<Finding>) -> Self {
        let is = |state| findings.iter().any(|finding: &Finding| finding.state == state);
        let state = [CheckState::Fails, CheckState::Holds].into_iter().find(|state| is(*state));
        Self { step, name, state: state.unwrap_or(CheckState::NotChecked), findings }
    }
}

/// The exit status: 1 if a step fails, 0 if none does and one holds, 2 if nothing could be checked.
pub fn exit_code(steps: &[VerificationStep]) -> ExitCode {
    let is = |state| steps.iter().any(|step| step.state == state);
    ExitCode::from(match (is(CheckState::Fails), is(CheckState::Holds)) {
        (true, _) => 1,
        (false, true) => 0,
        (false, false) => 2,
    })
}

/// A line for each finding, with the step before its first.
pub fn table(steps: &[VerificationStep], width: Option<usize>) -> String {
    let mut lines = String::new();
    for step in steps {
        for (place, Finding { state, detail }) in step.findings.iter().enumerate() {
            let (number, name) = if place == 0 { (step.step.to_string(), step.name) } else { (String::new(), "") };
            let head = format!("{number:3}{name:12}{:13}", state.to_string());
            let options = width.map_or(textwrap::Options::new(usize::MAX), textwrap::Options::new);
            let indent = " ".repeat(INDENT);
            let options = options.initial_indent(&head).subsequent_indent(&indent).break_words(false);
            let _ = writeln!(lines, "{}", textwrap::fill(&readable(detail), options));
        }
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_step_fails_with_one_finding_and_holds_without() {
        let step = |findings| VerificationStep::new(1, "signature", findings);
        let (holds, fails, unchecked) = (|| Finding::holds("a"), || Finding::fails("b"), || Finding::not_checked("c"));
        assert_eq!(step(vec![holds(), fails(), unchecked()]).state, CheckState::Fails);
        assert_eq!(step(vec![unchecked(), holds()]).state, CheckState::Holds);
        assert_eq!(step(vec![unchecked()]).state, CheckState::NotChecked);
        let code = |findings: Vec<Finding>| exit_code(&[step(vec![unchecked()]), step(findings)]);
        assert_eq!(code(vec![fails()]), ExitCode::from(1));
        assert_eq!(code(vec![holds()]), ExitCode::from(0));
        assert_eq!(code(vec![]), ExitCode::from(2));
    }

    #[test]
    fn differences_are_listed_up_to_five() {
        let differences: Vec<String> = (0..7).map(|number| number.to_string()).collect();
        assert_eq!(Finding::without(&differences, "").detail, "0; 1; 2; 3; 4; and 2 more");
        assert_eq!(Finding::without(&[], "all").state, CheckState::Holds);
    }

    #[test]
    fn the_table_has_a_line_for_each_finding() {
        let steps = [VerificationStep::new(
            2,
            "files",
            vec![Finding::holds("one two three four five"), Finding::not_checked("six")],
        )];
        let lines = [
            "2  files       holds        one two",
            "                            three four",
            "                            five",
            "               not checked  six",
        ];
        assert_eq!(table(&steps, Some(40)), lines.map(|line| format!("{line}\n")).concat());
        assert_eq!(table(&steps, None).lines().count(), 2);
    }
}
