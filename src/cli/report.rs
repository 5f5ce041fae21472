//! `pdr-audit report`: the JSON of a report in, a page out.

use crate::audits::AuditResults;
use crate::new_file::NewFile;
use anyhow::{Context, Result, bail, ensure};
use clap::Args;
use pages::{DrawnScores, Page, Provenance, TextStrip, document_name};
use serde_json::Value;
use std::collections::HashMap;
use std::fs::File;
use std::io::{BufRead, BufReader, Write, stdout};
use std::path::{Path, PathBuf};

/// Names of a report and of its scores in the folder of an audit.
pub const REPORT: &str = "report.json";
pub const SCORES: &str = "scores.ndjson";

#[derive(Args)]
pub struct ReportPageArgs {
    /// Report as JSON: what a command printed with `--format json`, `report.json` of an audit's folder, or a job as the service
    /// answers it.
    file: PathBuf,
    /// Scores of an audit's samples as NDJSON, from which curves and distributions are drawn: `scores.ndjson` of its folder, or
    /// what `GET /v1/audits/{id}/scores` answers. By default `scores.ndjson` beside a report that is named `report.json`.
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
    let (kind, report) = report_in(&document).with_context(named)?;
    let text = |name: &str| document[name].as_str().map(str::to_owned);
    // The files beside it are of the same run only where it has its name in the folder of one.
    let in_folder = kind == "audit" && args.file.file_name().is_some_and(|name| name == REPORT);
    let command = command_beside(&args.file).filter(|_| in_folder);
    let (job, ended, model) = (text("id"), text("finished_at"), text("model"));
    let provenance = Provenance { job, ended, command, model };
    let beside = || Some(args.file.with_file_name(SCORES)).filter(|scores| in_folder && scores.is_file());
    let scores = match args.scores.clone().or_else(beside) {
        Some(_) if kind != "audit" => bail!("--scores: the report is of a {kind}, whose page draws no scores"),
        Some(file) => read_scores(&file, report).with_context(|| file.display().to_string())?,
        None => DrawnScores::default(),
    };
    let page = Page { kind, report, scores: &scores, texts: &[], provenance: &provenance }.html();
    match &args.output {
        Some(target) => write(target, &page),
        None => Ok(stdout().lock().write_all(page.as_bytes())?),
    }
}

/// The kind and the report of a document: a report, or a job that has succeeded.
///
/// # Errors
/// If it is neither.
pub fn report_in(document: &Value) -> Result<(&'static str, &Value)> {
    let report = if document["results"].is_object() { &document["results"] } else { document };
    ensure!(report.is_object(), "a report is a JSON object");
    if document["status"].as_str().is_some_and(|status| status != "succeeded") {
        bail!("the job is {}; it has a report once it has succeeded", document["status"]);
    }
    Ok((kind(report).context("no report of this program is like this")?, report))
}

/// The kind of job that a report is of; `None` if it is of none.
fn kind(report: &Value) -> Option<&'static str> {
    let has = |names: &[&str]| names.iter().all(|name| report.get(name).is_some());
    let kinds: [(&[&str], &str); 6] = [
        (&["samples", "methods", "provenance", "position_profile"], "audit"),
        (&["windows", "summary"], "memorization"),
        (&["kind", "verdict", "provenance"], "test"),
        (&["adapter", "steps"], "finetune"),
        (&["a", "b", "methods"], "comparison"),
        (&["methods", "clusters"], "calibration"),
    ];
    kinds.into_iter().find(|(names, _)| has(names)).map(|(_, kind)| kind)
}

/// The command of the run whose folder has the report, if it has one.
fn command_beside(report: &Path) -> Option<String> {
    let content = std::fs::read(report.with_file_name("request.json")).ok()?;
    let request: Value = serde_json::from_slice(&content).ok()?;
    let arguments = request["arguments"].as_array()?.iter().map(|argument| argument.as_str().map(str::to_owned));
    Some(command(&arguments.collect::<Option<Vec<String>>>()?))
}

/// The command with these arguments, quoted for a shell.
fn command(arguments: &[String]) -> String {
    let is_plain = |argument: &str| {
        !argument.is_empty()
            && argument.chars().all(|character| character.is_alphanumeric() || "_-+=:,./@%".contains(character))
    };
    let quoted = arguments.iter().map(|argument| match is_plain(argument) {
        true => argument.clone(),
        false => format!("'{}'", argument.replace('\'', r"'\''")),
    });
    std::iter::once("pdr-audit".to_owned()).chain(quoted).collect::<Vec<_>>().join(" ")
}

/// The scores of the methods that are drawn, from lines with `label` and `scores`.
fn read_scores(file: &Path, report: &Value) -> Result<DrawnScores> {
    let mut drawn = DrawnScores::new(report);
    for (number, line) in BufReader::new(File::open(file)?).lines().enumerate() {
        let (line, place) = (line?, || format!("line {}", number + 1));
        if line.trim().is_empty() {
            continue;
        }
        let row: Value = serde_json::from_str(&line).with_context(place)?;
        let member = match &row["label"] {
            Value::Null => None,
            label if *label == 1 => Some(true),
            label if *label == 0 => Some(false),
            label => bail!("{}: the label is 0, 1 or null, not {label}", place()),
        };
        let document = row.get("document").map(document_name);
        drawn.add(member, document.as_deref(), |label| row["scores"][label].as_f64());
    }
    for (method, scores) in drawn.methods.iter().map(|scores| (method(report, &scores.label), scores)) {
        let (known, read) = (method["scored"].as_u64(), scores.count() as u64);
        ensure!(
            known == Some(read),
            "these are scores of another audit: {read} of `{}`, where the report has {}",
            scores.label,
            method["scored"]
        );
    }
    Ok(drawn)
}

/// The method of this label in a report; null where there is none.
fn method<'a>(report: &'a Value, label: &str) -> &'a Value {
    let mut methods = report["methods"].as_array().into_iter().flatten();
    methods.find(|method| method["label"] == label).unwrap_or(&Value::Null)
}

/// Draws the page of an audit that a command with these arguments ran, with `texts` token by token: what `draw` makes of it.
pub fn draw_audit<R>(
    report: &Value,
    results: &AuditResults,
    texts: &[TextStrip],
    arguments: &[String],
    draw: impl FnOnce(Page) -> R,
) -> R {
    let places: HashMap<&str, usize> = results.listed().map(|(place, column)| (&*column.method.label, place)).collect();
    let mut scores = DrawnScores::new(report);
    for row in &results.rows {
        let document = row.document.as_ref().map(ToString::to_string);
        scores.add(row.member, document.as_deref(), |label| row.scores[*places.get(label)?]);
    }
    let provenance = Provenance { command: Some(command(arguments)), ..Provenance::default() };
    draw(Page { kind: "audit", report, scores: &scores, texts, provenance: &provenance })
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
        let arguments =
            ["audit", "my texts.jsonl", "--methods", "loss,min_k", "it's", "ref(reference=x)", ""].map(str::to_owned);
        let quoted = r"pdr-audit audit 'my texts.jsonl' --methods loss,min_k 'it'\''s' 'ref(reference=x)' ''";
        assert_eq!(command(&arguments), quoted);
    }

    #[test]
    fn a_report_is_known_by_its_parts() {
        assert_eq!(
            kind(&json!({ "samples": {}, "methods": [], "provenance": {}, "position_profile": [] })),
            Some("audit")
        );
        assert_eq!(
            kind(&json!({ "samples": {}, "methods": [], "provenance": {}, "kind": "rank", "verdict": {} })),
            Some("test")
        );
        assert_eq!(kind(&json!({ "methods": [], "clusters": 60, "forward_passes": 60 })), Some("calibration"));
        assert_eq!(kind(&json!({ "windows": {}, "summary": {} })), Some("memorization"));
        assert_eq!(kind(&json!({ "anything": 1 })), None);
    }
}
