//! `pdr-audit report`: the JSON of a report in, a page out.

use crate::audits::AuditResults;
use crate::new_file::NewFile;
use anyhow::{Context, Result, bail, ensure};
use clap::Args;
use pages::{MethodScores, Page, Provenance, drawn_methods};
use serde_json::Value;
use std::fs::File;
use std::io::{BufRead, BufReader, Write, stdout};
use std::path::{Path, PathBuf};

#[derive(Args)]
pub struct ReportPageArgs {
    /// Report as JSON: what a command printed with `--format json`, `report.json` of an audit's folder, or a job as the service
    /// answers it.
    file: PathBuf,
    /// Scores of an audit's samples as NDJSON, from which curves and distributions are drawn: `scores.ndjson` of its folder, or
    /// what `GET /v1/audits/{id}/scores` answers. By default the file of this name beside the report.
    #[arg(long, value_name = "FILE")]
    scores: Option<PathBuf>,
    /// Write the page to this file; by default it goes to standard output.
    #[arg(long, value_name = "FILE")]
    output: Option<PathBuf>,
}

/// Makes the page of a report.
pub fn run(args: &ReportPageArgs) -> Result<()> {
    let named = || args.file.display().to_string();
    let content = std::fs::read(&args.file).with_context(named)?;
    let document: Value = serde_json::from_slice(&content).with_context(named)?;
    let report = if document["results"].is_object() { &document["results"] } else { &document };
    ensure!(report.is_object(), "{}: a report is a JSON object", named());
    if document["results"].is_null() && document["status"].is_string() {
        bail!("{}: the job is {}; it has a report once it has succeeded", named(), document["status"]);
    }
    let kind = kind(report).with_context(|| format!("{}: no report of this program is like this", named()))?;
    let text = |name: &str| document[name].as_str().map(str::to_owned);
    let provenance = Provenance { job: text("id"), ended: text("finished_at"), command: command_beside(&args.file) };
    let beside =
        || Some(args.file.with_file_name("scores.ndjson")).filter(|scores| kind == "audit" && scores.is_file());
    let scores = match args.scores.clone().or_else(beside) {
        Some(file) => read_scores(&file, report).with_context(|| file.display().to_string())?,
        None => Vec::new(),
    };
    let page = Page { kind, report, scores: &scores, provenance: &provenance }.html();
    match &args.output {
        Some(target) => write(target, &page),
        None => Ok(stdout().lock().write_all(page.as_bytes())?),
    }
}

/// The kind of job that a report is of; `None` if it is of none.
fn kind(report: &Value) -> Option<&'static str> {
    let has = |names: &[&str]| names.iter().all(|name| report.get(name).is_some());
    if has(&["samples", "methods", "provenance"]) {
        return Some("audit");
    }
    let others: [(&[&str], &str); 4] = [
        (&["windows", "summary"], "memorization"),
        (&["verdict"], "test"),
        (&["methods", "texts"], "calibration"),
        (&["adapter", "steps"], "finetune"),
    ];
    others.into_iter().find(|(names, _)| has(names)).map(|(_, kind)| kind)
}

/// The command of the run whose folder has the report, if it has one.
fn command_beside(report: &Path) -> Option<String> {
    let content = std::fs::read(report.with_file_name("request.json")).ok()?;
    let request: Value = serde_json::from_slice(&content).ok()?;
    let arguments = request["arguments"].as_array()?.iter().map(|argument| argument.as_str().map(str::to_owned));
    Some(command(&arguments.collect::<Option<Vec<String>>>()?))
}

fn command(arguments: &[String]) -> String {
    let quoted =
        arguments.iter().map(|argument| match argument.contains(|c: char| c.is_whitespace() || "'\"\\$".contains(c)) {
            true => format!("'{}'", argument.replace('\'', r"'\''")),
            false => argument.clone(),
        });
    std::iter::once("pdr-audit".to_owned()).chain(quoted).collect::<Vec<_>>().join(" ")
}

/// The scores of the methods that are drawn, from lines with `label` and `scores`.
fn read_scores(file: &Path, report: &Value) -> Result<Vec<MethodScores>> {
    let mut drawn: Vec<MethodScores> = drawn_methods(report).into_iter().map(MethodScores::new).collect();
    for (number, line) in BufReader::new(File::open(file)?).lines().enumerate() {
        let row: Value = serde_json::from_str(&line?).with_context(|| format!("line {}", number + 1))?;
        let member = row["label"].as_u64().map(|label| label == 1);
        for method in &mut drawn {
            if let Some(score) = row["scores"][&method.label].as_f64() {
                method.add(member, score);
            }
        }
    }
    Ok(drawn)
}

/// Makes the page of an audit that a command with these arguments ran, and its figures, each with the name of its file.
pub fn audit_page(report: &Value, results: &AuditResults, arguments: &[String]) -> (String, Vec<(String, String)>) {
    let place =
        |label: &str| results.listed().find(|(_, column)| &*column.method.label == label).map(|(place, _)| place);
    let scores = |label: String| {
        let place = place(&label)?;
        let mut scores = MethodScores::new(label);
        results
            .rows
            .iter()
            .filter_map(|row| Some((row.member, row.scores[place]?)))
            .for_each(|(m, score)| scores.add(m, score));
        Some(scores)
    };
    let scores: Vec<MethodScores> = drawn_methods(report).into_iter().filter_map(scores).collect();
    let provenance = Provenance { command: Some(command(arguments)), ..Provenance::default() };
    let page = Page { kind: "audit", report, scores: &scores, provenance: &provenance };
    (page.html(), page.figures())
}

/// The arguments of this process.
pub fn own_arguments() -> Vec<String> {
    std::env::args_os().skip(1).map(|argument| argument.to_string_lossy().into_owned()).collect()
}

/// Writes a page or a figure to a file, as a whole or not at all.
pub fn write(target: &Path, page: &str) -> Result<()> {
    let written = NewFile::create(target).and_then(|file| file.write(page.as_bytes()));
    written.with_context(|| format!("cannot write {}", target.display()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_command_can_be_given_again() {
        let arguments = ["audit", "my texts.jsonl", "--methods", "loss,min_k", "it's"].map(str::to_owned);
        assert_eq!(command(&arguments), r"pdr-audit audit 'my texts.jsonl' --methods loss,min_k 'it'\''s'");
    }

    #[test]
    fn a_report_is_known_by_its_parts() {
        assert_eq!(kind(&json!({ "samples": {}, "methods": [], "provenance": {} })), Some("audit"));
        assert_eq!(kind(&json!({ "windows": {}, "summary": {} })), Some("memorization"));
        assert_eq!(kind(&json!({ "anything": 1 })), None);
    }
}
