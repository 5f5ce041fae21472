//! The texts of a test as clients give them, what is wrong with them, and the samples that they become.

use super::layout::{TestKind, TestLayout};
use crate::audits::limits::MAX_SAMPLES;
use crate::datasets::{Label, Sample, SampleId};
use mia::json::BoundedList;
use mia::methods::Fault;
use mia::random::{shuffle, stream};
use serde::{Deserialize, Deserializer, Serialize};
use serde_untagged::UntaggedEnumVisitor;
use utoipa::ToSchema;

/// Maximum number of random orders of a shard.
pub const MAX_SHUFFLES: usize = 10_000;
/// Maximum total size in bytes of all orders of all shards, which are written out when the test is submitted.
const MAX_ORDER_BYTES: usize = 256 << 20;

/// The texts of a test.
#[derive(Clone, Debug, PartialEq)]
pub enum TestTexts {
    Dataset { suspects: Vec<TestText>, held_out: Vec<TestText> },
    Di { suspects: Vec<TestText>, held_out: Vec<TestText>, seed: u64 },
    Paired(Vec<PairedDocument>),
    Rank(Vec<Canary>),
    Order(OrderTexts),
}

/// A text: itself, or with what belongs to it.
#[derive(Clone, Debug, PartialEq, ToSchema)]
#[serde(untagged)]
#[schema(as = TestText)]
pub enum TestText {
    /// The text alone.
    Text(String),
    /// The text with what belongs to it.
    Named(NamedTestText),
}

/// A text with what belongs to it.
#[derive(Clone, Debug, PartialEq, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = NamedTestText)]
pub struct NamedTestText {
    /// Comes back where the text is excluded; need not be unique.
    pub id: Option<SampleId>,
    /// The text; `input` is accepted as another name of this field.
    #[serde(alias = "input")]
    pub text: String,
    /// Id of the document that it is a part or a version of: the texts of one document count once. Equal ids in two lists are two
    /// documents.
    pub document: Option<SampleId>,
}

/// A published text with private rewrites of it.
#[derive(Clone, Debug, PartialEq, Deserialize, ToSchema)]
#[serde(deny_unknown_fields, expecting = "an object with `public` and `private`")]
pub struct PairedDocument {
    /// The text that was published.
    pub public: String,
    /// Rewrites of it that were made at the same time and never published.
    #[schema(min_items = 1)]
    #[serde(deserialize_with = "private_texts")]
    pub private: Vec<String>,
}

/// A text that was published, with others that could have been in its place.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields, expecting = "an object with `text` and `twins`")]
pub struct Canary {
    /// The canary, which was published.
    pub text: String,
    /// Texts of the same generator that were never published. Which of them became the canary was drawn.
    #[schema(min_items = 1)]
    #[serde(deserialize_with = "private_texts")]
    pub twins: Vec<String>,
}

/// Shards of a dataset whose items have a published order.
#[derive(Clone, Debug, PartialEq)]
pub struct OrderTexts {
    /// Items in the order in which they were published.
    pub shards: Vec<Vec<String>>,
    /// Number of random orders that each shard is compared with.
    pub shuffles: usize,
    /// Seed of these orders.
    pub seed: u64,
    /// Separator between two items.
    pub separator: String,
}

impl OrderTexts {
    /// Shards with the default comparison.
    pub fn new(shards: Vec<Vec<String>>) -> Self {
        Self { shards, shuffles: 50, seed: 0, separator: "\n".to_owned() }
    }

    /// All orders of a shard as texts, the published one first.
    fn orders(&self, place: usize) -> impl Iterator<Item = String> {
        let mut random = stream(self.seed, &format!("order of shard {place}"));
        let items: Vec<&str> = self.shards[place].iter().map(String::as_str).collect();
        let published = items.join(&self.separator);
        let drawn = move |_| {
            let mut items = items.clone();
            shuffle(&mut items, &mut random);
            items.join(&self.separator)
        };
        std::iter::once(published).chain((0..self.shuffles).map(drawn))
    }

    /// The bytes of all orders of all shards.
    fn bytes(&self) -> usize {
        let published = |items: &Vec<String>| {
            let separators = items.len().saturating_sub(1).saturating_mul(self.separator.len());
            items.iter().map(String::len).sum::<usize>().saturating_add(separators)
        };
        let sum = self.shards.iter().map(published).fold(0, usize::saturating_add);
        sum.saturating_mul(self.shuffles.saturating_add(1))
    }

    fn faults(&self) -> Vec<Fault> {
        let short = |(place, items): (usize, &Vec<String>)| {
            let detail = || format!("a shard takes at least 2 items, since {} of them has no order", items.len());
            (items.len() < 2).then(|| Fault::new(format!("/shards/{place}"), detail()))
        };
        let mut faults: Vec<Fault> = self.shards.iter().enumerate().filter_map(short).collect();
        if !(1..=MAX_SHUFFLES).contains(&self.shuffles) {
            let detail = format!("there are {} random orders, outside 1 to {MAX_SHUFFLES}", self.shuffles);
            faults.push(Fault::new("/shuffles", detail));
        } else if self.bytes() > MAX_ORDER_BYTES {
            let bytes = self.bytes();
            let detail = format!("all orders of all shards take {bytes} bytes; the limit is {MAX_ORDER_BYTES}");
            faults.push(Fault::new("/shards", detail));
        }
        faults
    }
}

impl TestTexts {
    pub fn kind(&self) -> TestKind {
        match self {
            Self::Dataset { .. } => TestKind::Dataset,
            Self::Di { .. } => TestKind::Di,
            Self::Paired(_) => TestKind::Paired,
            Self::Rank(_) => TestKind::Rank,
            Self::Order(_) => TestKind::Order,
        }
    }

    /// Two lists of texts for a test of this kind.
    pub fn lists(kind: TestKind, suspects: Vec<TestText>, held_out: Vec<TestText>, seed: u64) -> Self {
        match kind {
            TestKind::Di => Self::Di { suspects, held_out, seed },
            _ => Self::Dataset { suspects, held_out },
        }
    }

    /// Returns their faults, with pointers into the request.
    pub fn faults(&self) -> Vec<Fault> {
        let [list, _, others] = self.kind().fields();
        let mut faults = match self {
            Self::Dataset { suspects, held_out } | Self::Di { suspects, held_out, .. } => {
                [empty(list, suspects.len()), empty(others, held_out.len())].into_iter().flatten().collect()
            }
            Self::Order(order) => empty(list, order.shards.len()).into_iter().chain(order.faults()).collect(),
            Self::Paired(_) | Self::Rank(_) => {
                let units = self.published();
                let mut faults = Vec::from_iter(empty(list, units.len()));
                faults.extend(
                    units
                        .iter()
                        .enumerate()
                        .filter_map(|(place, (_, private))| empty(&format!("{list}/{place}/{others}"), private.len())),
                );
                faults
            }
        };
        if faults.is_empty() && self.count() > MAX_SAMPLES {
            let detail = format!("there are {} texts to score; the limit of a test is {MAX_SAMPLES}", self.count());
            faults.push(Fault::new(format!("/{list}"), detail));
        }
        faults
    }

    /// The published text and the private ones of each document or canary; none of the other kinds.
    fn published(&self) -> Vec<(&String, &[String])> {
        match self {
            Self::Paired(documents) => {
                documents.iter().map(|document| (&document.public, &*document.private)).collect()
            }
            Self::Rank(canaries) => canaries.iter().map(|canary| (&canary.text, &*canary.twins)).collect(),
            Self::Dataset { .. } | Self::Di { .. } | Self::Order(_) => Vec::new(),
        }
    }

    fn count(&self) -> usize {
        match self {
            Self::Dataset { suspects, held_out } | Self::Di { suspects, held_out, .. } => {
                suspects.len() + held_out.len()
            }
            Self::Paired(_) | Self::Rank(_) => self.published().iter().map(|(_, private)| 1 + private.len()).sum(),
            Self::Order(order) => order.shards.len().saturating_mul(order.shuffles.saturating_add(1)),
        }
    }

    /// The samples that are scored, in the order that the layout describes.
    pub fn samples(&self) -> Vec<Sample> {
        let plain = |text: String| Sample { text, ..Sample::default() };
        match self {
            Self::Dataset { suspects, held_out } | Self::Di { suspects, held_out, .. } => {
                let labelled = |label| move |text: &TestText| text.sample(label);
                let suspects = suspects.iter().map(labelled(Label::MEMBER));
                suspects.chain(held_out.iter().map(labelled(Label::NON_MEMBER))).collect()
            }
            Self::Paired(_) | Self::Rank(_) => {
                let texts =
                    self.published().into_iter().flat_map(|(first, others)| std::iter::once(first).chain(others));
                texts.cloned().map(plain).collect()
            }
            Self::Order(order) => (0..order.shards.len()).flat_map(|place| order.orders(place)).map(plain).collect(),
        }
    }

    /// Which sample is what.
    pub fn layout(&self) -> TestLayout {
        match self {
            Self::Dataset { suspects, .. } => TestLayout::lists(TestKind::Dataset, Some(suspects.len()), 0),
            Self::Di { suspects, seed, .. } => TestLayout::lists(TestKind::Di, Some(suspects.len()), *seed),
            Self::Paired(documents) => {
                TestLayout::Paired { private: documents.iter().map(|document| document.private.len()).collect() }
            }
            Self::Rank(canaries) => {
                TestLayout::Rank { twins: canaries.iter().map(|canary| canary.twins.len()).collect() }
            }
            Self::Order(OrderTexts { shards, shuffles, seed, separator }) => TestLayout::Order {
                shards: shards.len(),
                shuffles: *shuffles,
                seed: *seed,
                separator: separator.clone(),
            },
        }
    }

    /// The texts that a commitment covers, by unit: of each document the public text and the private rewrites, of each canary the
    /// canary and its twins, of each shard its items in their published order, or all held-out texts.
    pub fn committed(&self) -> Vec<Vec<&str>> {
        match self {
            Self::Dataset { held_out, .. } | Self::Di { held_out, .. } => {
                vec![held_out.iter().map(TestText::as_str).collect()]
            }
            Self::Paired(_) | Self::Rank(_) => {
                let unit = |(first, others)| std::iter::once(first).chain(others).map(String::as_str).collect();
                self.published().into_iter().map(unit).collect()
            }
            Self::Order(order) => order.shards.iter().map(|items| items.iter().map(String::as_str).collect()).collect(),
        }
    }
}

fn empty(field: &str, length: usize) -> Option<Fault> {
    (length == 0).then(|| Fault::new(format!("/{field}"), "the list is empty: it takes at least one element"))
}

fn private_texts<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<String>, D::Error> {
    BoundedList::<String, MAX_SAMPLES>::deserialize(deserializer).map(|BoundedList(texts)| texts)
}

impl TestText {
    fn as_str(&self) -> &str {
        match self {
            Self::Text(text) | Self::Named(NamedTestText { text, .. }) => text,
        }
    }

    /// The text as a sample of its list. A document belongs to its list: equal names in two lists are two documents.
    fn sample(&self, label: Label) -> Sample {
        let list = if label == Label::MEMBER { "suspects" } else { "held_out" };
        let (id, document) = match self {
            Self::Text(_) => (None, None),
            Self::Named(NamedTestText { id, document, .. }) => (id.clone(), document.as_ref()),
        };
        let document = document.map(|document| SampleId::Text(format!("{list}: {document}")));
        Sample { id, text: self.as_str().to_owned(), document, label: Some(label), ..Sample::default() }
    }
}

impl<'de> Deserialize<'de> for TestText {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        UntaggedEnumVisitor::new()
            .expecting("a text, or an object with `text` and perhaps `id` and `document`")
            .string(|text| Ok(Self::Text(text.to_owned())))
            .map(|named| named.deserialize().map(Self::Named))
            .deserialize(deserializer)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    fn strings(texts: &[&str]) -> Vec<String> {
        texts.iter().map(|text| (*text).to_owned()).collect()
    }

    fn pointers(texts: &TestTexts) -> Vec<String> {
        texts.faults().into_iter().map(|fault| fault.pointer).collect()
    }

    fn documents(sizes: &[usize]) -> TestTexts {
        let document = |(place, &size): (usize, &usize)| PairedDocument {
            public: format!("public {place}"),
            private: (0..size).map(|copy| format!("private {place} {copy}")).collect(),
        };
        TestTexts::Paired(sizes.iter().enumerate().map(document).collect())
    }

    fn scored(texts: &TestTexts) -> Vec<String> {
        texts.samples().into_iter().map(|sample| sample.text).collect()
    }

    #[test]
    fn suspects_are_labelled_before_the_held_out_texts() {
        let read = |json: Value| serde_json::from_value::<Vec<TestText>>(json).unwrap();
        let suspects = read(json!(["a", { "id": 7, "text": "b", "document": "d" }]));
        let texts = TestTexts::Dataset { suspects, held_out: read(json!([{ "input": "c" }])) };
        let samples = texts.samples();
        assert_eq!(scored(&texts), ["a", "b", "c"]);
        assert_eq!(samples.iter().map(Sample::is_member).collect::<Vec<_>>(), [Some(true), Some(true), Some(false)]);
        let named = (samples[1].id.clone(), samples[1].document.clone());
        assert_eq!(named, (Some(SampleId::Integer(7)), Some(SampleId::Text("suspects: d".to_owned()))));
        assert_eq!((texts.committed(), texts.faults()), (vec![vec!["c"]], Vec::new()));
        for bad in [json!(["a", 1]), json!([{ "id": "a" }]), json!([{ "text": "a", "label": 1 }]), json!([["a"]])] {
            assert!(serde_json::from_value::<Vec<TestText>>(bad.clone()).is_err(), "{bad}");
        }
    }

    #[test]
    fn the_first_text_of_a_document_is_the_public_one() {
        let texts = documents(&[1, 2]);
        let expected = ["public 0", "private 0 0", "public 1", "private 1 0", "private 1 1"];
        assert_eq!(scored(&texts), expected);
        assert_eq!(texts.committed(), [&expected[..2], &expected[2..]]);
        assert_eq!(texts.layout(), TestLayout::Paired { private: vec![1, 2] });
        assert!(texts.samples().iter().all(|sample| sample.label.is_none()));
        let canary = Canary { text: "c".to_owned(), twins: strings(&["t", "u"]) };
        let texts = TestTexts::Rank(vec![canary]);
        assert_eq!((scored(&texts), texts.committed()), (strings(&["c", "t", "u"]), vec![vec!["c", "t", "u"]]));
    }

    #[test]
    fn orders_are_seeded_permutations_after_the_published_one() {
        let items = strings(&["one", "two", "three", "four"]);
        let order = |seed| {
            let shards = vec![items.clone(), items.clone()];
            TestTexts::Order(OrderTexts { shuffles: 20, seed, separator: " | ".to_owned(), ..OrderTexts::new(shards) })
        };
        let texts = scored(&order(1));
        assert_eq!(texts.len(), 42);
        assert_eq!((&*texts[0], &*texts[21]), ("one | two | three | four", "one | two | three | four"));
        for text in &texts {
            let mut parts: Vec<&str> = text.split(" | ").collect();
            parts.sort_unstable();
            assert_eq!(parts, ["four", "one", "three", "two"]);
        }
        assert!(texts[1..21].iter().any(|text| *text != texts[0]), "nothing was shuffled");
        assert_ne!(texts[1..21], texts[22..], "each shard has orders of its own");
        assert_eq!(scored(&order(1)), texts);
        assert_ne!(scored(&order(2)), texts);
    }

    #[test]
    fn all_faults_are_named_at_once() {
        let nothing = TestTexts::Dataset { suspects: Vec::new(), held_out: Vec::new() };
        assert_eq!(pointers(&nothing), ["/suspects", "/held_out"]);
        assert_eq!(pointers(&documents(&[])), ["/documents"]);
        assert_eq!(pointers(&documents(&[1, 0])), ["/documents/1/private"]);
        assert!(documents(&[1]).faults().is_empty());
        let canary = |twins: &[&str]| Canary { text: "c".to_owned(), twins: strings(twins) };
        assert_eq!(pointers(&TestTexts::Rank(vec![canary(&["t"]), canary(&[])])), ["/canaries/1/twins"]);
        assert_eq!(pointers(&TestTexts::Rank(Vec::new())), ["/canaries"]);
        let order = |shards: &[&[&str]], shuffles| {
            let shards = shards.iter().map(|items| strings(items)).collect();
            TestTexts::Order(OrderTexts { shuffles, ..OrderTexts::new(shards) })
        };
        assert_eq!(pointers(&order(&[&["a", "b"], &["a"], &[]], 0)), ["/shards/1", "/shards/2", "/shuffles"]);
        assert_eq!(pointers(&order(&[], MAX_SHUFFLES + 1)), ["/shards", "/shuffles"]);
        assert!(order(&[&["a", "b"]], 50).faults().is_empty());
        let long = "x".repeat(MAX_ORDER_BYTES / 100);
        assert_eq!(pointers(&order(&[&[&long, &long]], 50)), ["/shards"]);
        assert_eq!(pointers(&documents(&[MAX_SAMPLES, 1])), ["/documents"]);
    }
}
