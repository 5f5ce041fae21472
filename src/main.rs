//! The `pdr-audit` program; see [`pdr_audit::cli`].

use std::process::ExitCode;

fn main() -> ExitCode {
    pdr_audit::cli::main()
}
