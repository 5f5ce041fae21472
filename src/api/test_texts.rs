//! The fields of a request that hold the texts of a test.

use super::check::{self, RequestFaults};
use crate::audits::{Canary, MAX_SAMPLES, OrderTexts, PairedDocument, TestKind, TestText, TestTexts};
use crate::wire::Shaped;
use mia::json::{BoundedList, Object};

/// The fields that hold the texts of a test, as they are read.
pub struct TextFields {
    pub suspects: Option<Shaped<BoundedList<TestText, MAX_SAMPLES>>>,
    pub held_out: Option<Shaped<BoundedList<TestText, MAX_SAMPLES>>>,
    pub dataset: Option<Shaped<String>>,
    pub documents: Option<Shaped<BoundedList<Object<PairedDocument>, MAX_SAMPLES>>>,
    pub canaries: Option<Shaped<BoundedList<Object<Canary>, MAX_SAMPLES>>>,
    pub shards: Option<Shaped<BoundedList<BoundedList<String, MAX_SAMPLES>, MAX_SAMPLES>>>,
    pub shuffles: Option<Shaped<usize>>,
    pub seed: Option<Shaped<u64>>,
    pub separator: Option<Shaped<String>>,
}

impl TextFields {
    /// Reads the texts of a test of this kind. `None` if a dataset has them or their types have faults.
    pub fn read(self, kind: TestKind, faults: &mut RequestFaults) -> Option<TestTexts> {
        self.note_foreign(kind, faults);
        match kind {
            TestKind::Dataset => self.read_dataset(faults),
            TestKind::Paired => {
                let documents = list("documents", self.documents, kind, faults)?;
                Some(TestTexts::Paired(documents.into_iter().map(|Object(document)| document).collect()))
            }
            TestKind::Rank => {
                let canaries = list("canaries", self.canaries, kind, faults)?;
                Some(TestTexts::Rank(canaries.into_iter().map(|Object(canary)| canary).collect()))
            }
            TestKind::Order => self.read_order(faults),
        }
    }

    fn read_dataset(self, faults: &mut RequestFaults) -> Option<TestTexts> {
        let has_lists = self.suspects.is_some() || self.held_out.is_some();
        if self.dataset.is_some() {
            let _ = check::shaped("/dataset", self.dataset, faults);
            if has_lists {
                faults.push("/dataset", "there are lists of texts as well; a test takes either");
            }
            return None;
        }
        if !has_lists {
            faults.push("", "a test of kind `dataset` takes `suspects` and `held_out`, or `dataset`");
            return None;
        }
        let suspects = list("suspects", self.suspects, TestKind::Dataset, faults);
        let held_out = list("held_out", self.held_out, TestKind::Dataset, faults);
        Some(TestTexts::Dataset { suspects: suspects?, held_out: held_out? })
    }

    fn read_order(self, faults: &mut RequestFaults) -> Option<TestTexts> {
        let shuffles = check::shaped("/shuffles", self.shuffles, faults);
        let seed = check::shaped("/seed", self.seed, faults);
        let separator = check::shaped("/separator", self.separator, faults);
        let shards = list("shards", self.shards, TestKind::Order, faults)?;
        let defaults = OrderTexts::new(shards.into_iter().map(|BoundedList(items)| items).collect());
        Some(TestTexts::Order(OrderTexts {
            shuffles: shuffles.unwrap_or(defaults.shuffles),
            seed: seed.unwrap_or(defaults.seed),
            separator: separator.unwrap_or(defaults.separator),
            shards: defaults.shards,
        }))
    }

    /// Notes fields that belong to other kinds.
    fn note_foreign(&self, kind: TestKind, faults: &mut RequestFaults) {
        let fields = [
            ("suspects", TestKind::Dataset, self.suspects.is_some()),
            ("held_out", TestKind::Dataset, self.held_out.is_some()),
            ("dataset", TestKind::Dataset, self.dataset.is_some()),
            ("documents", TestKind::Paired, self.documents.is_some()),
            ("canaries", TestKind::Rank, self.canaries.is_some()),
            ("shards", TestKind::Order, self.shards.is_some()),
            ("shuffles", TestKind::Order, self.shuffles.is_some()),
            ("seed", TestKind::Order, self.seed.is_some()),
            ("separator", TestKind::Order, self.separator.is_some()),
        ];
        for (field, owner, _) in fields.into_iter().filter(|(_, owner, is_given)| *is_given && *owner != kind) {
            faults
                .push(format!("/{field}"), format!("belongs to tests of kind `{owner}`, and this is of kind `{kind}`"));
        }
    }
}

/// The list of a field, which this kind of test takes.
fn list<T>(
    field: &str,
    value: Option<Shaped<BoundedList<T, MAX_SAMPLES>>>,
    kind: TestKind,
    faults: &mut RequestFaults,
) -> Option<Vec<T>> {
    if value.is_none() {
        faults.push("", format!("a test of kind `{kind}` takes `{field}`"));
    }
    check::shaped(&format!("/{field}"), value, faults).map(|BoundedList(texts)| texts)
}
