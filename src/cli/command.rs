//! The commands and their flags.

use super::runtime::block_on;
use super::scoring_args::VariantArgs;
use super::{
    audit, canary, count_tokens, dataset, finetune, key, membership_test, memorization, request, score, texts,
};
use crate::api::{self, JobKinds};
use crate::config::{LogFormat, Overrides, Settings};
use crate::{app, telemetry};
use anyhow::{Result, bail};
use clap::parser::ValueSource;
use clap::{ArgMatches, Args, CommandFactory, FromArgMatches, Id, Parser, Subcommand};
use std::io::{Write, stdout};
use std::path::PathBuf;
use std::process::ExitCode;

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
    /// Write down what an audit will do, and score nothing: `audit --plan` keeps to it and its report cites it.
    Plan(Box<PlanArgs>),
    /// Write the samples of a file, or of a dataset on the Hub, with the fields `text` and `label`.
    Dataset(Box<dataset::DatasetArgs>),
    /// Cut books, folders and archives into passages, one a line, or show what would be cut.
    Texts(texts::TextsArgs),
    /// Count the tokens of a reference corpus, for methods that compare with how frequent a token is in general.
    CountTokens(count_tokens::CountTokensArgs),
    /// Tune a LoRA adapter on texts that the model has not seen, for the method `fsd`.
    Finetune(Box<finetune::FinetuneArgs>),
    /// Test whether texts score higher than comparable ones that the model cannot have seen, without any threshold.
    Test(Box<membership_test::TestArgs>),
    /// Report how much of texts a model completes word by word, beside texts that it cannot have seen.
    Memorization(Box<memorization::MemorizationArgs>),
    /// Draw canaries to publish, and later test whether a model was trained on them.
    Canary(canary::CanaryArgs),
    /// Make, list and revoke the keys of a service.
    Key(key::KeyArgs),
    /// Print the OpenAPI document.
    Openapi,
}

#[derive(Args)]
struct PlanArgs {
    /// Write the plan to this file.
    #[arg(long, value_name = "FILE")]
    out: PathBuf,
    #[command(flatten)]
    audit: audit::AuditArgs,
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

/// The command line with these kinds of job.
#[must_use]
pub fn command(kinds: &JobKinds) -> clap::Command {
    request::with_requests(Cli::command(), kinds)
}

/// Runs the program.
pub fn main() -> ExitCode {
    let kinds = JobKinds::all();
    let matches = command(&kinds).get_matches();
    match dispatch(&kinds, &matches) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) if is_closed_pipe(&error) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}

/// Runs the command, or the job that `--request` has.
fn dispatch(kinds: &JobKinds, matches: &ArgMatches) -> Result<()> {
    let is_given = |id: &Id| matches.value_source(id.as_str()) == Some(ValueSource::CommandLine);
    if matches.subcommand().is_some() && matches.ids().any(|id| *id != "config" && is_given(id)) {
        bail!("--host, --port, --model and what goes with them come after the name of the command");
    }
    match request::requested_job(matches, kinds) {
        Some((document, file)) => {
            let config = matches.get_one::<PathBuf>("config").map(PathBuf::as_path);
            block_on(request::run(kinds, document, file, config))
        }
        None => run(Cli::from_arg_matches(matches).unwrap_or_else(|error| error.exit())),
    }
}

/// The reader of our output has gone, as `head` does: nothing is wrong.
fn is_closed_pipe(error: &anyhow::Error) -> bool {
    let io = error.chain().find_map(|cause| cause.downcast_ref::<std::io::Error>());
    io.is_some_and(|e| e.kind() == std::io::ErrorKind::BrokenPipe)
}

fn run(cli: Cli) -> Result<()> {
    let config = cli.config.as_deref();
    match cli.command.unwrap_or(Command::Serve(cli.serve)) {
        Command::Serve(args) => {
            let overrides = Overrides { host: args.host, port: args.port, insecure_no_auth: args.insecure_no_auth };
            let settings = Settings::load(config, &overrides)?;
            let (settings, _) = settings.with_models(&args.variant.with(args.model))?;
            telemetry::init_tracing(settings.log.format == LogFormat::Json, &settings.log.level)?;
            block_on(app::serve(settings))
        }
        Command::Score(args) => block_on(score::run(*args, config)),
        Command::Audit(args) => block_on(audit::run(*args, None, config)),
        Command::Plan(args) => block_on(audit::run(args.audit, Some(&args.out), config)),
        Command::Dataset(args) => dataset::run(&args),
        Command::Texts(args) => texts::run(&args),
        Command::CountTokens(args) => count_tokens::run(args, config),
        Command::Finetune(args) => finetune::run(*args, config),
        Command::Test(args) => block_on(membership_test::run(*args, config)),
        Command::Memorization(args) => block_on(memorization::run(*args, config)),
        Command::Canary(args) => block_on(canary::run(args, config)),
        Command::Key(args) => key::run(args, config),
        Command::Openapi => {
            Ok(writeln!(stdout().lock(), "{}", serde_json::to_string_pretty(&api::document(&JobKinds::all()))?)?)
        }
    }
}
