//! `pdr-audit test`: tests that need no threshold.

use super::audit::{explained, flag_fault};
use super::evidence_args::named_control;
use super::input::ReaderArgs;
use super::progress::{self, Progress};
use super::report_format::ReportArgs;
use super::scoring_args::{self, NamedSettings, ScoringArgs};
use super::test_input::TestInput;
use super::test_table;
use crate::audits::{
    AuditMetrics, AuditRequest, Commitment, EvidenceOptions, OrderTexts, RunEvent, TestKind, TestRequest,
    commitment_fault, committed_method, run_test, test_method_faults,
};
use crate::datasets::SampleBlocks;
use crate::scorer::Plan;
use crate::wire::number_of;
use anyhow::{Result, bail};
use clap::{Args, Subcommand};
use mia::methods::{Fault, Scope, faults_of_texts};
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
    /// Compare the same texts by a combination of all methods, learnt on one half of them and tested on the other (dataset inference).
    Di(Box<InferenceArgs>),
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
struct InferenceArgs {
    #[command(flatten)]
    texts: SuspectArgs,
    /// Seed of the 20 random splits of the texts into halves; by default 0.
    #[arg(long, value_name = "NUMBER", default_value_t = 0, hide_default_value = true)]
    seed: u64,
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
    /// Label or name of the method that the verdict is about; by default ref, else min_k_plus_plus, else the first method. `di` takes none.
    #[arg(long, value_name = "METHOD")]
    pub primary: Option<String>,
    /// A model that has not seen the texts in question, named as `--model` is, or `none`; by default the base of the model, else
    /// the reference model, for `dataset`, `di` and `order`, and none for `paired` and `rank`.
    #[arg(long, value_name = "MODEL")]
    pub control: Option<String>,
    /// The SHA-256 that was published before the model was made, over the kind, the method, the nonce and the texts, as
    /// docs/api.md describes it.
    #[arg(long, value_name = "SHA256")]
    pub commitment: Option<String>,
    /// Nonce that the commitment covers beside the texts.
    #[arg(long, value_name = "TEXT", requires = "commitment")]
    pub nonce: Option<String>,
    #[command(flatten)]
    pub report: ReportArgs,
    #[command(flatten)]
    pub scoring: ScoringArgs,
}

pub async fn run(args: TestArgs, config: Option<&Path>) -> Result<()> {
    let (input, common) = match args.command {
        TestCommand::Dataset(args) => {
            (TestInput::lists(TestKind::Dataset, [&args.suspects, &args.held_out], &args.reader, 0)?, args.common)
        }
        TestCommand::Di(args) => {
            let InferenceArgs { texts: SuspectArgs { suspects, held_out, reader, common }, seed } = *args;
            (TestInput::lists(TestKind::Di, [&suspects, &held_out], &reader, seed)?, common)
        }
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
        let method = committed_method(&scoring, &layout)?;
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
    common.report.print(&serde_json::to_value(report.map_err(explained)?)?, test_table::render)
}
