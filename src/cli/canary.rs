//! `pdr-audit canary`: texts to publish so that training on them can be shown later.

use super::membership_test::{self, CommonArgs};
use super::test_input::TestInput;
use crate::audits::{MAX_SAMPLES, commitment_fault};
use crate::canaries::{DrawOptions, PrivatePart, Template, draw};
use crate::new_file::NewFile;
use crate::wire::number_of;
use anyhow::{Context, Result, anyhow, bail, ensure};
use clap::{Args, Subcommand};
use mia::methods::{Fault, Scope, parse_list, resolve};
use mia::random::{index_below, seeded};
use mia::texts::hexadecimal;
use serde_json::{Value, json};
use std::io::{Write, stdout};
use std::path::{Path, PathBuf};

/// Bytes of a nonce.
const NONCE_BYTES: usize = 16;

const PUBLISH: &str = "publish.jsonl";
const PRIVATE: &str = "private.json";
const COMMITMENT: &str = "commitment";

#[derive(Args)]
pub struct CanaryArgs {
    #[command(subcommand)]
    command: CanaryCommand,
}

#[derive(Subcommand)]
enum CanaryCommand {
    /// Draw canaries: a file to publish, a private part to keep, and a commitment to deposit before publication.
    Make(MakeArgs),
    /// Check the commitment and test whether a model was trained on the canaries.
    Open(Box<OpenArgs>),
}

#[derive(Args)]
struct MakeArgs {
    /// Number of canaries.
    #[arg(long, default_value_t = 50, value_parser = clap::value_parser!(u16).range(1..=10_000))]
    count: u16,
    /// Number of private twins of each canary, which is drawn at random from itself and its twins.
    #[arg(long, default_value_t = 9, value_parser = clap::value_parser!(u16).range(1..=999))]
    twins: u16,
    /// Number of random words of each text.
    #[arg(long, default_value_t = 24, value_name = "NUMBER", conflicts_with = "template",
        value_parser = clap::value_parser!(u16).range(2..=1000))]
    words: u16,
    /// Sentences with slots, one a line, which the canaries are made from in turn: `{word}`, `{number}`, `{red|green|blue}`.
    #[arg(long, value_name = "FILE")]
    template: Option<PathBuf>,
    /// The method that decides when they are opened, which needs no other model: a name, or a JSON object as in a request.
    #[arg(long, value_name = "METHOD", default_value = "min_k_plus_plus")]
    method: String,
    /// Directory for the three files, created if need be.
    #[arg(long, value_name = "DIR")]
    out: PathBuf,
}

#[derive(Args)]
struct OpenArgs {
    /// The private part as `make` wrote it. Its commitment is `--commitment`, or the file `commitment` beside it.
    private: PathBuf,
    #[command(flatten)]
    common: CommonArgs,
}

pub async fn run(args: CanaryArgs, config: Option<&Path>) -> Result<()> {
    match args.command {
        CanaryCommand::Make(args) => make(&args),
        CanaryCommand::Open(args) => open(*args, config).await,
    }
}

fn make(args: &MakeArgs) -> Result<()> {
    let method = match args.method.trim_start().starts_with('{') {
        true => serde_json::from_str(&args.method).context("--method is no JSON object")?,
        false => Value::String(args.method.clone()),
    };
    let label = label(&method).context("--method: canaries take a method that needs no other model")?;
    let texts = usize::from(args.count) * (usize::from(args.twins) + 1);
    ensure!(
        texts <= MAX_SAMPLES,
        "--count, --twins: {}, and a test takes {MAX_SAMPLES} at most",
        number_of(texts, "text")
    );
    let templates = args.template.as_deref().map_or_else(|| Ok(vec![Template::words(args.words.into())]), templates)?;
    for name in [PUBLISH, PRIVATE, COMMITMENT] {
        let path = args.out.join(name);
        ensure!(!path.exists(), "{} exists, and a new draw would make it worthless", path.display());
    }
    let options = DrawOptions { count: args.count.into(), twins: args.twins.into(), templates };
    let (mut seed, mut nonce) = ([0; 32], [0; NONCE_BYTES]);
    getrandom::fill(&mut seed).and_then(|()| getrandom::fill(&mut nonce)).context("no random numbers")?;
    let mut random = seeded(seed);
    let canaries = draw(&options, &mut |bound| index_below(&mut random, bound as u32) as usize)?;
    let nonce = hexadecimal(&nonce);
    let private = PrivatePart { method, nonce, canaries };
    let commitment = private.commitment(&label);
    let lines = (1..).zip(&private.canaries).map(|(number, canary)| {
        let line = json!({ "id": format!("canary-{number}"), "text": canary.text });
        format!("{line}\n")
    });
    std::fs::create_dir_all(&args.out).with_context(|| format!("cannot create {}", args.out.display()))?;
    let write = |name: &str, content: &str| {
        let path = args.out.join(name);
        NewFile::create(&path)
            .and_then(|file| {
                #[cfg(unix)]
                if name == PRIVATE {
                    use std::os::unix::fs::PermissionsExt;
                    file.file().set_permissions(std::fs::Permissions::from_mode(0o600))?;
                }
                file.write(content.as_bytes())
            })
            .with_context(|| format!("cannot write {}", path.display()))
    };
    // The file that nobody can make again comes first.
    write(PRIVATE, &format!("{}\n", serde_json::to_string_pretty(&private)?))?;
    write(COMMITMENT, &format!("{commitment}\n"))?;
    write(PUBLISH, &lines.collect::<String>())?;
    let out = args.out.display();
    let canaries = if args.count == 1 { "1 canary".to_owned() } else { format!("{} canaries", args.count) };
    writeln!(
        stdout().lock(),
        "{}, each one of {}, to be tested by {label}\n\
         1. deposit the commitment where its date can be shown: {commitment}\n\
         2. publish the texts of {out}/{PUBLISH}\n\
         3. keep {out}/{PRIVATE} to yourself, and a copy: without it nothing can be shown\n\
         later: pdr-audit canary open {out}/{PRIVATE} --model MODEL",
        canaries,
        number_of(args.twins + 1, "text"),
    )?;
    Ok(())
}

async fn open(args: OpenArgs, config: Option<&Path>) -> Result<()> {
    let OpenArgs { private: file, mut common } = args;
    let content = std::fs::read_to_string(&file).with_context(|| format!("cannot read {}", file.display()))?;
    let private: PrivatePart =
        serde_json::from_str(&content).with_context(|| format!("{} is no private part of canaries", file.display()))?;
    for (flag, given) in [
        ("--methods", common.scoring.methods.is_given()),
        ("--primary", common.primary.is_some()),
        ("--nonce", common.nonce.is_some()),
    ] {
        ensure!(!given, "{flag}: the private part says it, and the commitment covers it");
    }
    let label = label(&private.method).with_context(|| format!("{}: `method`", file.display()))?;
    let given = match &common.commitment {
        Some(commitment) => commitment.clone(),
        None => {
            let beside = file.with_file_name(COMMITMENT);
            let read = std::fs::read_to_string(&beside);
            read.with_context(|| format!("cannot read {}, and there is no --commitment", beside.display()))?
        }
    };
    let given = given.trim().to_owned();
    if let Some(fault) = commitment_fault(&given) {
        bail!("the commitment: {fault}");
    }
    let computed = private.commitment(&label);
    ensure!(
        given == computed,
        "{} is not what was committed to: its method, nonce, canaries and twins give {computed}, and the commitment is {given}",
        file.display()
    );
    common.scoring.methods.methods = Some(json!([private.method]).to_string());
    (common.commitment, common.nonce) = (Some(given), Some(private.nonce));
    membership_test::test(TestInput::canaries(&file, private.canaries), common, config).await
}

/// The label that a method has by default. It names no model, since the ids of models may change until it is used.
fn label(method: &Value) -> Result<String> {
    let requests = parse_list(&json!([method]).to_string())?;
    let faults = |faults: Vec<Fault>| {
        let faults: Vec<String> = faults.iter().map(|fault| fault.detail.clone()).collect();
        anyhow!("{}", faults.join("; "))
    };
    let methods = resolve(&requests, &Scope::default()).map_err(faults)?;
    match &*methods {
        [method] => Ok(method.method.label()),
        methods => bail!("it stands for {} methods, and one decides", methods.len()),
    }
}

fn templates(file: &Path) -> Result<Vec<Template>> {
    let content = std::fs::read_to_string(file).with_context(|| format!("cannot read {}", file.display()))?;
    let lines = (1..).zip(content.lines()).filter(|(_, line)| !line.trim().is_empty());
    let parse = |(number, line): (usize, &str)| {
        Template::parse(line).with_context(|| format!("{}: line {number}", file.display()))
    };
    let templates: Vec<Template> = lines.map(parse).collect::<Result<_>>()?;
    ensure!(!templates.is_empty(), "{} has no template", file.display());
    Ok(templates)
}
