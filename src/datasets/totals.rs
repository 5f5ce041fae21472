//! Totals of samples, counted one after another.

use super::DatasetError;
use super::sample::{MAX_GROUPS, Sample};
use crate::wire::number_of;
use indexmap::IndexSet;
use serde::{Deserialize, Serialize};
use std::collections::HashSet;

/// Maximum number of distinct names of other columns.
const MAX_COLUMNS: usize = 256;

/// Bytes of a token, by which tokens are estimated before texts are tokenized.
const BYTES_PER_TOKEN: u64 = 4;

/// Returns an estimate of the tokens of texts with this number of bytes.
#[must_use]
pub fn estimated_tokens(bytes: u64) -> u64 {
    bytes / BYTES_PER_TOKEN
}

/// Counts of the samples of a dataset or a job.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SampleTotals {
    pub samples: usize,
    /// Those that are known to be in the training data.
    pub members: usize,
    /// Those that are known not to be.
    pub non_members: usize,
    /// Different groups.
    pub groups: usize,
    /// Samples that name a group.
    pub grouped: usize,
    /// Samples that bring neighbours along.
    pub with_neighbors: usize,
    /// Samples with a context or spans.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub in_part: usize,
    /// Bytes of the texts, as UTF-8.
    pub text_bytes: u64,
    /// The first sample without a label.
    pub first_unlabelled: Option<usize>,
    /// The names of what comes along with samples, in the order in which they come.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub columns: Vec<String>,
}

fn is_zero(number: &usize) -> bool {
    *number == 0
}

#[derive(Debug, Default)]
pub struct TotalsCounter {
    totals: SampleTotals,
    groups: HashSet<String>,
    columns: IndexSet<String>,
}

impl TotalsCounter {
    /// Counts one more.
    ///
    /// # Errors
    /// [`DatasetError::Internal`] where what comes along with it is damaged.
    pub fn add(&mut self, sample: &Sample) -> Result<(), DatasetError> {
        let totals = &mut self.totals;
        match sample.is_member() {
            Some(true) => totals.members += 1,
            Some(false) => totals.non_members += 1,
            None => totals.first_unlabelled = totals.first_unlabelled.or(Some(totals.samples)),
        }
        totals.samples += 1;
        totals.text_bytes += sample.text.len() as u64;
        totals.in_part += usize::from(sample.context.is_some() || sample.spans.is_some());
        totals.with_neighbors += usize::from(sample.neighbors.is_some());
        for name in sample.columns.names()? {
            if self.columns.len() <= MAX_COLUMNS {
                self.columns.insert(name);
            }
        }
        if let Some(group) = &sample.group {
            totals.grouped += 1;
            // One more than there may be says it all.
            if self.groups.len() <= MAX_GROUPS && !self.groups.contains(group) {
                self.groups.insert(group.clone());
            }
        }
        Ok(())
    }

    #[must_use]
    pub fn totals(&self) -> SampleTotals {
        SampleTotals {
            groups: self.groups.len(),
            columns: self.columns.iter().cloned().collect(),
            ..self.totals.clone()
        }
    }
}

impl SampleTotals {
    /// The counts of these samples.
    ///
    /// # Errors
    /// [`DatasetError::Internal`] where what comes along with a sample is damaged.
    pub fn count<'a>(samples: impl IntoIterator<Item = &'a Sample>) -> Result<Self, DatasetError> {
        let mut counter = TotalsCounter::default();
        samples.into_iter().try_for_each(|sample| counter.add(sample))?;
        Ok(counter.totals())
    }

    /// Returns true if some samples have a label.
    #[must_use]
    pub fn are_labelled(&self) -> bool {
        self.members + self.non_members > 0
    }

    #[must_use]
    pub fn all_have_neighbors(&self) -> bool {
        self.with_neighbors == self.samples
    }

    /// Returns the fault of samples with a context or spans for `taker`, which takes whole texts; `None` if there are none.
    #[must_use]
    pub fn in_part_fault(&self, taker: &str) -> Option<String> {
        let (in_part, samples) = (self.in_part, self.samples);
        (in_part > 0).then(|| {
            format!("{in_part} of {samples} samples have `context` or `spans`, and {taker} takes whole texts: leave them out")
        })
    }

    /// Returns the fault of the samples for an audit, in words: that of [`Self::fault`], or that one class is absent.
    #[must_use]
    pub fn audit_fault(&self, place: impl FnOnce(usize) -> String) -> Option<String> {
        let Self { members, non_members, .. } = self;
        let is_one_class = (*members == 0) != (*non_members == 0);
        let detail = || {
            format!(
                "{} and {} are labelled; an audit takes both, or no labels",
                number_of(*members, "member"),
                number_of(*non_members, "non-member")
            )
        };
        self.fault(place).or_else(|| is_one_class.then(detail))
    }

    /// Returns the fault of the samples as a whole, in words; `place` describes the place of a sample by its index, from 0.
    /// Non-members alone are good for a fine-tune.
    #[must_use]
    pub fn fault(&self, place: impl FnOnce(usize) -> String) -> Option<String> {
        let Self { samples, members, non_members, groups, first_unlabelled, columns, .. } = self;
        let labelled = members + non_members;
        if *samples == 0 {
            return Some("the list of samples is empty: it takes at least one".to_owned());
        }
        if labelled > 0
            && let Some(first) = first_unlabelled
        {
            let place = place(*first);
            let have = if labelled == 1 { "has" } else { "have" };
            return Some(format!(
                "{labelled} of {samples} samples {have} a label, and {place} has none: all must have one, or none"
            ));
        }
        if columns.len() > MAX_COLUMNS {
            return Some(format!("there are more than {MAX_COLUMNS} other columns, which is the limit"));
        }
        (*groups > MAX_GROUPS)
            .then(|| format!("there are more than {MAX_GROUPS} groups; an audit takes at most {MAX_GROUPS}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::datasets::{ColumnText, Label};

    #[test]
    fn samples_have_labels_of_both_kinds_or_none() {
        let fault = |labels: &[Option<f64>]| {
            let sample = |label: &Option<f64>| Sample { label: label.map(Label::new), ..Sample::default() };
            let totals = SampleTotals::count(&labels.iter().map(sample).collect::<Vec<_>>()).unwrap();
            totals.audit_fault(|number| format!("line {}", number + 1))
        };
        assert_eq!(fault(&[None, None]), None);
        assert_eq!(fault(&[Some(1.0), Some(0.0)]), None);
        for (labels, words) in [
            (&[][..], "is empty"),
            (&[Some(1.0), None], "1 of 2 samples has a label, and line 2 has none"),
            (&[Some(1.0), Some(1.0)], "2 members and 0 non-members are labelled"),
        ] {
            let fault = fault(labels).unwrap();
            assert!(fault.contains(words), "{fault}");
        }
    }

    fn unplaced(number: usize) -> String {
        panic!("nobody asks where sample {number} is")
    }

    #[test]
    fn groups_are_counted_up_to_one_too_many() {
        let totals = |count: usize| {
            let sample = |group: usize| Sample { group: Some(group.to_string()), ..Sample::default() };
            SampleTotals::count(&(0..count).map(sample).collect::<Vec<_>>()).unwrap()
        };
        assert_eq!((totals(MAX_GROUPS).groups, totals(MAX_GROUPS).fault(unplaced)), (MAX_GROUPS, None));
        assert_eq!(totals(MAX_GROUPS + 9).groups, MAX_GROUPS + 1);
        assert!(totals(MAX_GROUPS + 1).fault(unplaced).unwrap().contains("at most 256"));
    }

    #[test]
    fn names_of_other_columns_are_listed_once_up_to_one_too_many() {
        let columns = |name: String| ColumnText::new(&[(name, 1.into())].into_iter().collect()).unwrap();
        let sample = |name: String| Sample { columns: columns(name), ..Sample::default() };
        let totals = SampleTotals::count(&["b", "a", "b"].map(|name| sample(name.to_owned()))).unwrap();
        assert_eq!(totals.columns, ["b", "a"]);
        let many: Vec<Sample> = (0..=MAX_COLUMNS).map(|number| sample(number.to_string())).collect();
        assert_eq!(SampleTotals::count(&many[1..]).unwrap().fault(unplaced), None);
        assert!(SampleTotals::count(&many).unwrap().fault(unplaced).unwrap().contains("more than 256 other columns"));
    }

    #[test]
    fn texts_and_neighbors_are_counted() {
        let samples = [
            Sample { text: "ab".to_owned(), neighbors: Some(vec!["a".to_owned()]), ..Sample::default() },
            Sample { text: "\u{e9}".to_owned(), ..Sample::default() },
        ];
        let totals = SampleTotals::count(&samples).unwrap();
        assert_eq!((totals.text_bytes, totals.with_neighbors, totals.all_have_neighbors()), (4, 1, false));
        assert!(SampleTotals::count(&samples[..1]).unwrap().all_have_neighbors());
    }
}
