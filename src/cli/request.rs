//! `--request FILE` of the commands that are kinds of job: the body of `POST /v1/<kind>` in, the results of the job out.

use super::audit_table::scores_of_rows;
use super::progress::Progress;
use super::report_format::{ReportArgs, ReportFormat, part};
use super::{audit_table, demo_model, finetune, memorization_table, scoring_args, test_table};
use crate::api::{self, ApiState, JobDocument, JobKinds};
use crate::app::{self, ServiceJobs};
use crate::config::{LogFormat, Overrides, Settings};
use crate::table::ResultRow;
use crate::telemetry::{self, MetricsExporter};
use anyhow::{Context, Result, anyhow, bail};
use axum::Router;
use axum::body::{Body, to_bytes};
use axum::http::{Method, Request, header};
use bytes::Bytes;
use clap::{Arg, ArgMatches, Args, Command, FromArgMatches, value_parser};
use serde_json::Value;
use std::io::{Read, stdin};
use std::path::{Path, PathBuf};
use std::time::Duration;
use tower::ServiceExt;

/// Name of the flag.
const REQUEST: &str = "request";

/// Interval between two looks at the job.
const PAUSE: Duration = Duration::from_millis(200);

/// Adds `--request` to the command of each kind of job. A kind without a command of its own gets one.
pub fn with_requests(cli: Command, kinds: &JobKinds) -> Command {
    kinds.iter().fold(cli, |cli, kind| {
        let JobDocument { operation, about, segment, .. } = kind.document;
        let request = Arg::new(REQUEST).long(REQUEST).value_name("FILE").value_parser(value_parser!(PathBuf));
        let request = request.help_heading("Request").help(format!(
            "Body of a request to `POST /v1/{segment}`, in place of all other arguments but --format and --wide; `-` for standard \
             input"
        ));
        match cli.find_subcommand(operation) {
            Some(_) => cli.mut_subcommand(operation, |command| {
                let command = command.subcommand_required(false).args_conflicts_with_subcommands(true);
                with_report(command.mut_args(replaced)).arg(request)
            }),
            None => cli.subcommand(with_report(Command::new(operation).about(about)).arg(request.required(true))),
        }
    })
}

/// Adds the options of what is printed, where the command has none.
fn with_report(command: Command) -> Command {
    let has_format = command.get_arguments().any(|argument| argument.get_id() == "format");
    if has_format {
        return command;
    }
    // `augment_args` replaces the description of the command by that of `ReportArgs`.
    let about = command.get_about().cloned().unwrap_or_default();
    ReportArgs::augment_args(command).about(about)
}

/// An argument that `--request` takes the place of.
fn replaced(arg: Arg) -> Arg {
    if ["format", "wide"].contains(&arg.get_id().as_str()) {
        return arg;
    }
    let is_required = arg.is_required_set();
    let arg = arg.conflicts_with(REQUEST);
    if is_required { arg.required(false).required_unless_present(REQUEST) } else { arg }
}

/// The kind of job and the file of the request, where the command line has one.
pub fn requested_job<'a>(matches: &'a ArgMatches, kinds: &JobKinds) -> Option<(JobDocument, &'a Path)> {
    let (name, matches) = matches.subcommand()?;
    let kind = kinds.iter().find(|kind| kind.document.operation == name)?;
    let file = matches.try_get_one::<PathBuf>(REQUEST).ok().flatten()?;
    Some((kind.document, file))
}

/// The options of what is printed of a job that a file requests.
pub fn requested_report(matches: &ArgMatches) -> ReportArgs {
    let report = matches.subcommand().map(|(_, matches)| ReportArgs::from_arg_matches(matches));
    report.and_then(Result::ok).unwrap_or_default()
}

/// Runs the job that a file requests, and prints its results.
pub async fn run(
    kinds: &JobKinds,
    document: JobDocument,
    file: &Path,
    report: ReportArgs,
    config: Option<&Path>,
) -> Result<()> {
    let body = read(file).with_context(|| file.display().to_string())?;
    let settings = Settings::load(config, &Overrides::default())?;
    telemetry::init_tracing(settings.log.format == LogFormat::Json, "warn")?;
    // The route refuses malformed JSON, with the place.
    if let Ok(request) = serde_json::from_slice::<Value>(&body) {
        let model = request["model"].as_str();
        demo_model::check_model_of_request(&settings, !request["model"].is_null())?;
        model.or(settings.default_model()).inspect(|model| demo_model::announce(&settings, model));
    }
    let (results, rows) = perform(kinds, document, body, &settings).await?;
    let json_alone = ReportArgs { format: Some(ReportFormat::Json), ..report };
    match document.operation {
        "audit" => report.print(&results, |results, width| audit_table::render(results, &scores_of_rows(&rows), width)),
        "test" => report.print(&results, test_table::render),
        "memorization" => report.print(&results, |results, width| {
            part(results).map_or(String::new(), |report| memorization_table::render(&report, width))
        }),
        "finetune" => report.print(&results, |results, _| finetune::summary(results)),
        _ => json_alone.print(&results, |_, _| String::new()),
    }
}

fn read(file: &Path) -> Result<Vec<u8>> {
    if file != Path::new("-") {
        return Ok(std::fs::read(file)?);
    }
    let mut body = Vec::new();
    stdin().lock().read_to_end(&mut body)?;
    Ok(body)
}

/// Runs the job of a kind that has this body in a service within this process, and returns its results. While it runs, the service takes
/// other queued jobs of its store as well.
///
/// # Errors
/// Everything that is wrong with the request, or why the job failed.
pub async fn run_job(kinds: &JobKinds, document: JobDocument, body: Vec<u8>, settings: &Settings) -> Result<Value> {
    perform(kinds, document, body, settings).await.map(|(results, _)| results)
}

/// The results of a job, and the scores of an audit that has no labels, a row each sample.
async fn perform(
    kinds: &JobKinds,
    document: JobDocument,
    body: Vec<u8>,
    settings: &Settings,
) -> Result<(Value, Vec<ResultRow>)> {
    if document.serves_requests && settings.store.url.is_none() {
        bail!(
            "the {} would end with this process: set `store.url` to the store of the service that uses it",
            document.operation
        );
    }
    let store = app::open_store(settings).await?;
    let scorer = app::make_scorer(settings, app::hub())?;
    let jobs = ServiceJobs::start(kinds, &scorer, &store, settings).await?;
    let state = ApiState::new(scorer.clone(), jobs.routed.clone(), MetricsExporter::install()?, settings);
    let router = api::router(state, kinds);
    let job = finished(&router, document, body).await;
    let rows = match &job {
        Ok(job) => scores(&router, document, job).await,
        Err(_) => Ok(Vec::new()),
    };
    jobs.shutdown().await;
    scoring_args::finish(&scorer).await;
    store.close().await;
    let mut job = job?;
    match (&job["status"], &job["error"]) {
        (Value::String(status), _) if status == "succeeded" => {}
        (_, Value::Null) => bail!("the {} has ended as {}", document.operation, job["status"]),
        (_, problem) => return Err(fault(problem)),
    }
    Ok((if document.has_results { job["results"].take() } else { job }, rows?))
}

/// The scores of an audit without labels, of which its report says nothing; none of other jobs.
async fn scores(router: &Router, document: JobDocument, job: &Value) -> Result<Vec<ResultRow>> {
    let (samples, id) = (&job["results"]["samples"], job["id"].as_str().unwrap_or_default());
    if document.operation != "audit" || samples["members"] != 0 || samples["non_members"] != 0 {
        return Ok(Vec::new());
    }
    let body = answer(router, Method::GET, &format!("{}/{id}/scores", document.path()), Vec::new()).await?;
    let lines = body.split(|byte| *byte == b'\n').filter(|line| !line.is_empty());
    lines.map(|line| serde_json::from_slice(line).context("a row of scores is no object")).collect()
}

/// Submits a job and follows it to its end.
async fn finished(router: &Router, document: JobDocument, body: Vec<u8>) -> Result<Value> {
    let mut job = json_answer(router, Method::POST, &document.path(), body).await?;
    let id = job["id"].as_str().context("a job without an id")?.to_owned();
    let location = format!("{}/{id}", document.path());
    let progress = Progress::new(None);
    while matches!(job["status"].as_str(), Some("queued" | "running")) {
        tokio::time::sleep(PAUSE).await;
        job = json_answer(router, Method::GET, &location, Vec::new()).await?;
        let (done, total) = (&job["progress"]["done"], &job["progress"]["total"]);
        progress.show(done.as_u64(), format!("{done} of {total}"));
    }
    Ok(job)
}

async fn json_answer(router: &Router, method: Method, path: &str, body: Vec<u8>) -> Result<Value> {
    Ok(serde_json::from_slice(&answer(router, method, path, body).await?)?)
}

/// The answer to a request, as a client on this machine gets it.
async fn answer(router: &Router, method: Method, path: &str, body: Vec<u8>) -> Result<Bytes> {
    let request = Request::builder().method(method).uri(path).header(header::HOST, "localhost");
    let request = request.header(header::CONTENT_TYPE, "application/json").body(Body::from(body))?;
    let response = router.clone().oneshot(request).await?;
    let is_success = response.status().is_success();
    let answer = to_bytes(response.into_body(), usize::MAX).await?;
    if is_success { Ok(answer) } else { Err(fault(&serde_json::from_slice(&answer)?)) }
}

/// A problem as the command line tells it: the faults of the request, each with its pointer.
fn fault(problem: &Value) -> anyhow::Error {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let faults: Vec<String> = (problem["errors"].as_array().into_iter().flatten())
        .map(|fault| match &*text(&fault["pointer"]) {
            "" => text(&fault["detail"]),
            pointer => format!("{pointer}: {}", text(&fault["detail"])),
        })
        .collect();
    if faults.is_empty() { anyhow!(text(&problem["detail"])) } else { anyhow!(faults.join("; ")) }
}
