//! Methods of a report that differ by their seeds alone.

use super::document::MethodReport;
use super::seed_summary::{SeedSpread, SeedSummary};
use std::sync::Arc;

/// Summarizes the methods that the request asks for with several seeds, if each seed has an AUROC.
#[must_use]
pub fn seed_summaries(methods: &[MethodReport]) -> Vec<SeedSummary> {
    let mut families: Vec<Vec<&MethodReport>> = Vec::new();
    for method in methods.iter().filter(|method| method.method.method.split().is_some()) {
        let is_kin = |family: &&mut Vec<&MethodReport>| {
            family.first().is_some_and(|first| first.method.method.differs_by_seed(&method.method.method))
        };
        match families.iter_mut().find(is_kin) {
            Some(family) => family.push(method),
            None => families.push(vec![method]),
        }
    }
    families.iter().filter(|family| family.len() > 1).filter_map(|family| summary(family)).collect()
}

fn summary(family: &[&MethodReport]) -> Option<SeedSummary> {
    let aurocs: Option<Vec<f64>> =
        family.iter().map(|method| method.findings.separation.as_ref().and_then(|found| found.auroc)).collect();
    let deltas: Option<Vec<f64>> =
        family.iter().map(|method| method.findings.versus_baseline.as_ref().map(|versus| versus.delta)).collect();
    Some(SeedSummary {
        labels: family.iter().map(|method| Arc::clone(&method.method.label)).collect(),
        seeds: family.iter().filter_map(|method| method.method.method.split()).map(|split| split.seed).collect(),
        auroc: SeedSpread::new(aurocs?),
        delta: deltas.map(SeedSpread::new),
    })
}
