//! Canaries: texts that an owner publishes so that training on them can be shown later.
//!
//! Of each canary several versions are made in the same way, one of which is drawn and published; the others, its twins, stay
//! private. A model that was not trained on the canary gives each version the same chance of the highest score.

mod template;

use crate::audits::{Canary, TestKind, TestTexts, commitment};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::collections::HashSet;
pub use template::{Template, TemplateError};
use thiserror::Error;

/// Maximum number of times that a text is drawn anew because an earlier one is equal.
const TRIES: usize = 1000;

/// Number of canaries to draw, and what to draw them from.
#[derive(Clone, Debug)]
pub struct DrawOptions {
    pub count: usize,
    pub twins: usize,
    /// Used in turn; at least one.
    pub templates: Vec<Template>,
}

/// A template has too few different texts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error(
    "template {template} has too few different texts ({texts}) for the canaries that it makes, each with {twins} twins: give it more \
     slots"
)]
pub struct DrawError {
    /// From 1.
    pub template: usize,
    pub texts: usize,
    pub twins: usize,
}

/// Draws canaries, all of whose texts differ. Of the texts of a canary, which are made alike, one is drawn to be published. `below`
/// draws a uniform number below its argument.
///
/// # Errors
/// Where a template does not have enough different texts.
pub fn draw(options: &DrawOptions, below: &mut impl FnMut(usize) -> usize) -> Result<Vec<Canary>, DrawError> {
    let mut known = HashSet::new();
    let mut canary = |place: usize| {
        let number = place % options.templates.len();
        let template = &options.templates[number];
        let mut texts = Vec::new();
        for _ in 0..=options.twins {
            let new = (0..TRIES)
                .map(|_| template.fill(below))
                .find(|text| !text.trim().is_empty() && known.insert(text.clone()));
            let too_few = || DrawError { template: number + 1, texts: template.texts(), twins: options.twins };
            texts.push(new.ok_or_else(too_few)?);
        }
        let published = texts.swap_remove(below(texts.len()));
        Ok(Canary { text: published, twins: texts })
    };
    (0..options.count).map(&mut canary).collect()
}

/// The private part of canaries, as a file of JSON: their twins, which of the texts was drawn, and how the test is done.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PrivatePart {
    /// The method that the verdict is about, as in a request.
    pub method: Value,
    /// Random digits, so that the commitment cannot be guessed from the published texts.
    pub nonce: String,
    /// Each with the text that was drawn, and its twins.
    pub canaries: Vec<Canary>,
}

impl PrivatePart {
    /// The SHA-256 that commits to it; `label` is the one that its method has by default.
    #[must_use]
    pub fn commitment(&self, label: &str) -> String {
        let texts = TestTexts::Rank(self.canaries.clone());
        commitment(TestKind::Rank, label, &self.nonce, &texts.committed())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use mia::random::{index_below, stream};

    fn options(count: usize, twins: usize, template: &str) -> DrawOptions {
        DrawOptions { count, twins, templates: vec![Template::parse(template).unwrap()] }
    }

    #[test]
    fn all_texts_differ_and_each_place_is_published_as_often_as_the_others() {
        let mut random = stream(1, "canaries");
        let mut below = |bound: usize| index_below(&mut random, bound as u32) as usize;
        let canaries = draw(&options(1000, 4, "{number} {word} {word}"), &mut below).unwrap();
        let texts: HashSet<&String> =
            canaries.iter().flat_map(|canary| std::iter::once(&canary.text).chain(&canary.twins)).collect();
        assert_eq!((canaries.len(), texts.len()), (1000, 5000));
        // Canaries whose published text is the first in the alphabet of its five: binomial with 1/5, 4 standard deviations.
        let first = canaries.iter().filter(|canary| canary.twins.iter().all(|twin| canary.text < *twin)).count();
        assert!((150..=250).contains(&first), "{first}");
    }

    #[test]
    fn a_template_with_too_few_texts_is_named() {
        let mut next = 0;
        let mut below = |bound: usize| {
            next += 1;
            next % bound
        };
        let error = draw(&options(2, 2, "{a|b|c}"), &mut below).unwrap_err();
        assert_eq!(error, DrawError { template: 1, texts: 3, twins: 2 });
        assert!(draw(&options(1, 2, "{a|b|c}"), &mut below).is_ok());
    }
}
