//! `pdr-audit test`: tests that need no threshold.

use super::audit::{explained, flag_fault};
use super::evidence::{stated, verdict};
use super::evidence_args::named_control;
use super::input::ReaderArgs;
use super::progress::{self, Progress};
use super::report_format::{self, ReportFormat};
use super::scoring_args::{self, NamedSettings, ScoringArgs};
use super::test_input::TestInput;
use crate::audits::{
    AuditMetrics, AuditRequest, Commitment, EvidenceOptions, OrderTexts, RunEvent, TestMethod, TestReport, TestRequest,
    TestVerdict, commitment_fault, run_test, test_method_faults,
};
use crate::datasets::SampleBlocks;
use crate::scorer::Plan;
use crate::wire::number_of;
use anyhow::{Result, bail};
use clap::{Args, Subcommand};
use mia::methods::{Fault, Scope, faults_of_texts};
use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::sync::Arc;

#[derive(Args)]
pub struct TestArgs {
    #[command(subcommand)]
    command: TestCommand,
}

#[derive(Subcommand)]
enum TestCommand {
    /// Compare texts that may have been trained on with texts of the same source that were not.
    Dataset(Box<SuspectArgs>),
    /// Compare published texts with private rewrites of the same time.
    Paired(Box<UnitArgs>),
    /// Rank published canaries among their twins, which were made in the same way and never published.
    Rank(Box<UnitArgs>),
    /// Compare the published order of the items of a dataset with random orders.
    Order(Box<OrderArgs>),
}

#[derive(Args)]
struct SuspectArgs {
    /// Texts that may have been trained on, a file as `score` reads one.
    suspects: PathBuf,
    /// Texts of the same source that were not.
    held_out: PathBuf,
    #[command(flatten)]
    reader: ReaderArgs,
    #[command(flatten)]
    common: CommonArgs,
}

#[derive(Args)]
struct UnitArgs {
    /// NDJSON, plain or compressed with gzip or zstd; `-` for standard input. Of `paired` each line is `{"public": text, "private":
    /// [texts]}`, of `rank` `{"text": text, "twins": [texts]}`.
    file: PathBuf,
    #[command(flatten)]
    common: CommonArgs,
}

#[derive(Args)]
struct OrderArgs {
    /// NDJSON, plain or compressed with gzip or zstd; `-` for standard input. Each line is a shard: an array of its items in the order in
    /// which they were published.
    file: PathBuf,
    /// Number of random orders that each shard is compared with; by default 50.
    #[arg(long, value_name = "NUMBER")]
    shuffles: Option<usize>,
    /// Seed of these orders; by default 0.
    #[arg(long, value_name = "NUMBER")]
    seed: Option<u64>,
    /// Separator between two items; by default a line feed.
    #[arg(long, value_name = "TEXT")]
    separator: Option<String>,
    #[command(flatten)]
    common: CommonArgs,
}

/// Options common to all tests.
#[derive(Args)]
pub struct CommonArgs {
    /// Label or name of the method that the verdict is about; by default ref, else min_k_plus_plus, else the first method.
    #[arg(long, value_name = "METHOD")]
    pub primary: Option<String>,
    /// A model that has not seen the texts in question, named as `--model` is, or `none`; by default the reference model for `dataset`
    /// and `order`, and none for `paired` and `rank`.
    #[arg(long, value_name = "MODEL")]
    pub control: Option<String>,
    /// The SHA-256 that was published before the model was made, over the kind, the primary method, the nonce and the texts, as
    /// docs/api.md describes it.
    #[arg(long, value_name = "SHA256")]
    pub commitment: Option<String>,
    /// Nonce that the commitment covers beside the texts.
    #[arg(long, value_name = "TEXT", requires = "commitment")]
    pub nonce: Option<String>,
    /// Format of the report; by default a table on a terminal and JSON elsewhere.
    #[arg(long, value_enum)]
    pub format: Option<ReportFormat>,
    #[command(flatten)]
    pub scoring: ScoringArgs,
}

pub async fn run(args: TestArgs, config: Option<&Path>) -> Result<()> {
    let (input, common) = match args.command {
        TestCommand::Dataset(args) => (TestInput::dataset(&args.suspects, &args.held_out, &args.reader)?, args.common),
        TestCommand::Paired(args) => (TestInput::paired(&args.file)?, args.common),
        TestCommand::Rank(args) => (TestInput::rank(&args.file)?, args.common),
        TestCommand::Order(args) => {
            let OrderArgs { file, shuffles, seed, separator, common } = *args;
            let change = |order: OrderTexts| OrderTexts {
                shuffles: shuffles.unwrap_or(order.shuffles),
                seed: seed.unwrap_or(order.seed),
                separator: separator.unwrap_or(order.separator),
                shards: order.shards,
            };
            (TestInput::order(&file, change)?, common)
        }
    };
    test(input, common, config).await
}

/// Runs a test of these texts and prints its report.
pub async fn test(input: TestInput, common: CommonArgs, config: Option<&Path>) -> Result<()> {
    if let Some(fault) = input.texts.faults().first() {
        return Err(input.fault(fault));
    }
    if let Some(fault) = common.commitment.as_deref().and_then(commitment_fault) {
        bail!("--commitment: {fault}");
    }
    let (settings, named) = common.scoring.settings(config, &[])?;
    let (settings, control) = named_control(settings, common.control.as_deref())?;
    perform(input, control, common, &(settings, named)).await
}

async fn perform(
    input: TestInput,
    control: Option<Option<String>>,
    common: CommonArgs,
    settings: &NamedSettings,
) -> Result<()> {
    let (kind, primary) = (input.texts.kind(), common.primary);
    let options = EvidenceOptions { primary, control, ..EvidenceOptions::default() };
    let defaults = |scope: &Scope| options.default_test_methods(kind, scope);
    let (scorer, plan) = common.scoring.start(settings, false, false, defaults).await?;
    let ids = scorer.pool().ids();
    let model = scorer.pool().find(Some(&plan.model))?;
    let scope = scorer.scope(&ids, Some(&model), false, false);
    let evidence = options.settle_test(kind, &plan.methods, &scope).map_err(|faults| flag_fault(&faults))?;
    let (samples, layout) = (input.texts.samples(), input.texts.layout());
    let mut faults = test_method_faults(&plan.methods);
    if faults.is_empty() {
        let texts = samples.iter().map(|sample| (sample.text.as_str(), None));
        faults = faults_of_texts(texts, layout.pointers(), &plan.methods, "");
    }
    if let Some(Fault { pointer, detail }) = faults.first() {
        bail!("--methods: {pointer}: {detail}");
    }
    // Reference models are downloaded before the bar of the texts is shown.
    progress::for_models(scorer.pool(), scorer.bind(&plan)).await.map_err(scoring_args::explained)?;
    let (total, progress) = (samples.len(), Progress::new(Some(samples.len() as u64)));
    let Plan { model, methods, overflow, .. } = plan;
    let metrics = AuditMetrics { bootstrap: None, ..AuditMetrics::default() };
    let scoring = AuditRequest { model, methods: methods.to_vec(), overflow, metrics, evidence };
    let nonce = common.nonce.unwrap_or_default();
    let committed = |given| {
        let method = scoring.primary()?.label();
        Some(Commitment::new(given, layout.kind(), &method, &nonce, &input.texts))
    };
    let request = TestRequest { commitment: common.commitment.and_then(committed), scoring, layout };
    let show = |event| {
        if let RunEvent::Scored { done } = event {
            progress.show(Some(done as u64), format!("{done} of {}", number_of(total, "text")));
        }
    };
    let report = run_test(Arc::new(request), &SampleBlocks::Memory(samples.into()), &scorer, show).await;
    drop(progress);
    scoring_args::finish(&scorer).await;
    report_format::print(&report.map_err(explained)?, common.format, table)
}

/// One line a method, then what was left out, the controls, the verdict and the warnings.
fn table(report: &TestReport) -> String {
    // Writing to a String cannot fail.
    let mut out = String::new();
    let (model, kind, total) = (&report.provenance.model, report.kind, report.samples.total);
    let excluded: usize = report.samples.exclusions.iter().map(|exclusion| exclusion.samples).sum();
    let _ = writeln!(out, "{model}: test of kind {kind}, {total} texts, {excluded} excluded\n");
    let labels = report.methods.iter().map(|method| method.method.label.chars().count());
    let width = labels.max().unwrap_or(0).max(6);
    let _ = writeln!(out, "{:width$}  {:>7}  {:>9}  {:>10}  statistic", "method", "tested", "p", "adjusted p");
    for method in &report.methods {
        let number = |value: Option<f64>| value.map_or("-".to_owned(), |value| format!("{value:.2e}"));
        let (label, tested) = (&method.method.label, method.tested);
        let (p_value, adjusted) = (number(method.p_value), number(method.p_value_adjusted));
        let _ = writeln!(out, "{label:width$}  {tested:>7}  {p_value:>9}  {adjusted:>10}  {}", statistic(method));
    }
    for method in report.methods.iter().filter(|method| method.left_out > 0) {
        let _ = writeln!(out, "left out of {}: {}", method.method.label, method.left_out);
    }
    for (method, control) in report.methods.iter().filter_map(|method| Some((method, method.control.as_ref()?))) {
        let interval = control.interval.map_or(String::new(), |[low, high]| format!(" ({low:+.3} to {high:+.3})"));
        let label = &method.method.label;
        let _ = writeln!(out, "{label} beside the control {}: {:+.3}{interval}", control.model, control.difference);
    }
    for (method, beyond) in report.methods.iter().filter_map(|method| Some((method, method.beyond_control.as_ref()?))) {
        let p_value = beyond.p_value.map_or("no p-value".to_owned(), |p_value| format!("p = {p_value:.2e}"));
        let under =
            beyond.control_p_value.map_or(String::new(), |p_value| format!(", under it alone p = {p_value:.2e}"));
        let _ = writeln!(out, "{} beyond the control {}: {p_value}{under}", method.method.label, beyond.model);
    }
    if let Some(words) = report.blind.as_ref().and_then(|blind| blind.words.as_ref()) {
        let _ = writeln!(
            out,
            "without a model: AUROC of the words {:.3} (p = {:.3}, shift: {})",
            words.auroc, words.p_value, words.shift
        );
    }
    if let Some(commitment) = &report.commitment {
        let _ = writeln!(out, "commitment: {}", if commitment.matches { "matches" } else { "does not match" });
    }
    out.push_str(&match &report.verdict {
        TestVerdict::Lists(lists) => verdict(lists),
        TestVerdict::Units(units) => {
            let state = format!("{} ({}, {})", units.state, units.reason, units.design);
            stated(&state, &units.sentence, &units.assumptions)
        }
    });
    for warning in &report.warnings {
        let _ = writeln!(out, "\nwarning: {}", warning.detail);
    }
    out
}

/// The statistic of a method in words.
fn statistic(method: &TestMethod) -> String {
    let statistics = &method.statistics;
    let mut parts = Vec::new();
    if let Some(test) = statistics.mann_whitney {
        let (suspects, held_out) = (statistics.suspects.unwrap_or(0), statistics.held_out.unwrap_or(0));
        parts.push(format!("AUROC {:.3}, {suspects} suspects against {held_out}", test.auroc));
    }
    parts.extend(statistics.welch.map(|test| format!("Welch's t {:.2} (p = {:.2e})", test.statistic, test.p_value)));
    parts.extend(statistics.permutation.map(|test| format!("mean difference {:+.4}", test.mean)));
    parts.extend(statistics.canary_rank.map(|test| {
        let suffices =
            test.would_suffice.map_or(String::new(), |count| format!("; about {count} such canaries would suffice"));
        format!(
            "sum of ranks less 1: {} where chance gives {:.1}; {} first{suffices}",
            test.rank_sum, test.expected_rank_sum, test.first
        )
    }));
    parts.extend(statistics.order.map(|test| format!("mean difference {:+.4}", test.mean_difference)));
    parts.extend(method.error.clone());
    parts.join(", ")
}
