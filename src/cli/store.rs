//! `store`: checks, saves and restores the store of a service.

use super::runtime::{block_on, interrupted};
use crate::config::{Overrides, Settings, StoreUrl};
use crate::store::{Store, StoreCheck, StoreError, back_up, restore};
use crate::wire::number_of;
use anyhow::{Context, Result, bail};
use clap::{Args, Subcommand};
use std::io::{Write, stdout};
use std::path::{Path, PathBuf};

#[derive(Args)]
pub struct StoreArgs {
    #[command(subcommand)]
    command: StoreCommand,
}

#[derive(Subcommand)]
enum StoreCommand {
    /// Read everything, compare it with its digests and print what is wrong; nothing is changed.
    Check,
    /// Copy a store in SQLite, which may be in use, to a new file.
    Backup { file: PathBuf },
    /// Put a backup in the place of a store in SQLite that is not there.
    Restore { file: PathBuf },
}

/// Runs the command.
///
/// # Errors
/// A store that cannot be read, is damaged, or is not to be replaced.
pub fn run(args: &StoreArgs, config: Option<&Path>) -> Result<()> {
    let Some(url) = Settings::load(config, &Overrides::default())?.store.url else {
        bail!("no store is named: set `store.url` in the settings");
    };
    let (check, done) = match &args.command {
        StoreCommand::Check => (block_on(check(&url))?, String::new()),
        StoreCommand::Backup { file } => {
            let saved = block_on(unless_interrupted(back_up(&url, file))).context("store backup")?;
            (saved, format!("{} is a backup of the store", file.display()))
        }
        StoreCommand::Restore { file } => {
            let restored = block_on(unless_interrupted(restore(&url, file))).context("store restore")?;
            (restored, format!("the store is that of {}", file.display()))
        }
    };
    report(&check, &done)
}

/// Runs until the end or a signal; then what was written so far is deleted.
async fn unless_interrupted(saving: impl Future<Output = Result<StoreCheck, StoreError>>) -> Result<StoreCheck> {
    tokio::select! {
        saved = saving => Ok(saved?),
        () = interrupted() => bail!("interrupted"),
    }
}

async fn check(url: &StoreUrl) -> Result<StoreCheck> {
    let store = Store::open_to_read(url).await.context("`store.url`")?;
    let check = store.verify().await;
    store.close().await;
    Ok(check?)
}

fn report(check: &StoreCheck, done: &str) -> Result<()> {
    let mut out = stdout().lock();
    let counts = [
        ("datasets", check.datasets),
        ("blocks of samples", check.sample_blocks),
        ("jobs", check.jobs),
        ("reports", check.reports),
        ("blocks of scores", check.score_blocks),
        ("plans", check.plans),
        ("adapters", check.adapters),
    ];
    for (name, count) in counts {
        writeln!(out, "{name:<20}{count:>12}")?;
    }
    if !check.sealed {
        let version = check.version;
        eprintln!(
            "rows of version {version} have no digests: the samples were compared with their ids, and reports and scores were not checked"
        );
    }
    for fault in &check.faults {
        writeln!(out, "damaged: {fault}")?;
    }
    if !check.faults.is_empty() {
        bail!("the store is damaged: {}", number_of(check.faults.len() as u64, "fault"));
    }
    if !done.is_empty() {
        eprintln!("{done}");
    }
    Ok(())
}
