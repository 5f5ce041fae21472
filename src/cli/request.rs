//! `--request FILE` of the commands that are kinds of job: the body of `POST /v1/<kind>` in, the results of the job out.

use super::progress::Progress;
use super::{demo_model, scoring_args};
use crate::api::{self, ApiState, JobDocument, JobKinds};
use crate::app::{self, ServiceJobs};
use crate::config::{LogFormat, Overrides, Settings};
use crate::telemetry::{self, MetricsExporter};
use anyhow::{Context, Result, anyhow, bail};
use axum::Router;
use axum::body::{Body, to_bytes};
use axum::http::{Method, Request, header};
use clap::{Arg, ArgMatches, Command, value_parser};
use serde_json::Value;
use std::io::{Read, Write, stdin, stdout};
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
        let request = request.help(format!(
            "Body of a request to `POST /v1/{segment}`, in place of all other arguments; `-` for standard input. The results are \
             printed as JSON"
        ));
        match cli.find_subcommand(operation) {
            Some(_) => cli.mut_subcommand(operation, |command| {
                command.subcommand_required(false).args_conflicts_with_subcommands(true).mut_args(replaced).arg(request)
            }),
            None => cli.subcommand(Command::new(operation).about(about).arg(request.required(true))),
        }
    })
}

/// An argument that `--request` takes the place of.
fn replaced(arg: Arg) -> Arg {
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

/// Runs the job that a file requests, and prints its results.
pub async fn run(kinds: &JobKinds, document: JobDocument, file: &Path, config: Option<&Path>) -> Result<()> {
    let body = read(file).with_context(|| file.display().to_string())?;
    let settings = Settings::load(config, &Overrides::default())?;
    telemetry::init_tracing(settings.log.format == LogFormat::Json, "warn")?;
    // What is no JSON is refused by the route, with the place.
    if let Ok(request) = serde_json::from_slice::<Value>(&body) {
        let model = request["model"].as_str();
        demo_model::check_model_of_request(&settings, !request["model"].is_null())?;
        model.or(settings.default_model()).inspect(|model| demo_model::announce(&settings, model));
    }
    let results = run_job(kinds, document, body, &settings).await?;
    Ok(writeln!(stdout().lock(), "{}", serde_json::to_string_pretty(&results)?)?)
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
    let job = finished(&api::router(state, kinds), document, body).await;
    jobs.shutdown().await;
    scoring_args::finish(&scorer).await;
    store.close().await;
    let mut job = job?;
    match (&job["status"], &job["error"]) {
        (Value::String(status), _) if status == "succeeded" => {}
        (_, Value::Null) => bail!("the {} has ended as {}", document.operation, job["status"]),
        (_, problem) => return Err(fault(problem)),
    }
    Ok(if document.has_results { job["results"].take() } else { job })
}

/// Submits a job and follows it to its end.
async fn finished(router: &Router, document: JobDocument, body: Vec<u8>) -> Result<Value> {
    let mut job = answer(router, Method::POST, &document.path(), body).await?;
    let id = job["id"].as_str().context("a job without an id")?.to_owned();
    let location = format!("{}/{id}", document.path());
    let progress = Progress::new(None);
    while matches!(job["status"].as_str(), Some("queued" | "running")) {
        tokio::time::sleep(PAUSE).await;
        job = answer(router, Method::GET, &location, Vec::new()).await?;
        let (done, total) = (&job["progress"]["done"], &job["progress"]["total"]);
        progress.show(done.as_u64(), format!("{done} of {total}"));
    }
    Ok(job)
}

/// The answer to a request, as a client on this machine gets it.
async fn answer(router: &Router, method: Method, path: &str, body: Vec<u8>) -> Result<Value> {
    let request = Request::builder().method(method).uri(path).header(header::HOST, "localhost");
    let request = request.header(header::CONTENT_TYPE, "application/json").body(Body::from(body))?;
    let response = router.clone().oneshot(request).await?;
    let is_success = response.status().is_success();
    let answer = serde_json::from_slice(&to_bytes(response.into_body(), usize::MAX).await?)?;
    if is_success { Ok(answer) } else { Err(fault(&answer)) }
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
