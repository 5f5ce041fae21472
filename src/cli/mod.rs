//! The command line: `serve` (the default), `score`, `audit`, `test`, `dataset`, `count-tokens`, `finetune`, `memorization`, `key`,
//! `openapi`.
//! Results go to stdout, all else to stderr.

mod audit;
mod audit_scores;
mod averages;
mod corpus;
mod count_tokens;
mod dataset;
mod evidence;
mod evidence_args;
mod export;
mod finetune;
mod input;
mod key;
mod memorization;
mod memorization_table;
mod partial;
mod progress;
mod samples;
mod score;
mod source;
mod table;
mod tally;
mod trial;
mod trial_input;
mod trial_table;
mod waiting;
mod works;

use crate::config::{Dtype, LogFormat, ModelFlags, Overrides, Settings};
use crate::scorer::{Overflow, Plan, Scorer, ScorerError};
use crate::wire::in_words;
use crate::{api, app, telemetry};
use anyhow::{Context, Result, anyhow, bail};
use clap::builder::{PossibleValuesParser, TypedValueParser};
use clap::{Args, Parser, Subcommand};
use mia::methods::{Fault, LabelledMethod, Scope, parse_list, resolve};
use std::io::{Write, stdout};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::str::FromStr;
use std::sync::Arc;
use std::time::Duration;
use strum::VariantNames;

/// Tells whether a text was in a language model's pre-training data.
#[derive(Parser)]
#[command(version, about)]
struct Cli {
    /// Settings, a TOML file.
    #[arg(long, value_name = "FILE", global = true)]
    config: Option<PathBuf>,
    #[command(subcommand)]
    command: Option<Command>,
    #[command(flatten)]
    serve: ServeArgs,
}

#[derive(Subcommand)]
enum Command {
    /// Serve over HTTP (the default).
    Serve(ServeArgs),
    /// Score the texts of a file, one result a line.
    Score(Box<score::ScoreArgs>),
    /// Audit a model with labelled texts and report how well each method tells members from others.
    Audit(Box<audit::AuditArgs>),
    /// Write the samples of a file, or of a dataset on the Hub, with the fields `text` and `label`.
    Dataset(Box<dataset::DatasetArgs>),
    /// Count the tokens of a reference corpus, for methods that compare with how frequent a token is in general.
    CountTokens(count_tokens::CountTokensArgs),
    /// Tune a LoRA adapter on texts that the model has not seen, for the method `fsd`.
    Finetune(Box<finetune::FinetuneArgs>),
    /// Test whether texts score higher than comparable ones that the model cannot have seen, without any threshold.
    Test(Box<trial::TrialArgs>),
    /// Report how much of texts a model completes word by word, beside texts that it cannot have seen.
    Memorization(Box<memorization::MemorizationArgs>),
    /// Make, list and revoke the keys of a service.
    Key(key::KeyArgs),
    /// Print the OpenAPI document.
    Openapi,
}

#[derive(Args, Default)]
struct ServeArgs {
    /// Name or address to listen on.
    #[arg(long)]
    host: Option<String>,
    /// Port to listen on; 0 lets the system choose.
    #[arg(long)]
    port: Option<u16>,
    /// Serve other machines without asking them for a key.
    #[arg(long)]
    insecure_no_auth: bool,
    /// Model to serve: the id of a configured model, a directory, or a repository on the Hub as in
    /// `EleutherAI/pythia-160m@REVISION`. May be given several times; the first is the default model.
    #[arg(long, value_name = "MODEL")]
    model: Vec<String>,
    #[command(flatten)]
    variant: VariantArgs,
}

/// What goes with `--model`.
#[derive(Args, Clone, Default)]
struct VariantArgs {
    /// Reference model of the models named, of the same three kinds.
    #[arg(long, value_name = "MODEL")]
    reference: Option<String>,
    /// What the models named compute in.
    #[arg(long, value_name = "TYPE", value_parser = PossibleValuesParser::new(Dtype::VARIANTS).try_map(|name| Dtype::from_str(&name)))]
    dtype: Option<Dtype>,
    /// LoRA adapter of the models named, as PEFT saves it: a directory, or a name and a directory. `--model MODEL:NAME` scores
    /// under it, and the method `fsd` compares with it. May be given several times.
    #[arg(long, value_name = "[NAME=]DIRECTORY")]
    adapter: Vec<String>,
}

/// Settings, and the ids of the models that flags name.
type NamedSettings = (Settings, Vec<String>);

impl VariantArgs {
    fn with(self, models: Vec<String>) -> ModelFlags {
        ModelFlags { models, reference: self.reference, dtype: self.dtype, adapters: self.adapter }
    }
}

/// What `score` and `audit` have in common.
#[derive(Args)]
struct ScoringArgs {
    /// Model to score with: the id of a configured model, a directory, or a repository on the Hub as in
    /// `EleutherAI/pythia-160m@REVISION`; by default the configured default.
    #[arg(long)]
    model: Option<String>,
    #[command(flatten)]
    variant: VariantArgs,
    /// A JSON array as in a request, or names separated by commas; by default loss, zlib, min_k and
    /// min_k_plus_plus, plain and with linear PDR, and of `test` the method that its verdict is about.
    #[arg(long, value_name = "METHODS")]
    methods: Option<String>,
    /// What to do with texts longer than the model's context.
    #[arg(long, default_value_t, value_parser = PossibleValuesParser::new(Overflow::VARIANTS).try_map(|name| Overflow::from_str(&name)))]
    overflow: Overflow,
}

pub fn main() -> ExitCode {
    match run(Cli::parse()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) if is_closed_pipe(&error) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}

/// The reader of our output has gone, as `head` does: nothing is wrong.
fn is_closed_pipe(error: &anyhow::Error) -> bool {
    let io = error.chain().find_map(|cause| cause.downcast_ref::<std::io::Error>());
    io.is_some_and(|e| e.kind() == std::io::ErrorKind::BrokenPipe)
}

fn run(cli: Cli) -> Result<()> {
    let config = cli.config.as_deref();
    let ServeArgs { host, port, insecure_no_auth, model, variant } = &cli.serve;
    let server_flags = host.is_some() || port.is_some() || *insecure_no_auth || !model.is_empty();
    let variant_flags = variant.reference.is_some() || variant.dtype.is_some() || !variant.adapter.is_empty();
    if (server_flags || variant_flags) && cli.command.is_some() {
        bail!("--host, --port, --model and what goes with them come after the name of the command");
    }
    match cli.command.unwrap_or(Command::Serve(cli.serve)) {
        Command::Serve(args) => {
            let overrides = Overrides { host: args.host, port: args.port, insecure_no_auth: args.insecure_no_auth };
            let settings = Settings::load(config, &overrides)?;
            let (settings, _) = settings.with_models(&args.variant.with(args.model))?;
            telemetry::init_tracing(settings.log.format == LogFormat::Json, &settings.log.level)?;
            block_on(app::serve(settings))
        }
        Command::Score(args) => block_on(score::run(*args, config)),
        Command::Audit(args) => block_on(audit::run(*args, config)),
        Command::Dataset(args) => dataset::run(&args),
        Command::CountTokens(args) => count_tokens::run(args, config),
        Command::Finetune(args) => finetune::run(*args, config),
        Command::Test(args) => block_on(trial::run(*args, config)),
        Command::Memorization(args) => block_on(memorization::run(*args, config)),
        Command::Key(args) => key::run(args, config),
        Command::Openapi => Ok(writeln!(stdout().lock(), "{}", serde_json::to_string_pretty(&api::document())?)?),
    }
}

fn block_on<T>(command: impl Future<Output = Result<T>>) -> Result<T> {
    let runtime =
        tokio::runtime::Builder::new_multi_thread().enable_all().build().context("cannot start the async runtime")?;
    let ended = runtime.block_on(command);
    // A thread may still sit in a read from a terminal or pipe that never ends.
    runtime.shutdown_background();
    ended
}

impl ScoringArgs {
    /// Starts a scorer for these arguments and loads the model; logs warnings only. Other models are opened by the methods
    /// that name them. `audit` and `neighbors` are of the texts, as in [`Scope`]; `defaults` are the methods where none are named.
    async fn start(
        &self,
        settings: &NamedSettings,
        audit: bool,
        neighbors: bool,
        defaults: impl FnOnce(&Scope) -> Vec<LabelledMethod>,
    ) -> Result<(Scorer, Plan)> {
        let (settings, named) = settings;
        telemetry::init_tracing(settings.log.format == LogFormat::Json, "warn")?;
        let scorer = app::make_scorer(settings, app::hub(), app::budget_directory())?;
        let (pool, ids) = (scorer.pool(), scorer.pool().ids());
        let model = pool.find(named.first().map(String::as_str))?;
        let methods = self.methods(&scorer.scope(&ids, Some(&model), audit, neighbors), defaults)?;
        let loaded = waiting::for_models(pool, pool.load(&model.id)).await;
        loaded.with_context(|| format!("model `{}`", model.id))?;
        let (model, methods, overflow) = (model.id.clone(), methods.into(), self.overflow);
        let plan = Plan { model, methods, overflow, tokens: false, splits: Arc::new([]) };
        Ok((scorer, plan))
    }

    /// The settings with the models that these arguments name.
    fn settings(&self, config: Option<&Path>) -> Result<NamedSettings> {
        let flags = self.variant.clone().with(self.model.iter().cloned().collect());
        Ok(Settings::load(config, &Overrides::default())?.with_models(&flags)?)
    }

    fn methods(
        &self,
        scope: &Scope,
        defaults: impl FnOnce(&Scope) -> Vec<LabelledMethod>,
    ) -> Result<Vec<LabelledMethod>> {
        let Some(list) = &self.methods else { return Ok(defaults(scope)) };
        let requests = parse_list(list).map_err(|error| {
            anyhow!(in_words(&error.to_string())).context("--methods is not a JSON array of methods")
        })?;
        resolve(&requests, scope).map_err(|faults| methods_error(&faults))
    }
}

/// Ends the engine, which writes what its cache on disk has not written yet.
async fn finish(scorer: &Scorer) {
    let engine = scorer.engine().clone();
    // Fails only where the runtime ends, which it does after this.
    let _ = tokio::task::spawn_blocking(move || engine.shutdown(Duration::ZERO)).await;
}

/// An error of the scorer as the command line tells it.
fn explained(error: ScorerError) -> anyhow::Error {
    match error {
        ScorerError::Unfit(faults) => methods_error(&faults),
        error => error.into(),
    }
}

fn methods_error(faults: &[Fault]) -> anyhow::Error {
    let faults: Vec<String> = faults.iter().map(|fault| format!("{} {}", fault.pointer, fault.detail)).collect();
    anyhow!("--methods: {}", faults.join("; ").trim_start())
}
