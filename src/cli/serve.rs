//! `pdr-audit serve`: the HTTP service, or a check of what it would serve.

use super::runtime::block_on;
use super::scoring_args::VariantArgs;
use super::text_table::{TextColumn, TextTable};
use crate::app::{self, CheckedPart};
use crate::config::{LogFormat, Overrides, Settings};
use crate::telemetry;
use crate::wire::number_of;
use anyhow::{Result, bail};
use clap::Args;
use std::io::{Write, stdout};
use std::path::Path;

#[derive(Args, Default)]
pub struct ServeArgs {
    /// Name or address to listen on.
    #[arg(long, help_heading = "Service")]
    host: Option<String>,
    /// Port to listen on; 0 lets the system choose.
    #[arg(long, help_heading = "Service")]
    port: Option<u16>,
    /// Serve other machines without asking them for a key.
    #[arg(long, help_heading = "Service")]
    insecure_no_auth: bool,
    /// Check the settings, the addresses, the keys, the store and the files of the models, print what would be served, and end: with
    /// the exit code 1 where anything is at fault.
    #[arg(long, help_heading = "Service")]
    check: bool,
    /// Model to serve: the id of a configured model, a directory, or a repository on the Hub as in
    /// `EleutherAI/pythia-160m@REVISION`. May be given several times; the first is the default model.
    #[arg(long, value_name = "MODEL", help_heading = "Model")]
    model: Vec<String>,
    #[command(flatten)]
    variant: VariantArgs,
}

/// Serves, or checks what would be served.
pub fn run(args: ServeArgs, config: Option<&Path>) -> Result<()> {
    let overrides = Overrides { host: args.host, port: args.port, insecure_no_auth: args.insecure_no_auth };
    let settings = Settings::load(config, &overrides)?;
    let (settings, _) = settings.with_models(&args.variant.with(args.model))?;
    if args.check {
        telemetry::init_tracing(settings.log.format == LogFormat::Json, "warn")?;
        let parts = block_on(async { Ok(app::check(&settings).await) })?;
        return report(&parts);
    }
    telemetry::init_tracing(settings.log.format == LogFormat::Json, &settings.log.level)?;
    block_on(app::serve(settings))
}

/// Prints one line a part.
///
/// # Errors
/// Where a part is at fault.
fn report(parts: &[CheckedPart]) -> Result<()> {
    let mut table =
        TextTable::new([TextColumn::words("part"), TextColumn::words("state"), TextColumn::words("detail")]);
    for CheckedPart { name, outcome } in parts {
        let (state, detail) = match outcome {
            Ok(detail) => ("ok", detail.clone()),
            Err(error) => ("FAULT", format!("{error:#}")),
        };
        table.add([name.clone(), state.to_owned(), detail]);
    }
    // A fault is shown in full, however long it is.
    write!(stdout().lock(), "{}", table.render(None))?;
    let faults = parts.iter().filter(|part| part.outcome.is_err()).count();
    if faults > 0 {
        bail!("{}: the service would not serve all of this", number_of(faults, "fault"));
    }
    Ok(())
}
