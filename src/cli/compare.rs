//! `pdr-audit compare`: how two audits differ on the samples that both have.

use super::report::{REPORT, SCORES, report_in};
use super::report_format::{ReportArgs, hanging, number, signed};
use super::text_table::{LABEL, TextColumn, TextTable};
use super::verify::ScoreFile;
use crate::audits::{AuditComparison, ComparisonQuestion, LoadedScores, scores_of_report};
use crate::wire::number_of;
use anyhow::{Context, Result, anyhow, ensure};
use clap::Args;
use serde_json::Value;
use std::fmt::Write;
use std::path::{Path, PathBuf};

#[derive(Args)]
pub struct CompareArgs {
    /// Folder of audit a, as `audit --out` makes one.
    a: PathBuf,
    /// Folder of audit b.
    b: PathBuf,
    /// `retain`: does the model of audit b, which was made to forget the members, treat them as the model of audit a, which never saw them?
    #[arg(long, value_name = "QUESTION", value_parser = parsed)]
    question: Option<ComparisonQuestion>,
    #[command(flatten)]
    output: ReportArgs,
}

fn parsed(name: &str) -> Result<ComparisonQuestion, String> {
    name.to_owned().try_into()
}

/// Compares the audits of two folders.
pub fn run(args: &CompareArgs) -> Result<()> {
    let (a, b) = (loaded(&args.a)?, loaded(&args.b)?);
    let name = |folder: &Path| folder.display().to_string();
    let compared = AuditComparison::new([(name(&args.a), &a), (name(&args.b), &b)], args.question, &|| true);
    let compared = compared.map_err(|fault| anyhow!("--question: {fault}"))?;
    args.output.print(&serde_json::to_value(compared)?, render)
}

/// The scores in the folder of an audit.
fn loaded(folder: &Path) -> Result<LoadedScores> {
    let file = folder.join(REPORT);
    let named = || file.display().to_string();
    let content = std::fs::read(&file).with_context(|| format!("cannot read {}", named()))?;
    let document: Value = serde_json::from_slice(&content).with_context(named)?;
    let (kind, report) = report_in(&document).with_context(named)?;
    ensure!(kind == "audit", "{}: the report is of a {kind}, and audits are compared", named());
    let scores = ScoreFile::read(&folder.join(SCORES))?;
    scores_of_report(report, scores.lines).with_context(|| folder.display().to_string())
}

/// A table of the methods, and what the question finds.
fn render(report: &Value, width: Option<usize>) -> String {
    let mut out = String::new();
    let samples = &report["samples"];
    let count = |name: &str| samples[name].as_u64().unwrap_or_default();
    // Writing to a String cannot fail.
    let _ = writeln!(
        out,
        "{} in both, {} in a alone, {} in b alone, {} with another label in the other\n",
        number_of(count("paired"), "sample"),
        count("only_a"),
        count("only_b"),
        count("label_conflicts")
    );
    let numbers =
        ["AUROC a", "AUROC b", "difference", "95 % interval", "p", "mean difference"].map(TextColumn::numbers);
    let mut table = TextTable::new([TextColumn::words("method").cut_to(LABEL)].into_iter().chain(numbers));
    for method in elements(&report["methods"]) {
        let interval = method["interval"][0].as_f64().zip(method["interval"][1].as_f64());
        let signed_value = |name: &str| method[name].as_f64().map_or("-".to_owned(), signed);
        table.add([
            method["label"].as_str().unwrap_or_default().to_owned(),
            number(method["auroc_a"].as_f64()),
            number(method["auroc_b"].as_f64()),
            signed_value("delta"),
            interval.map_or("-".to_owned(), |(low, high)| format!("{} to {}", signed(low), signed(high))),
            method["p_value"].as_f64().map_or("-".to_owned(), |value| format!("{value:.2e}")),
            signed_value("mean_difference"),
        ]);
    }
    out.push_str(&table.render(width));
    let unlearning = &report["unlearning"];
    for sentence in elements(&unlearning["methods"]).filter_map(|method| method["sentence"].as_str()) {
        let _ = write!(out, "\n{}", hanging(sentence, width));
    }
    for assumption in elements(&unlearning["assumptions"]).filter_map(Value::as_str) {
        let _ = write!(out, "\n{}", hanging(&format!("assumes: {assumption}"), width));
    }
    out
}

fn elements(list: &Value) -> impl Iterator<Item = &Value> {
    list.as_array().into_iter().flatten()
}
