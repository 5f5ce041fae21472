//! The folder of an audit: what was asked, the report, the scores and a log. While the audit runs, it also keeps the statistics of
//! texts, so that an interrupted audit goes on where it was.
//!
//! Each file is written as a whole, and the report last: a folder with `request.json` and without `report.json` is that of an audit
//! that did not end.

use super::audit_scores::ScoreRows;
use super::export;
use super::report::{self, REPORT, SCORES};
use crate::audits::AuditPlan;
use crate::new_file::NewFile;
use crate::table::ResultRow;
use anyhow::{Context, Result, anyhow, bail, ensure};
use pages::TextStrip;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::ffi::OsStr;
use std::fs::{self, File};
use std::io::Write;
use std::path::{Path, PathBuf};
use time::OffsetDateTime;
use time::format_description::well_known::Rfc3339;

const REQUEST: &str = "request.json";
const METHODS: &str = "methods.csv";
const PAGE: &str = "report.html";
const SIGNED: &str = "report.dsse.json";
const EVAL_RESULT: &str = "eval-result.dsse.json";
const FIGURES: &str = "figures";
const LOG: &str = "log.txt";
const STATISTICS: &str = "statistics";

/// Request of an audit, as its folder keeps it.
#[derive(Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RunRequest {
    /// The program and its version.
    pub program: String,
    /// The directory in which the command was given.
    pub directory: PathBuf,
    /// The arguments of the command, from its name on.
    pub arguments: Vec<String>,
    /// Time at which the run began, in RFC 3339; absent in folders of earlier versions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub started_at: Option<String>,
    /// All that decides the report.
    pub plan: AuditPlan,
}

impl RunRequest {
    /// The request of this process.
    ///
    /// # Errors
    /// Where an argument is not UTF-8, or there is no current directory.
    pub fn of_process(plan: AuditPlan) -> Result<Self> {
        let utf8 = |argument: std::ffi::OsString| {
            argument.into_string().map_err(|argument| anyhow!("--out: the argument {argument:?} is not UTF-8"))
        };
        let arguments = std::env::args_os().skip(1).map(utf8).collect::<Result<_>>()?;
        let program = concat!("pdr-audit ", env!("CARGO_PKG_VERSION")).to_owned();
        let started_at = Some(OffsetDateTime::now_utc().format(&Rfc3339)?);
        Ok(Self { program, directory: std::env::current_dir()?, arguments, started_at, plan })
    }
}

/// The signed report of an audit as files.
pub struct SignedFiles {
    pub report: String,
    /// The verdict as in-toto's `eval-result`; `None` if there is none.
    pub eval_result: Option<String>,
}

/// The folder of a run that is under way.
pub struct RunFolder {
    path: PathBuf,
    log: File,
    /// The request of the interrupted run that goes on; `None` for a new run.
    before: Option<RunRequest>,
}

impl RunFolder {
    /// Begins a run in a new folder, or in an empty one.
    ///
    /// # Errors
    /// Where it is not empty, with what to do, or cannot be written.
    pub fn create(path: &Path) -> Result<Self> {
        let context = || format!("--out {}", path.display());
        if path.join(REQUEST).is_file() && !path.join(REPORT).exists() {
            bail!("{}: it holds an audit that did not end; go on with {}", context(), command_to_resume(path));
        }
        match fs::read_dir(path) {
            Ok(mut entries) => {
                // A run that failed before it had begun leaves a log and a directory of statistics.
                let is_ours = |name: &OsStr| name == LOG || name == STATISTICS;
                let is_foreign = entries.any(|entry| entry.is_ok_and(|entry| !is_ours(&entry.file_name())));
                ensure!(!is_foreign, "{}: the folder is not empty; name one that is, or a new one", context());
            }
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => fs::create_dir(path).with_context(context)?,
            Err(error) => return Err(error).with_context(context),
        }
        let path = path.canonicalize().with_context(context)?;
        let log = File::create(path.join(LOG)).with_context(context)?;
        Ok(Self { path, log, before: None })
    }

    /// Goes on with the run of a folder.
    ///
    /// # Errors
    /// Where it holds no audit that was interrupted.
    pub fn resume(path: &Path) -> Result<Self> {
        let context = || format!("--resume {}", path.display());
        let request = fs::read(path.join(REQUEST));
        let request = request.with_context(|| format!("{}: it is no folder of an audit (--out)", context()))?;
        ensure!(!path.join(REPORT).exists(), "{}: the audit has ended, and {REPORT} is its report", context());
        let before = serde_json::from_slice(&request).with_context(|| format!("{}: {REQUEST}", context()))?;
        let path = path.canonicalize().with_context(context)?;
        let log = File::options().append(true).create(true).open(path.join(LOG)).with_context(context)?;
        Ok(Self { path, log, before: Some(before) })
    }

    /// The request of the interrupted run; `None` for a new run.
    pub fn before(&self) -> Option<&RunRequest> {
        self.before.as_ref()
    }

    /// Where the statistics of texts are kept until the run ends.
    pub fn statistics(&self) -> PathBuf {
        self.path.join(STATISTICS)
    }

    /// The command that goes on with this run.
    pub fn command_to_resume(&self) -> String {
        command_to_resume(&self.path)
    }

    /// Writes what is asked, or checks that it is what the interrupted run was asked.
    ///
    /// # Errors
    /// Where it is another audit, or the file cannot be written.
    pub fn begin(&self, plan: &AuditPlan) -> Result<()> {
        match &self.before {
            None => self.write_json(REQUEST, &RunRequest::of_process(plan.clone())?),
            Some(RunRequest { plan: before, .. }) => match before.difference(plan) {
                None => Ok(()),
                Some(field) => bail!(
                    "{}: the audit is not the one that was interrupted: `{field}` differs; begin anew with another --out",
                    self.path.display()
                ),
            },
        }
    }

    /// Adds a line to the log, with the time.
    pub fn log(&self, message: &str) {
        let time = OffsetDateTime::now_utc().format(&Rfc3339).unwrap_or_default();
        // A log that cannot be written is no reason to give up hours of work.
        if let Err(error) = writeln!(&self.log, "{time} {message}") {
            eprintln!("warning: {}: {error}", self.path.join(LOG).display());
        }
    }

    /// Writes the scores, the table of the methods and the report, which may be signed, and deletes the statistics.
    ///
    /// # Errors
    /// Where a file cannot be written.
    pub fn complete(
        &self,
        json: &Value,
        rows: ScoreRows,
        texts: &[TextStrip],
        signed: Option<&SignedFiles>,
    ) -> Result<()> {
        rows.write(&self.path.join(SCORES))?;
        let methods = || Ok(json["methods"].as_array().into_iter().flatten().map(|method| Ok(method_row(method))));
        export::write(&self.path.join(METHODS), &[], methods)?;
        let arguments = self.arguments();
        let (page, figures) =
            report::draw_audit(json, rows.results, texts, &arguments, |page| (page.html(), page.figures()));
        report::write(&self.path.join(PAGE), &page)?;
        let folder = self.path.join(FIGURES);
        fs::create_dir_all(&folder).with_context(|| format!("cannot create {}", folder.display()))?;
        figures.iter().try_for_each(|(name, svg)| report::write(&folder.join(name), svg))?;
        if let Some(signed) = signed {
            report::write(&self.path.join(SIGNED), &signed.report)?;
            signed.eval_result.iter().try_for_each(|result| report::write(&self.path.join(EVAL_RESULT), result))?;
        }
        self.write_json(REPORT, json)?;
        self.log("the audit has ended");
        match fs::remove_dir_all(self.statistics()) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
                Err(error).with_context(|| format!("cannot delete {}", self.statistics().display()))
            }
            _ => Ok(()),
        }
    }

    /// The arguments of the run: those of the command that began it.
    pub fn arguments(&self) -> Vec<String> {
        self.before.as_ref().map_or_else(report::own_arguments, |before| before.arguments.clone())
    }

    fn write_json(&self, name: &str, content: &impl Serialize) -> Result<()> {
        let (path, json) = (self.path.join(name), format!("{}\n", serde_json::to_string_pretty(content)?));
        let written = NewFile::create(&path).and_then(|file| file.write(json.as_bytes()));
        written.with_context(|| format!("cannot write {}", path.display()))
    }
}

/// The command that goes on with the run of a folder.
fn command_to_resume(path: &Path) -> String {
    format!("`pdr-audit audit --resume {}`", path.display())
}

/// The numbers of a method as a row of a table.
fn method_row(method: &Value) -> ResultRow {
    let mut row = ResultRow::new();
    let mut add = |name: &str, value: &Value| {
        row.insert(name.to_owned(), value.clone());
    };
    for name in ["label", "name", "scored", "auroc", "auroc_standard_error"] {
        add(name, &method[name]);
    }
    for rate in method["tpr_at_fpr"].as_array().into_iter().flatten() {
        add(&format!("tpr at FPR {}", rate["fpr"]), &rate["tpr"]);
    }
    for name in ["fpr_at_95_tpr", "p_value", "p_value_adjusted"] {
        add(name, &method[name]);
    }
    let (versus, control) = (&method["versus_baseline"], &method["control"]);
    add("baseline", &versus["baseline"]);
    add("delta", &versus["delta"]);
    add("delta p_value", &versus["p_value"]);
    add("control", &control["model"]);
    add("control auroc", &control["auroc"]);
    add("control difference", &control["difference"]);
    row
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_is_new_or_empty_or_that_of_an_interrupted_run() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("run");
        let refused = |path: &Path| format!("{:#}", RunFolder::create(path).err().unwrap());
        let folder = RunFolder::create(&path).unwrap();
        folder.log("begun");
        fs::create_dir(folder.statistics()).unwrap();
        assert!(fs::read_to_string(path.join(LOG)).unwrap().ends_with("Z begun\n"));
        drop(folder);
        drop(RunFolder::create(&path).unwrap());
        fs::write(path.join("mine.txt"), "x").unwrap();
        assert!(refused(&path).ends_with("the folder is not empty; name one that is, or a new one"));
        assert!(refused(&path.join("mine.txt")).contains("mine.txt"));
        assert!(refused(&directory.path().join("absent/run")).contains("absent/run"));
        let no_run = format!("{:#}", RunFolder::resume(&path).err().unwrap());
        assert!(no_run.contains("it is no folder of an audit (--out)"), "{no_run}");
        fs::write(path.join(REQUEST), "{}").unwrap();
        assert!(refused(&path).contains("go on with `pdr-audit audit --resume "));
        let damaged = format!("{:#}", RunFolder::resume(&path).err().unwrap());
        assert!(damaged.contains("request.json: missing field"), "{damaged}");
        fs::write(path.join(REPORT), "{}").unwrap();
        let ended = format!("{:#}", RunFolder::resume(&path).err().unwrap());
        assert!(ended.contains("the audit has ended"), "{ended}");
    }
}
