//! `key`: makes, lists and revokes the keys of a service.

use super::scoring_args::variant;
use crate::access::{ClientLimits, KeyEntry, KeyFile, KeyScope, Secret};
use crate::config::{ByteSize, ID_RULE, Overrides, Settings, is_id};
use crate::wire::number_of;
use anyhow::{Context, Result, bail};
use attestation::SigningKey;
use clap::{Args, Subcommand};
use std::fs::File;
use std::io::{Write, stdout};
use std::path::{Path, PathBuf};
use time::{Duration, OffsetDateTime};

/// Notice printed once the file has changed.
const RELOAD: &str = "a service that runs reads the file again on SIGHUP";

#[derive(Args)]
pub struct KeyArgs {
    /// The file of keys; `auth.keys` of the settings by default.
    #[arg(long, value_name = "FILE", global = true)]
    keys: Option<PathBuf>,
    #[command(subcommand)]
    command: KeyCommand,
}

#[derive(Subcommand)]
enum KeyCommand {
    /// Make a key and print its secret, which is shown this once.
    New(NewKeyArgs),
    /// List the keys, without secrets.
    List,
    /// Revoke keys: one by its id, or all of a client.
    Revoke(RevokeArgs),
    /// Make a key that signs reports, and print its public half.
    NewSigning {
        /// Write the private key to this file, which does not exist (Ed25519, PKCS #8 in PEM).
        file: PathBuf,
    },
}

#[derive(Args)]
struct NewKeyArgs {
    /// The client that holds it; jobs and datasets belong to this name.
    #[arg(long)]
    name: String,
    /// Scopes of the key: `score`, `audit` (jobs and datasets), `admin` (models, fine-tunes, what all clients own).
    #[arg(long, value_delimiter = ',', default_value = "score,audit",
        value_parser = variant::<KeyScope>())]
    scopes: Vec<KeyScope>,
    /// Number of days that it is valid; without end by default.
    #[arg(long, value_name = "DAYS", value_parser = clap::value_parser!(u16).range(1..))]
    days: Option<u16>,
    /// Maximum number of tokens that the client scores a minute, with all its keys.
    #[arg(long, value_name = "TOKENS", value_parser = clap::value_parser!(u64).range(1..))]
    tokens_per_minute: Option<u64>,
    /// Maximum number of tokens that the client scores in 24 hours, with all its keys.
    #[arg(long, value_name = "TOKENS", value_parser = clap::value_parser!(u64).range(1..))]
    tokens_per_day: Option<u64>,
    /// Maximum number of requests of the client in flight, with all its keys.
    #[arg(long, value_name = "REQUESTS", value_parser = clap::value_parser!(u32).range(1..))]
    requests: Option<u32>,
    /// Maximum size of the samples that the client has in the store, such as 10GB.
    #[arg(long, value_name = "SIZE")]
    stored_bytes: Option<ByteSize>,
    /// Maximum number of datasets that the client has in the store.
    #[arg(long, value_name = "DATASETS", value_parser = clap::value_parser!(u64).range(1..))]
    datasets: Option<u64>,
    /// Maximum number of jobs that the client has in the store, finished or not.
    #[arg(long, value_name = "JOBS", value_parser = clap::value_parser!(u64).range(1..))]
    jobs: Option<u64>,
}

#[derive(Args)]
#[group(required = true, multiple = false)]
struct RevokeArgs {
    /// The id of the key, as `key list` shows it.
    id: Option<String>,
    /// All keys of this client.
    #[arg(long)]
    name: Option<String>,
}

/// Runs the command.
///
/// # Errors
/// A file that cannot be used, or a key that is not there.
pub fn run(args: KeyArgs, config: Option<&Path>) -> Result<()> {
    let path = || match args.keys {
        Some(path) => Ok(path),
        None => match Settings::load(config, &Overrides::default())?.auth.keys {
            Some(path) => Ok(path),
            None => bail!("no file of keys is named: give --keys FILE, or `auth.keys` in the settings"),
        },
    };
    match args.command {
        KeyCommand::New(new) => make(new, &path()?, OffsetDateTime::now_utc()),
        KeyCommand::List => list(&KeyFile::read(&path()?)?, OffsetDateTime::now_utc()),
        KeyCommand::Revoke(revoked) => revoke(&revoked, &path()?),
        KeyCommand::NewSigning { file } => make_signing_key(&file),
    }
}

/// Writes a private key that only the user may read, and prints the public one.
fn make_signing_key(path: &Path) -> Result<()> {
    let key = SigningKey::random().context("no random numbers")?;
    let unwritable = || format!("cannot write {}", path.display());
    let mut options = File::options();
    options.write(true).create_new(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    let mut file = options.open(path).with_context(unwritable)?;
    file.write_all(key.to_pem()?.as_bytes()).and_then(|()| file.sync_all()).with_context(unwritable)?;
    eprintln!(
        "key {}; publish its public half, which is printed here: reports are verified with it",
        key.public().id()
    );
    Ok(stdout().lock().write_all(key.public().to_pem()?.as_bytes())?)
}

fn make(new: NewKeyArgs, path: &Path, now: OffsetDateTime) -> Result<()> {
    let NewKeyArgs { name, mut scopes, days, .. } = new;
    if !is_id(&name) {
        bail!("--name: expected {ID_RULE}, got {name:?}");
    }
    scopes.sort_unstable();
    scopes.dedup();
    let _lock = KeyFile::lock(path)?;
    let mut file = KeyFile::read_or_new(path)?;
    let secret = new_secret(&file).context("no random numbers")?;
    let digest = secret.digest();
    let limits = ClientLimits {
        tokens_per_minute: new.tokens_per_minute,
        tokens_per_day: new.tokens_per_day,
        requests: new.requests.map(|requests| requests as usize),
        stored_bytes: new.stored_bytes.map(|size| size.as_u64()),
        datasets: new.datasets,
        jobs: new.jobs,
    };
    let expires = days.map(|days| now + Duration::days(days.into()));
    let id = digest.key_id();
    let said = format!("key {id} of {name} in {}; its secret is shown this once; {RELOAD}", path.display());
    file.keys.push(KeyEntry { id, name, digest, scopes, created: now, expires, limits });
    file.write(path)?;
    eprintln!("{said}");
    writeln!(stdout().lock(), "{}", secret.reveal())?;
    Ok(())
}

/// A secret whose key has another id than those of the file.
fn new_secret(file: &KeyFile) -> Result<Secret, getrandom::Error> {
    loop {
        let secret = Secret::generate()?;
        if !file.keys.iter().any(|key| key.id == secret.digest().key_id()) {
            return Ok(secret);
        }
    }
}

fn list(file: &KeyFile, now: OffsetDateTime) -> Result<()> {
    let date = |time: OffsetDateTime| time.date().to_string();
    let mut out = stdout().lock();
    writeln!(out, "{:<10}{:<24}{:<22}{:<12}{:<22}limits", "id", "name", "scopes", "created", "expires")?;
    for KeyEntry { id, name, scopes, created, expires, limits, .. } in &file.keys {
        let scopes: Vec<String> = scopes.iter().map(KeyScope::to_string).collect();
        let expires = match expires {
            Some(time) if *time <= now => format!("{} (expired)", date(*time)),
            Some(time) => date(*time),
            None => "never".to_owned(),
        };
        let limits: Vec<String> =
            limits.named().map(|(limit, counted, rest)| format!("{}{rest}", number_of(limit, counted))).collect();
        let limits = if limits.is_empty() { "none".to_owned() } else { limits.join(", ") };
        writeln!(out, "{id:<10}{name:<24}{:<22}{:<12}{expires:<22}{limits}", scopes.join(","), date(*created))?;
    }
    Ok(())
}

fn revoke(revoked: &RevokeArgs, path: &Path) -> Result<()> {
    let _lock = KeyFile::lock(path)?;
    let mut file = KeyFile::read(path)?;
    let before = file.keys.len();
    let is_meant = |key: &KeyEntry| revoked.id.as_ref() == Some(&key.id) || revoked.name.as_ref() == Some(&key.name);
    file.keys.retain(|key| !is_meant(key));
    let count = before - file.keys.len();
    if count == 0 {
        bail!("{} has no such key", path.display());
    }
    file.write(path)?;
    eprintln!("{count} of {} revoked; {RELOAD}", number_of(before, "key"));
    Ok(())
}
