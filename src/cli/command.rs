//! The commands and their flags.

use super::audit::AuditGoal;
use super::examples::examples;
use super::report_format::ReportFormat;
use super::run_folder::RunFolder;
use super::runtime::block_on;
use super::{
    audit, canary, compare, count_tokens, dataset, finetune, key, membership_test, memorization, methods, prove,
    record, report, request, score, serve, sign, store, texts, verify,
};
use crate::api::{self, JobKinds};
use crate::samples;
use anyhow::{Context, Result, bail};
use clap::builder::EnumValueParser;
use clap::parser::ValueSource;
use clap::{Arg, ArgMatches, Args, CommandFactory, FromArgMatches, Id, Parser, Subcommand, value_parser};
use std::io::{Write, stdout};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// Name of the flag that goes on with an audit.
const RESUME: &str = "resume";

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
    serve: serve::ServeArgs,
}

#[derive(Subcommand)]
enum Command {
    /// Serve over HTTP (the default).
    Serve(serve::ServeArgs),
    /// Score the texts of a file, one result a line.
    Score(Box<score::ScoreArgs>),
    /// Audit a model with labelled texts and report how well each method tells members from others.
    Audit(Box<AuditCommandArgs>),
    /// Write down what an audit will do, and score nothing: `audit --plan` keeps to it and its report cites it.
    Plan(Box<PlanArgs>),
    /// Write the samples of a file, or of a dataset on the Hub, with the fields `text` and `label`.
    Dataset(Box<dataset::DatasetArgs>),
    /// Compare two audits of the same samples, of two models or of two versions of one.
    Compare(compare::CompareArgs),
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
    /// List the methods, with their parameters, formulas and sources.
    Methods(methods::MethodsArgs),
    /// Draw canaries to publish, and later test whether a model was trained on them.
    Canary(canary::CanaryArgs),
    /// Make, list and revoke the keys of a service.
    Key(key::KeyArgs),
    /// Check the access record of a service.
    Record(record::RecordArgs),
    /// Make a page of HTML of a report: one file that needs nothing beside it.
    Report(report::ReportPageArgs),
    /// Sign a report, or add a signature to a signed one.
    Sign(sign::SignArgs),
    /// Verify a report: its signature, its files, every statistic, some scores and its plan.
    Verify(Box<verify::VerifyArgs>),
    /// Show that one sample was among those of a signed report, and nothing of the others.
    Prove(Box<prove::ProveArgs>),
    /// Check, save and restore the store of a service.
    Store(store::StoreArgs),
    /// Print the OpenAPI document.
    Openapi,
    /// Print the rows of a Parquet file within bounds of memory and time, as the service reads uploads.
    #[command(hide = true)]
    ParquetRows { file: PathBuf },
}

#[derive(Args)]
struct AuditCommandArgs {
    #[command(flatten)]
    audit: audit::AuditArgs,
    /// Keep everything in this folder, which is new or empty: request.json, report.json, report.html, its figures, scores.ndjson,
    /// methods.csv and log.txt, and with a signing key report.dsse.json and
    /// eval-result.dsse.json. An audit that is interrupted goes on with `--resume`.
    #[arg(long, value_name = "DIR", help_heading = "Output")]
    out: Option<PathBuf>,
}

#[derive(Args)]
struct PlanArgs {
    /// Write the plan to this file.
    #[arg(long, value_name = "FILE")]
    out: PathBuf,
    #[command(flatten)]
    audit: audit::AuditArgs,
}

/// The command line with these kinds of job.
#[must_use]
pub fn command(kinds: &JobKinds) -> clap::Command {
    with_resume(request::with_requests(Cli::command(), kinds)).mut_subcommands(|command| {
        match examples(command.get_name()) {
            Some(examples) => command.after_help(format!("Examples:\n{examples}")),
            None => command,
        }
    })
}

/// Adds `audit --resume`, which takes all other arguments from the folder.
fn with_resume(cli: clap::Command) -> clap::Command {
    let resume = Arg::new(RESUME).long(RESUME).value_name("DIR").value_parser(value_parser!(PathBuf));
    let resume = resume.help_heading("Output").exclusive(true);
    let resume = resume
        .help("Go on with the audit of this folder (--out), which was interrupted, with the arguments that it had");
    let format = |format: Arg| format.value_parser(EnumValueParser::<ReportFormat>::new());
    cli.mut_subcommand("audit", |command| command.arg(resume).mut_arg("format", format))
}

/// Goes on with the audit of a folder.
fn resume(kinds: &JobKinds, folder: &Path) -> Result<()> {
    let folder = RunFolder::resume(folder)?;
    let request = folder.before().context("a folder that is resumed has a request")?;
    let place = request.directory.display();
    std::env::set_current_dir(&request.directory).with_context(|| format!("the audit was begun in {place}"))?;
    let arguments = ["pdr-audit"].into_iter().chain(request.arguments.iter().map(String::as_str));
    let matches = command(kinds).try_get_matches_from(arguments)?;
    let cli = Cli::from_arg_matches(&matches)?;
    let Some(Command::Audit(args)) = cli.command else {
        bail!("the arguments of request.json are not those of an audit");
    };
    folder.log("the audit goes on");
    block_on(audit::run(args.audit, AuditGoal::Folder(Box::new(folder)), cli.config.as_deref()))
}

/// Runs the program.
pub fn main() -> ExitCode {
    let kinds = JobKinds::all();
    let command = command(&kinds);
    let arguments: Vec<Id> = command.get_arguments().map(|argument| argument.get_id().clone()).collect();
    match dispatch(&kinds, &command.get_matches(), &arguments) {
        Ok(code) => code,
        Err(error) if is_closed_pipe(&error) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}

/// Runs the command, or the job that `--request` has. `arguments` are the ids of those before the name of a command: global ones of the
/// command are among the matches as well.
fn dispatch(kinds: &JobKinds, matches: &ArgMatches, arguments: &[Id]) -> Result<ExitCode> {
    let is_given =
        |id: &&Id| arguments.contains(id) && matches.value_source(id.as_str()) == Some(ValueSource::CommandLine);
    if matches.subcommand().is_some() && matches.ids().filter(is_given).any(|id| *id != "config") {
        bail!("--host, --port, --model and what goes with them come after the name of the command");
    }
    let of_audit = matches.subcommand_matches("audit");
    if let Some(folder) = of_audit.and_then(|matches| matches.get_one::<PathBuf>(RESUME)) {
        return resume(kinds, folder).map(|()| ExitCode::SUCCESS);
    }
    match request::requested_job(matches, kinds) {
        Some((document, file)) => {
            let config = matches.get_one::<PathBuf>("config").map(PathBuf::as_path);
            block_on(request::run(kinds, document, file, request::requested_report(matches), config))?;
            Ok(ExitCode::SUCCESS)
        }
        None => run(Cli::from_arg_matches(matches).unwrap_or_else(|error| error.exit())),
    }
}

/// The reader of our output has gone, as `head` does: nothing is wrong.
fn is_closed_pipe(error: &anyhow::Error) -> bool {
    let io = error.chain().find_map(|cause| cause.downcast_ref::<std::io::Error>());
    io.is_some_and(|e| e.kind() == std::io::ErrorKind::BrokenPipe)
}

fn run(cli: Cli) -> Result<ExitCode> {
    let config = cli.config.as_deref();
    let command = cli.command.unwrap_or_else(|| {
        eprintln!("starting the service; `pdr-audit --help` lists the commands");
        Command::Serve(cli.serve)
    });
    match command {
        Command::Serve(args) => serve::run(args, config),
        Command::Score(args) => block_on(score::run(*args, config)),
        Command::Audit(args) => {
            let AuditCommandArgs { audit, out } = *args;
            let folder = out.as_deref().map(RunFolder::create).transpose()?.map(Box::new);
            block_on(audit::run(audit, folder.map_or(AuditGoal::Report, AuditGoal::Folder), config))
        }
        Command::Plan(args) => block_on(audit::run(args.audit, AuditGoal::Plan(&args.out), config)),
        Command::Dataset(args) => dataset::run(&args, config),
        Command::Texts(args) => texts::run(&args),
        Command::CountTokens(args) => count_tokens::run(args, config),
        Command::Finetune(args) => finetune::run(*args, config),
        Command::Test(args) => block_on(membership_test::run(*args, config)),
        Command::Memorization(args) => block_on(memorization::run(*args, config)),
        Command::Methods(args) => methods::run(&args),
        Command::Canary(args) => block_on(canary::run(args, config)),
        Command::Key(args) => key::run(args, config),
        Command::Record(args) => record::run(args),
        Command::Compare(args) => compare::run(&args),
        Command::Report(args) => report::run(&args),
        Command::Sign(args) => sign::run(&args, config),
        Command::Verify(args) => return block_on(async { Ok(verify::run(*args, config).await) }),
        Command::Prove(args) => prove::run(&args, config),
        Command::Store(args) => store::run(&args, config),
        Command::ParquetRows { file } => Ok(samples::print_parquet_rows(&file)?),
        Command::Openapi => {
            Ok(writeln!(stdout().lock(), "{}", serde_json::to_string_pretty(&api::document(&JobKinds::all()))?)?)
        }
    }?;
    Ok(ExitCode::SUCCESS)
}
