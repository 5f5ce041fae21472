//! Which sample of a test is what.

use mia::json::by_name;
use serde::{Deserialize, Serialize};
use std::ops::Range;
use strum::{Display, EnumString, VariantNames};
use utoipa::ToSchema;

/// Which sample of a test is what. A document, a canary and a shard are a unit each: a sample that is compared with those after it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case", deny_unknown_fields)]
pub enum TestLayout {
    /// Suspects are labelled members. `suspects` of them come first, then the held-out texts; if it is `None`, they are the
    /// samples of a dataset in its order. Of texts that were cut, `origins` has the place of each sample's text in its list.
    Dataset {
        suspects: Option<usize>,
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        origins: Vec<usize>,
    },
    /// The same lists, halved by `seed`.
    Di {
        suspects: Option<usize>,
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        origins: Vec<usize>,
        seed: u64,
    },
    /// Of each document, its public text, then its private ones (their number per document).
    Paired { private: Vec<usize> },
    /// Of each canary, its text, then its twins (their number per canary).
    Rank { twins: Vec<usize> },
    /// Of each shard, its published order, then `shuffles` random ones.
    Order { shards: usize, shuffles: usize, seed: u64, separator: String },
}

impl TestLayout {
    /// The layout of two lists: suspects, as many as given, then held-out texts; or those of a dataset in its order.
    pub fn lists(kind: TestKind, suspects: Option<usize>, seed: u64) -> Self {
        let origins = Vec::new();
        match kind {
            TestKind::Di => Self::Di { suspects, origins, seed },
            _ => Self::Dataset { suspects, origins },
        }
    }

    /// The layout of two lists whose texts were cut, with the place of each sample's text in its list.
    pub fn with_origins(mut self, texts: Vec<usize>) -> Self {
        if let Self::Dataset { origins, .. } | Self::Di { origins, .. } = &mut self {
            *origins = texts;
        }
        self
    }

    pub fn kind(&self) -> TestKind {
        match self {
            Self::Dataset { .. } => TestKind::Dataset,
            Self::Di { .. } => TestKind::Di,
            Self::Paired { .. } => TestKind::Paired,
            Self::Rank { .. } => TestKind::Rank,
            Self::Order { .. } => TestKind::Order,
        }
    }

    /// The samples of each unit, in order; none of two lists.
    pub fn units(&self) -> Vec<Range<usize>> {
        let sizes: Vec<usize> = match self {
            Self::Dataset { .. } | Self::Di { .. } => Vec::new(),
            Self::Paired { private: others } | Self::Rank { twins: others } => {
                others.iter().map(|others| 1 + others).collect()
            }
            Self::Order { shards, shuffles, .. } => vec![1 + shuffles; *shards],
        };
        let range = |start: &mut usize, size: usize| {
            let unit = *start..*start + size;
            *start = unit.end;
            Some(unit)
        };
        sizes.into_iter().scan(0, range).collect()
    }

    /// JSON pointers (RFC 6901) into the request: where the sample of a number comes from.
    pub fn pointers(&self) -> impl Fn(usize) -> String {
        let (units, [list, first, others]) = (self.units(), self.kind().fields());
        move |row| {
            let unit = units.partition_point(|unit| unit.end <= row);
            let after_first = units.get(unit).and_then(|unit| row.checked_sub(unit.start + 1));
            match (self, after_first) {
                (Self::Dataset { suspects: None, .. } | Self::Di { suspects: None, .. }, _) => {
                    format!("/dataset/{row}")
                }
                (
                    Self::Dataset { suspects: Some(suspects), origins }
                    | Self::Di { suspects: Some(suspects), origins, .. },
                    _,
                ) => {
                    let text = |place| origins.get(row).copied().unwrap_or(place);
                    match row.checked_sub(*suspects) {
                        None => format!("/{list}/{}", text(row)),
                        Some(place) => format!("/{others}/{}", text(place)),
                    }
                }
                (Self::Order { .. }, _) => format!("/{list}/{unit}"),
                (_, None) => format!("/{list}/{unit}/{first}"),
                (_, Some(place)) => format!("/{list}/{unit}/{others}/{place}"),
            }
        }
    }
}

/// Kind of comparison.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, Display, EnumString, VariantNames, Serialize, Deserialize, ToSchema,
)]
#[serde(rename_all = "snake_case", try_from = "String")]
#[strum(serialize_all = "snake_case")]
#[schema(as = TestKind)]
pub enum TestKind {
    /// Texts that may have been trained on with texts of the same source that were not.
    #[default]
    Dataset,
    /// The same texts, by a combination of all methods whose weights are learnt on one half of them and tested on the other.
    Di,
    /// Published texts with private rewrites of the same time.
    Paired,
    /// Published canaries with their twins, which were made in the same way and never published.
    Rank,
    /// The published order of a dataset with random orders.
    Order,
}

/// The kinds of tests that count documents, canaries or shards.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "snake_case")]
#[schema(as = TestUnitKind)]
pub enum UnitKind {
    /// Documents: a published text with private rewrites.
    Paired,
    /// Canaries with their twins.
    Rank,
    /// Shards in their published order and in random orders.
    Order,
}

impl TestKind {
    /// The fields of a request that hold the texts: the list of units, and of a unit the first text and the others. Of two
    /// lists the suspects and, as others, the held-out texts.
    pub fn fields(self) -> [&'static str; 3] {
        match self {
            Self::Dataset | Self::Di => ["suspects", "", "held_out"],
            Self::Paired => ["documents", "public", "private"],
            Self::Rank => ["canaries", "text", "twins"],
            Self::Order => ["shards", "", ""],
        }
    }

    /// None for `dataset` and `di`, which count clusters of texts.
    pub fn units(self) -> Option<UnitKind> {
        match self {
            Self::Dataset | Self::Di => None,
            Self::Paired => Some(UnitKind::Paired),
            Self::Rank => Some(UnitKind::Rank),
            Self::Order => Some(UnitKind::Order),
        }
    }
}

impl TryFrom<String> for TestKind {
    type Error = String;

    fn try_from(name: String) -> Result<Self, String> {
        by_name(&name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn dataset(suspects: Option<usize>) -> TestLayout {
        TestLayout::Dataset { suspects, origins: Vec::new() }
    }

    fn order() -> TestLayout {
        TestLayout::Order { shards: 2, shuffles: 2, seed: 0, separator: "\n".to_owned() }
    }

    #[test]
    fn units_follow_each_other() {
        assert_eq!(TestLayout::Paired { private: vec![1, 3] }.units(), [0..2, 2..6]);
        assert_eq!(TestLayout::Rank { twins: vec![2] }.units(), std::slice::from_ref(&(0..3)));
        assert_eq!(order().units(), [0..3, 3..6]);
        assert!(dataset(Some(3)).units().is_empty());
    }

    #[test]
    fn samples_are_named_by_their_place_in_the_request() {
        let pointers = |layout: TestLayout, rows: usize| -> Vec<String> { (0..rows).map(layout.pointers()).collect() };
        let listed = pointers(dataset(Some(2)), 4);
        assert_eq!(listed, ["/suspects/0", "/suspects/1", "/held_out/0", "/held_out/1"]);
        let cut = TestLayout::Dataset { suspects: Some(3), origins: vec![0, 0, 1, 0, 0] };
        assert_eq!(pointers(cut, 5), ["/suspects/0", "/suspects/0", "/suspects/1", "/held_out/0", "/held_out/0"]);
        assert_eq!(pointers(dataset(None), 2), ["/dataset/0", "/dataset/1"]);
        let halved = TestLayout::lists(TestKind::Di, Some(1), 3);
        assert_eq!(pointers(halved, 2), ["/suspects/0", "/held_out/0"]);
        let paired = pointers(TestLayout::Paired { private: vec![1, 2] }, 5);
        let second = ["/documents/1/public", "/documents/1/private/0", "/documents/1/private/1"];
        assert_eq!(paired, [&["/documents/0/public", "/documents/0/private/0"][..], &second].concat());
        assert_eq!(pointers(TestLayout::Rank { twins: vec![1] }, 2), ["/canaries/0/text", "/canaries/0/twins/0"]);
        assert_eq!(pointers(order(), 6)[2..4], ["/shards/0", "/shards/1"]);
    }

    #[test]
    fn a_layout_survives_being_stored() {
        let di = TestLayout::lists(TestKind::Di, Some(1), 7).with_origins(vec![0, 0]);
        let all = [dataset(None), di, TestLayout::Paired { private: vec![1] }, order()];
        for layout in all {
            let json = serde_json::to_string(&layout).unwrap();
            assert_eq!(serde_json::from_str::<TestLayout>(&json).unwrap(), layout, "{json}");
        }
    }
}
