//! A weighting with what is done with its weights.

use super::decay::Curve;
use super::range::short;
use super::weighting::Weighting;
use crate::wire::by_name;
use serde::ser::SerializeMap;
use serde::{Deserialize, Serialize, Serializer};
use std::fmt;
use utoipa::ToSchema;

/// When a method that selects tokens does so.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case", try_from = "String")]
pub enum Select {
    /// By the raw values, which are weighted after that: PDR.
    #[default]
    After,
    /// By the weighted values: an ablation.
    Before,
}

impl TryFrom<String> for Select {
    type Error = String;

    fn try_from(name: String) -> Result<Self, String> {
        by_name(&name, &[("after", Select::After), ("before", Select::Before)])
    }
}

/// Reweighting by position, or by what the paper compares it with.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Pdr {
    /// The weights.
    pub weighting: Weighting,
    /// Whether tokens are selected by raw or by weighted values, for a method that selects.
    pub select: Select,
    /// Whether the weighted sum is divided by the sum of the weights instead of the number of tokens.
    pub normalize: bool,
}

impl Pdr {
    /// Linear decay from 1 down to 0, the paper's plainest setting.
    pub const LINEAR: Pdr = Pdr::new(Weighting::Decay(Curve::LINEAR));

    /// Weights applied as the paper applies them.
    pub const fn new(weighting: Weighting) -> Pdr {
        Pdr { weighting, select: Select::After, normalize: false }
    }
}

/// The part of a label: `linear(alpha=1)`, `random(family=linear,alpha=1,seed=0)`, `entropy_sample(normalize)`.
impl fmt::Display for Pdr {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = self.weighting.name();
        let mut parts = Vec::new();
        if let Some(curve) = self.weighting.curve() {
            if name.takes_family() {
                parts.push(format!("family={}", curve.family()));
            }
            parts.push(format!("alpha={}", short(curve.alpha())));
        }
        if let Weighting::Random { seed, .. } = self.weighting {
            parts.push(format!("seed={seed}"));
        }
        if self.select == Select::Before {
            parts.push("before".to_owned());
        }
        if self.normalize {
            parts.push("normalize".to_owned());
        }
        match parts.is_empty() {
            true => write!(f, "{name}"),
            false => write!(f, "{name}({})", parts.join(",")),
        }
    }
}

/// Weights as a request spells them, defaults included.
#[derive(Clone, Copy, Debug)]
pub(super) struct Spelt {
    /// The weights.
    pub pdr: Pdr,
    /// Whether the method selects, so that `select` means something.
    pub selects: bool,
}

impl Serialize for Spelt {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let Pdr { weighting, select, normalize } = self.pdr;
        let name = weighting.name();
        let mut fields = serializer.serialize_map(None)?;
        fields.serialize_entry("decay", name.name())?;
        if let Some(curve) = weighting.curve() {
            if name.takes_family() {
                fields.serialize_entry("family", &curve.family())?;
            }
            fields.serialize_entry("alpha", &curve.alpha())?;
        }
        if let Weighting::Random { seed, .. } = weighting {
            fields.serialize_entry("seed", &seed)?;
        }
        if self.selects {
            fields.serialize_entry("select", &select)?;
        }
        fields.serialize_entry("normalize", &normalize)?;
        fields.end()
    }
}
