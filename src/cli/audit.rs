//! `pdr-audit audit`: samples in, a report out.

use super::audit_scores::ScoreRows;
use super::audit_table::scores_of_results;
use super::evidence_args::EvidenceArgs;
use super::export::result_file;
use super::input::InputArgs;
use super::progress::{self, Progress};
use super::report_format::{ReportArgs, ReportFormat};
use super::run_folder::{RunFolder, SignedFiles};
use super::runtime::interrupted;
use super::scoring_args::{self, ScoringArgs, variant};
use super::sign::{SigningKeyArgs, raw};
use super::{audit_table, plan_file, report};
use crate::audits::{
    self, AuditFailure, AuditMetrics, AuditOptions, AuditOutcome, AuditPlan, AverageOver, MOST_STRIPS, RunEvent,
    ServedForecast, TuningProgress, text_strips, with_default_primary,
};
use crate::config::Settings;
use crate::datasets::{DatasetDigest, Sample, SampleBlocks, SampleTotals};
use crate::new_file::NewFile;
use crate::samples::RecordPlace;
use crate::scorer::Scorer;
use crate::wire::number_of;
use anyhow::{Context, Result, anyhow, bail, ensure};
use attestation::{LeafSalts, RunTimes, SigningKey, sign_eval_result, sign_report};
use clap::Args;
use futures::{StreamExt, TryStreamExt};
use mia::methods::{Fault, LabelledMethod, Scope, faults_of_texts, possible_default_methods};
use mia::statistics::Bootstrap;
use pages::TextStrip;
use serde_json::Value;
use std::io::{Write, stdout};
use std::num::ParseFloatError;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use time::OffsetDateTime;
use time::format_description::well_known::Rfc3339;

#[derive(Args)]
pub struct AuditArgs {
    #[command(flatten)]
    input: InputArgs,
    /// Column or field of the labels; by default `label`.
    #[arg(long, value_name = "NAME", help_heading = "Texts")]
    label_column: Option<String>,
    /// False-positive rates at which to report the true-positive rate.
    #[arg(long, value_name = "RATE", help_heading = "Statistics", value_delimiter = ',', allow_negative_numbers = true,
        default_values_t = AuditMetrics::default().fpr_targets)]
    fpr: Vec<f64>,
    /// List the points of each ROC curve (JSON only).
    #[arg(long, help_heading = "Statistics")]
    roc: bool,
    /// Number of times to draw the samples anew to show how the numbers vary; 0 for not at all.
    #[arg(long, value_name = "NUMBER", help_heading = "Statistics", default_value_t = Bootstrap::default().replicates)]
    replicates: usize,
    /// Seed of these draws.
    #[arg(long, value_name = "NUMBER", help_heading = "Statistics", default_value_t = Bootstrap::default().seed)]
    seed: u64,
    /// Print each method's unweighted mean over the groups as well.
    #[arg(long, value_name = "WHAT", help_heading = "Statistics", value_parser = variant::<AverageOver>())]
    average: Option<AverageOver>,
    /// List this many tokens, by class, of those that min_k and min_k_plus_plus select most often (JSON only).
    #[arg(long, value_name = "NUMBER", help_heading = "Statistics")]
    selected_tokens: Option<usize>,
    /// Refuse an audit whose cost would be higher by the forecast, in the currency of `served.price_per_million_tokens`.
    #[arg(long, value_name = "COST", help_heading = "Model", allow_negative_numbers = true, value_parser = cost)]
    max_cost: Option<f64>,
    #[command(flatten)]
    evidence: EvidenceArgs,
    /// A plan that `plan` wrote, which the audit must keep to and the report cites.
    #[arg(long, value_name = "FILE", help_heading = "Verdict")]
    plan: Option<PathBuf>,
    #[command(flatten)]
    report: ReportArgs,
    /// Write the scores of each sample to this file, with the threshold of each false-positive rate and whether the score reaches
    /// it: as CSV or Parquet if the name ends in `.csv` or `.parquet`, and as NDJSON if it ends in `.ndjson` or `.jsonl`.
    #[arg(long, value_name = "FILE", help_heading = "Output", value_parser = result_file())]
    scores: Option<PathBuf>,
    /// Write the report to this file as a page of HTML that needs nothing beside it.
    #[arg(long = "report", value_name = "FILE", help_heading = "Output")]
    page: Option<PathBuf>,
    /// Show this many of the first texts on the page (`--report`, `--out`), token by token, with weights and what the primary method
    /// selects; at most 100. They are scored again.
    #[arg(long, value_name = "NUMBER", help_heading = "Output", default_value_t = 0,
        value_parser = clap::value_parser!(u16).range(0..=MOST_STRIPS as i64))]
    texts: u16,
    #[command(flatten)]
    signing: SigningKeyArgs,
    #[command(flatten)]
    scoring: ScoringArgs,
}

/// Goal of an audit.
pub enum AuditGoal<'a> {
    /// Its report is printed.
    Report,
    /// Its report is printed, and everything is kept in a folder.
    Folder(Box<RunFolder>),
    /// Nothing is scored; its plan is written to a file.
    Plan(&'a Path),
}

impl AuditGoal<'_> {
    fn folder(&self) -> Option<&RunFolder> {
        if let Self::Folder(folder) = self { Some(folder) } else { None }
    }
}

/// Audits a file, to this end.
pub async fn run(args: AuditArgs, goal: AuditGoal<'_>, config: Option<&Path>) -> Result<()> {
    for target in args.scores.iter().chain(&args.page) {
        // A place that cannot be written is found now rather than after hours.
        drop(NewFile::create(target).with_context(|| format!("cannot write {}", target.display()))?);
    }
    let settings = args.scoring.settings(config, &args.input.files())?;
    let signing_key = args.signing.read(&settings.0)?;
    ensure!(
        signing_key.is_some() || args.report.format != Some(ReportFormat::Dsse),
        "--format dsse: give the key that signs (--signing-key)"
    );
    let interrupted_run = goal.folder().and_then(RunFolder::before);
    let started_at = match interrupted_run {
        Some(before) => before.started_at.clone(),
        None => OffsetDateTime::now_utc().format(&Rfc3339).ok(),
    };
    let chat = scoring_args::chat_renderer(&settings);
    let mut options = args.input.reader.options(None, true, args.label_column.clone());
    options.columns.chat = Some(chat.clone());
    let input = args.input.clone();
    // A model's files may have to be downloaded for the first conversation.
    let read = tokio::task::spawn_blocking(move || input.samples(&options)).await??;
    let totals = SampleTotals::count(read.iter().map(|(_, read)| &read.sample))?;
    if let Some(fault) = totals.audit_fault(|number| read[number].0.to_string()) {
        bail!("{}: {fault}", args.input.file.display());
    }
    let (places, read): (Vec<_>, Vec<_>) = read.into_iter().unzip();
    let (samples, others): (Vec<_>, Vec<_>) = read.into_iter().map(|read| (read.sample, read.others)).unzip();
    let neighbors = samples.iter().all(|sample| sample.neighbors.is_some());
    let (mut settings, options) = args.evidence.options(settings)?;
    if let Some(folder) = goal.folder() {
        settings.0.engine.disk_cache = Some(folder.statistics());
    }
    let defaults = |scope: &Scope| {
        // The calibration is scored by the same methods, so that a reference serves it as well.
        let reference = || scope.reference.filter(|_| options.calibration.is_some()).map(str::to_owned);
        let reference = options.control_model(scope, &totals).or_else(reference);
        with_default_primary(possible_default_methods(scope), reference.as_deref())
    };
    let (scorer, plan) = args.scoring.start(&settings, true, neighbors, defaults).await?;
    let ids = scorer.pool().ids();
    let model = scorer.pool().find(Some(&plan.model))?;
    check_texts(&samples, &places, &plan.methods, &args.input.file)?;
    let bootstrap = Bootstrap { replicates: args.replicates, seed: args.seed, ..Bootstrap::default() };
    let bootstrap = (args.replicates > 0).then_some(bootstrap);
    let metrics = AuditMetrics {
        fpr_targets: args.fpr,
        roc: args.roc,
        bootstrap,
        average: args.average.into_iter().collect(),
        selected_tokens: args.selected_tokens,
        ..AuditMetrics::default()
    };
    let options = AuditOptions {
        model: plan.model.clone(),
        methods: plan.methods.to_vec(),
        overflow: plan.overflow,
        metrics,
        evidence: options,
    };
    let settled = options.settle(&scorer.scope(&ids, Some(&model), true, neighbors), &totals);
    let mut request = settled.map_err(|faults| flag_fault(&faults))?;
    let served = ServedForecast::new(&request, totals.samples as u64, totals.text_bytes, scorer.pool());
    if let Some(fault) = args.max_cost.and_then(|most| ServedForecast::cost_fault(served.as_ref(), most)) {
        bail!("--max-cost: {fault}");
    }
    // Reference models are downloaded before the bar of the samples is shown.
    progress::for_models(scorer.pool(), scorer.bind(&plan)).await.map_err(scoring_args::explained)?;
    let planned = AuditPlan::new(&request, digest(&samples)?);
    if let AuditGoal::Plan(target) = goal {
        if let Some(served) = served {
            eprintln!("the audit sends {served}");
        }
        return plan_file::write(target, &planned);
    }
    if let Some(folder) = goal.folder() {
        folder.begin(&planned)?;
        folder.log(&format!("{} to audit with the model `{}`", number_of(samples.len(), "sample"), plan.model));
    }
    if let Some(file) = &args.plan {
        request.evidence.plan = Some(plan_file::cite(file, &planned)?);
    }
    let calibration = args.evidence.calibrate(&plan, &args.input.reader, chat, &scorer).await?;
    let (total, progress) = (samples.len(), Progress::new(Some(samples.len() as u64)));
    let show = |event| match event {
        RunEvent::Bound { .. } => {}
        RunEvent::Forecast(forecast) if forecast.known_works.is_some() || forecast.served.is_some() => {
            progress.tell(&forecast.to_string());
        }
        RunEvent::Forecast(_) => {}
        RunEvent::Shared(shared) => {
            if let Some(sentence) = shared.sentence() {
                progress.tell(&sentence);
            }
        }
        RunEvent::Read { samples } => progress.show(None, format!("read {}", number_of(samples, "sample"))),
        RunEvent::Testing => progress.show(None, "permutations and the report".to_owned()),
        RunEvent::Tuned(TuningProgress { seed, step, steps, loss }) => {
            progress.show(None, format!("tuning with seed {seed}: step {step} of {steps}, loss {loss:.4}"));
        }
        RunEvent::Scored { done } => {
            progress.show(Some(done as u64), format!("{done} of {}", number_of(total, "sample")))
        }
    };
    let samples = SampleBlocks::Memory(samples.into());
    let outcome = tokio::select! {
        outcome = audits::run(Arc::new(request), &samples, calibration, &scorer, show) => Some(outcome),
        () = interrupted() => None,
    };
    let done = progress.position();
    drop(progress);
    let texts = match &outcome {
        Some(Ok(outcome)) if args.texts > 0 => shown_texts(&samples, args.texts, outcome, &scorer).await,
        _ => Ok(Vec::new()),
    };
    scoring_args::finish(&scorer).await;
    let Some(outcome) = outcome else {
        let message =
            format!("interrupted after {done} of {}; {}", number_of(total, "sample"), kept(&goal, &settings.0));
        goal.folder().inspect(|folder| folder.log(&message));
        bail!(message);
    };
    let AuditOutcome { report: audit, results } = outcome.map_err(explained)?;
    let (json, texts) = (serde_json::to_value(&audit)?, texts?);
    let salts = signing_key.as_ref().map(|_| LeafSalts::random()).transpose().context("no random numbers")?;
    let rows = ScoreRows { report: &audit, results: &results, others: &others, salts: salts.as_ref() };
    let signed = signing_key.map(|key| sign(&json, rows, started_at, &key)).transpose()?;
    match (args.report.format, &signed) {
        (Some(ReportFormat::Dsse), Some(signed)) => stdout().lock().write_all(signed.report.as_bytes())?,
        _ => args.report.print(&json, |json, width| audit_table::render(json, &scores_of_results(&results), width))?,
    }
    // Last: where the file cannot be written, the report is there all the same.
    if let Some(target) = &args.scores {
        rows.write(target)?;
    }
    if let Some(target) = &args.page {
        let arguments = goal.folder().map_or_else(report::own_arguments, RunFolder::arguments);
        let page = report::draw_audit(&json, &results, &texts, &arguments, |page| page.html());
        report::write(target, &page)?;
    }
    if let Some(folder) = goal.folder() {
        folder.complete(&json, rows, &texts, signed.as_ref())?;
    }
    Ok(())
}

/// Reads a maximum cost.
fn cost(text: &str) -> Result<f64, String> {
    text.parse().map_err(|error: ParseFloatError| error.to_string()).and_then(ServedForecast::checked_cost)
}

/// The first texts, token by token.
async fn shown_texts(
    samples: &SampleBlocks,
    count: u16,
    outcome: &AuditOutcome,
    scorer: &Scorer,
) -> Result<Vec<TextStrip>> {
    let first = samples.samples().take(count.into()).map_ok(|(_, sample)| sample).try_collect().await?;
    text_strips(&outcome.report.provenance, first, scorer).await.map_err(explained)
}

/// Signs the report, and its verdict as `eval-result` if there is one.
fn sign(json: &Value, rows: ScoreRows, started_at: Option<String>, key: &SigningKey) -> Result<SignedFiles> {
    let finished_at = OffsetDateTime::now_utc().format(&Rfc3339).ok();
    let run = RunTimes { job: None, started_at, finished_at };
    let envelope = serde_json::to_string(&sign_report("audit", run.clone(), raw(json)?, Some(rows.trees()?), key)?)?;
    let report = format!("{envelope}\n");
    let verdict = sign_eval_result("audit", &run, json, report.as_bytes(), key)?;
    let eval_result = verdict.map(|verdict| serde_json::to_string(&verdict)).transpose()?;
    Ok(SignedFiles { report, eval_result: eval_result.map(|line| format!("{line}\n")) })
}

/// Says what an audit that was interrupted has left, and how to go on.
fn kept(goal: &AuditGoal, settings: &Settings) -> String {
    match (goal.folder(), &settings.engine.disk_cache) {
        (Some(folder), _) => format!("what was computed is kept; go on with {}", folder.command_to_resume()),
        (None, Some(cache)) => {
            format!("what was computed is kept in {}, and the same command goes on there", cache.display())
        }
        (None, None) => "nothing is kept; with --out DIR an audit can be resumed".to_owned(),
    }
}

fn digest(samples: &[Sample]) -> Result<String> {
    let mut digest = DatasetDigest::default();
    samples.iter().try_for_each(|sample| digest.add(sample).map(|_| ()))?;
    Ok(digest.address())
}

/// The first fault of a request, under the flag that it comes from.
pub fn flag_fault(faults: &[Fault]) -> anyhow::Error {
    let Some(Fault { pointer, detail }) = faults.first() else {
        return anyhow!("the request has a fault without a name");
    };
    if let Some(place) = pointer.strip_prefix("/methods") {
        return anyhow!("--methods: {place}: {detail}");
    }
    let field = pointer.strip_prefix("/metrics").unwrap_or(pointer);
    let flag = match field.trim_start_matches('/').split('/').collect::<Vec<_>>()[..] {
        ["fpr_targets", ..] => "fpr".to_owned(),
        ["calibration", "share"] => "calibration-share".to_owned(),
        ["bootstrap" | "decisions", field] | [field, ..] => field.replace('_', "-"),
        [] => String::new(),
    };
    anyhow!("--{flag}: {detail}")
}

/// Refuses texts that do not fit the methods, by the first fault.
fn check_texts(samples: &[Sample], places: &[RecordPlace], methods: &[LabelledMethod], file: &Path) -> Result<()> {
    let texts = samples.iter().map(|sample| (sample.text.as_str(), sample.neighbors.as_deref()));
    let faults = faults_of_texts(texts, |index| places[index].to_string(), methods, "");
    let [first, others @ ..] = &*faults else { return Ok(()) };
    let more =
        if others.is_empty() { String::new() } else { format!(" (and {} more)", number_of(others.len(), "fault")) };
    let place = match first.pointer.strip_suffix("/neighbors") {
        Some(place) => format!("{}: {place}: `neighbors`", file.display()),
        None => format!("--methods: {}", first.pointer),
    };
    bail!("{place}: {}{more}", first.detail)
}

/// A failure of the audit as the command line tells it.
pub fn explained(failure: AuditFailure) -> anyhow::Error {
    match failure {
        AuditFailure::Scorer(error) => scoring_args::explained(error),
        failure => failure.into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fault_is_reported_under_its_flag() {
        for (pointer, prefix) in [
            ("/metrics/fpr_targets/1", "--fpr: "),
            ("/metrics/bootstrap/replicates", "--replicates: "),
            ("/metrics/selected_tokens", "--selected-tokens: "),
            ("/calibration/share", "--calibration-share: "),
            ("/decisions/fdr", "--fdr: "),
            ("/control", "--control: "),
            ("/methods/0/split", "--methods: /0/split: "),
        ] {
            let faults = [Fault::new(pointer, "why"), Fault::new("/prior", "another")];
            assert_eq!(flag_fault(&faults).to_string(), format!("{prefix}why"));
        }
    }
}
