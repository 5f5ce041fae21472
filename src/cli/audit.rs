//! `pdr-audit audit`: labelled NDJSON or CSV in, a report out.

use super::{ScoringArgs, lines, progress, table};
use crate::audits::{self, AuditFailure, AuditMetrics, AuditRequest, Label, Sample, SampleId, samples_error};
use crate::methods::faults_of_texts;
use crate::scorer::Plan;
use crate::statistics::Bootstrap;
use anyhow::{Context, Result, bail, ensure};
use clap::{Args, ValueEnum};
use serde_json::Value;
use std::io::{BufRead, IsTerminal, Write, stdout};
use std::path::{Path, PathBuf};
use std::sync::Arc;

#[derive(Args)]
pub struct AuditArgs {
    /// NDJSON, or CSV with a header if it ends in `.csv`: `text` (or `input`), `label` (0 or 1), perhaps `id` and
    /// `group`; `-` for NDJSON on standard input.
    file: PathBuf,
    /// False-positive rates at which to report the true-positive rate.
    #[arg(long, value_name = "RATE", value_delimiter = ',', default_values_t = AuditMetrics::default().fpr_targets)]
    fpr: Vec<f64>,
    /// List the points of each ROC curve (JSON only).
    #[arg(long)]
    roc: bool,
    /// How often the samples are drawn anew to show how the numbers vary; 0 for not at all.
    #[arg(long, value_name = "NUMBER", default_value_t = Bootstrap::default().replicates)]
    replicates: usize,
    /// Seed of these draws.
    #[arg(long, value_name = "NUMBER", default_value_t = Bootstrap::default().seed)]
    seed: u64,
    /// How to print the report; by default a table on a terminal and JSON elsewhere.
    #[arg(long, value_enum)]
    format: Option<ReportFormat>,
    #[command(flatten)]
    scoring: ScoringArgs,
}

#[derive(Clone, Copy, PartialEq, ValueEnum)]
enum ReportFormat {
    Json,
    Table,
}

/// Audits a file.
pub async fn run(args: AuditArgs, config: Option<&Path>) -> Result<()> {
    ensure!(args.fpr.iter().all(|fpr| (0.0..=1.0).contains(fpr)), "--fpr takes rates from 0 to 1");
    let samples = read(&args.file)?;
    let neighbors = samples.iter().all(|sample| sample.neighbors.is_some());
    let (_, scorer, plan) = args.scoring.start(config, true, neighbors).await?;
    let texts = samples.iter().map(|sample| (sample.text.as_str(), sample.neighbors.as_deref()));
    if let [first, others @ ..] = &*faults_of_texts(texts, "sample ", &plan.methods, "--methods: ") {
        let more = if others.is_empty() { String::new() } else { format!(" (and {} faults more)", others.len()) };
        bail!("{}: {}{more}", first.pointer, first.detail);
    }
    let bootstrap = Bootstrap { replicates: args.replicates, seed: args.seed, ..Bootstrap::default() };
    let bootstrap = (args.replicates > 0).then_some(bootstrap);
    if let Some((_, fault)) = bootstrap.iter().flat_map(Bootstrap::faults).next() {
        bail!("--replicates: {fault}");
    }
    let metrics = AuditMetrics { fpr_targets: args.fpr, roc: args.roc, bootstrap };
    let bar = progress::bar(Some(samples.len() as u64));
    let Plan { model, methods, overflow, .. } = plan;
    let request = AuditRequest { model, methods: methods.to_vec(), overflow, metrics, samples };
    let outcome = audits::run(Arc::new(request), &scorer, |done| bar.set_position(done as u64)).await;
    bar.finish_and_clear();
    super::finish(&scorer).await;
    let report = outcome.map_err(explained)?.report;
    let default = if stdout().is_terminal() { ReportFormat::Table } else { ReportFormat::Json };
    match args.format.unwrap_or(default) {
        ReportFormat::Json => writeln!(stdout().lock(), "{}", serde_json::to_string_pretty(&report)?)?,
        ReportFormat::Table => write!(stdout().lock(), "{}", table::render(&report))?,
    }
    Ok(())
}

/// A failure of the audit as the command line tells it.
fn explained(failure: AuditFailure) -> anyhow::Error {
    match failure {
        AuditFailure::Scorer(error) => super::explained(error),
        failure => failure.into(),
    }
}

/// Reads all samples; a bad line is refused with its number, and nothing is audited.
fn read(path: &Path) -> Result<Vec<Sample>> {
    let cannot = || format!("cannot read {}", path.display());
    let (reader, _) = lines::open(path).with_context(cannot)?;
    let csv = path.extension().is_some_and(|e| e.eq_ignore_ascii_case("csv"));
    let samples = if csv { read_csv(reader) } else { read_ndjson(reader) }.with_context(cannot)?;
    match samples_error(&samples) {
        Some(fault) => bail!("{}: {fault}", path.display()),
        None => Ok(samples),
    }
}

fn read_ndjson(mut reader: Box<dyn BufRead + Send>) -> Result<Vec<Sample>> {
    let (mut samples, mut number) = (Vec::new(), 0);
    while let Some(line) = lines::next(&mut *reader, &mut number, u64::MAX - 1)? {
        let sample = line.and_then(|l| lines::parse(&l).map_err(|bad| bad.fault)).and_then(|line| {
            let label = match line.others.get("label") {
                None | Some(Value::Null) => None,
                Some(label) => {
                    Some(self::label(label.as_f64()).ok_or_else(|| format!("`label` is {label}, not 0 or 1"))?)
                }
            };
            let group = match line.others.get("group") {
                None | Some(Value::Null) => None,
                Some(Value::String(group)) => Some(group.clone()),
                Some(other) => return Err(format!("`group` is {other}, not a string")),
            };
            Ok(Sample { id: line.id.map(SampleId::Text), text: line.text, label, group, neighbors: line.neighbors })
        });
        match sample {
            Ok(sample) => samples.push(sample),
            Err(fault) => bail!("line {number}: {fault}"),
        }
    }
    Ok(samples)
}

fn read_csv(reader: Box<dyn BufRead + Send>) -> Result<Vec<Sample>> {
    let mut reader = csv::Reader::from_reader(reader);
    let headers = reader.headers()?.clone();
    let column = |name: &str| headers.iter().position(|h| h.trim() == name);
    let Some(text) = column("text").or(column("input")) else { bail!("the header names no column `text` or `input`") };
    let (labels, id, group) = (column("label"), column("id"), column("group"));
    let mut samples = Vec::new();
    for record in reader.records() {
        let record = record?;
        let line = record.position().map_or(0, csv::Position::line);
        let field = |place: Option<usize>| place.and_then(|place| record.get(place)).filter(|f| !f.is_empty());
        let label = match field(labels).map(str::trim) {
            None => None,
            Some(label) => match self::label(label.parse().ok()) {
                Some(label) => Some(label),
                None => bail!("line {line}: `label` is {label:?}, not 0 or 1"),
            },
        };
        let text = record.get(text).unwrap_or_default().to_owned();
        let owned = |place| field(place).map(str::to_owned);
        samples.push(Sample { id: owned(id).map(SampleId::Text), text, label, group: owned(group), neighbors: None });
    }
    Ok(samples)
}

/// 1 and 0, also as 1.0 and 0.0, which is what a column of a data frame may hold.
fn label(number: Option<f64>) -> Option<Label> {
    number.map(Label::new).filter(|label| label.is_member().is_some())
}
