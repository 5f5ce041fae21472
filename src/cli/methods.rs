//! `pdr-audit methods`: the catalogue of methods, as a table or one of them in full.

use super::report_format::{ReportArgs, wrapped};
use super::text_table::{TextColumn, TextTable};
use anyhow::{Result, anyhow};
use clap::Args;
use mia::methods::{Access, Catalogue, MethodEntry, MethodName, ParameterEntry, catalogue};
use serde_json::Value;
use std::fmt::{Display, Write};

/// The width that a summary may be cut to.
const SUMMARY: usize = 30;
/// The width that the inputs of a method may be cut to.
const NEEDS: usize = 17;

#[derive(Args)]
pub struct MethodsArgs {
    /// Print this method in full, with its formula and its source.
    name: Option<String>,
    #[command(flatten)]
    report: ReportArgs,
}

/// Prints the catalogue, or one method of it.
pub fn run(args: &MethodsArgs) -> Result<()> {
    let (catalogue, report) = (catalogue(), args.report.or_table());
    let Some(name) = &args.name else { return report.print(&catalogue, table) };
    let name = MethodName::named(name).map_err(|fault| anyhow!(fault.detail))?;
    let entry = catalogue.methods.iter().find(|entry| entry.name == name);
    report.print(entry.ok_or_else(|| anyhow!("the catalogue lacks the method `{name}`"))?, in_full)
}

/// One line a method, then the values of `--decay` and `--preset`.
fn table(catalogue: &Catalogue, width: Option<usize>) -> String {
    let columns = [
        TextColumn::words("method"),
        TextColumn::words("summary").cut_to(SUMMARY),
        TextColumn::words("PDR"),
        TextColumn::words("needs").cut_to(NEEDS),
        TextColumn::words("parameters"),
    ];
    let mut methods = TextTable::new(columns);
    for entry in &catalogue.methods {
        let parameters: Vec<String> = own_parameters(entry).map(parameter).collect();
        let pdr = if entry.pdr_refused.is_some() { "no" } else { "yes" };
        methods.add([
            entry.name.to_string(),
            entry.summary.to_owned(),
            pdr.to_owned(),
            needs(entry),
            parameters.join(", "),
        ]);
    }
    let decays: Vec<&str> = catalogue.decays.iter().map(|decay| decay.name).collect();
    let presets: Vec<String> = catalogue.presets.iter().map(|preset| preset.name.to_string()).collect();
    let mut out = methods.render(width);
    out.push_str("\n`pdr-audit methods NAME` prints a method in full.\n\ndecays of PDR (--decay):\n");
    out.push_str(&wrapped(&decays.join(", "), width));
    out.push_str("presets (--preset):\n");
    out.push_str(&wrapped(&presets.join(", "), width));
    out
}

/// The parameters that other methods do not take as well.
fn own_parameters(entry: &MethodEntry) -> impl Iterator<Item = &ParameterEntry> {
    entry.parameters.iter().filter(|parameter| !["truncate", "pdr", "label"].contains(&parameter.name))
}

/// Needs of a method beside the log-probabilities, which all need.
fn needs(entry: &MethodEntry) -> String {
    let others = entry.needs.iter().filter(|need| **need != Access::LogProbabilities);
    let names: Vec<String> = others.map(|need| snake_case(need).replace('_', " ")).collect();
    if names.is_empty() { "-".to_owned() } else { names.join(", ") }
}

/// The name of a value as JSON has it.
fn snake_case(value: impl serde::Serialize) -> String {
    serde_json::to_value(value).ok().and_then(|value| value.as_str().map(str::to_owned)).unwrap_or_default()
}

/// A parameter with its default and its range: `k=0.2 in (0, 1]`.
fn parameter(entry: &ParameterEntry) -> String {
    let default = entry.default.as_ref().map_or_else(String::new, |default| format!("={}", plain(default)));
    let values = entry.values.as_ref().map(|values| {
        let values: Vec<String> = values.iter().map(plain).collect();
        format!(" of {}", values.join("|"))
    });
    let range = entry.range.map(|range| format!(" in {range}"));
    format!("{}{default}{}", entry.name, values.or(range).unwrap_or_default())
}

/// A value without the quotation marks of JSON.
fn plain(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

/// All that the catalogue says of a method.
fn in_full(entry: &MethodEntry, width: Option<usize>) -> String {
    let mut out = format!("{}\n{}", entry.name, wrapped(entry.summary, width));
    // Writing to a String cannot fail.
    let mut section = |title: &str, content: &dyn Display| {
        let _ = write!(out, "\n{title}\n{}", wrapped(&content.to_string(), width));
    };
    section("formula", &entry.formula);
    section("needs beside log-probabilities", &needs(entry).replace('-', "nothing"));
    section("further forward passes", &entry.further_passes);
    match entry.pdr_refused {
        Some(reason) => section("PDR", &format!("refused: {reason}")),
        None => {
            let beyond = if entry.pdr_is_extension { ", which goes beyond the paper of PDR" } else { "" };
            section("PDR", &format!("accepted{beyond}: {}", entry.decays.join(", ")));
        }
    }
    section("source", &entry.source);
    out.push_str("\nparameters\n");
    for entry in &entry.parameters {
        let required = if entry.required { " (required)" } else { "" };
        let sweep = if entry.sweep { " A list makes a method for each value." } else { "" };
        out.push_str(&wrapped(&format!("{}{required}: {}{sweep}", parameter(entry), entry.description), width));
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_names_every_method_and_fits_80_columns() {
        let catalogue = catalogue();
        let narrow = table(&catalogue, Some(80));
        assert!(narrow.lines().all(|line| line.chars().count() <= 80), "{narrow}");
        assert!(narrow.contains("without parameters (--wide shows all)"), "{narrow}");
        let wide = table(&catalogue, None);
        for entry in &catalogue.methods {
            let line = wide.lines().find(|line| line.split(' ').next() == Some(&entry.name.to_string()));
            let line = line.unwrap_or_else(|| panic!("{} has no line: {wide}", entry.name));
            assert!(line.contains(entry.summary), "{line}");
            assert!(own_parameters(entry).all(|parameter| line.contains(parameter.name)), "{line}");
        }
        assert!(wide.contains("k=0.2 in (0, 1]") && wide.contains("align=shared of shared|official"), "{wide}");
    }

    #[test]
    fn a_method_in_full_has_its_formula_and_source() {
        for entry in &catalogue().methods {
            let full = in_full(entry, None);
            let words = full.split_whitespace().collect::<Vec<_>>().join(" ");
            for part in [entry.summary, entry.formula, entry.source, entry.further_passes] {
                assert!(words.contains(&part.split_whitespace().collect::<Vec<_>>().join(" ")), "{part}: {full}");
            }
            assert!(entry.parameters.iter().all(|parameter| words.contains(&parameter.description)), "{full}");
        }
    }
}
