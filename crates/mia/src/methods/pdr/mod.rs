//! Positional decay reweighting (PDR, arXiv 2601.06827): a weighting and how its weights are applied, as a client writes it and
//! as it is checked.

mod weighting;

pub use weighting::{Curve, Decay, WeightContext, Weighting, dataset_weights, slope};

use crate::json::by_name;
use crate::methods::fault::{Fault, Faults};
use crate::methods::grid::Grid;
use crate::methods::range::format_number;
use serde::{Deserialize, Serialize};
use std::fmt;
use strum::{EnumString, VariantNames};
use utoipa::ToSchema;

/// Weights by position or entropy.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct PdrRequest {
    /// Name of the decay, or of an ablation.
    #[schema(examples("linear"))]
    pub decay: String,
    /// `reverse` and `random`: whose weights they reorder; linear if left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(examples("linear"))]
    pub family: Option<String>,
    /// Rate at which the weights fall; its range depends on the decay, and ablations by entropy or slope take none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(examples(1.0))]
    pub alpha: Option<Grid>,
    /// `random`: the same seed gives a text the same order; 0 if left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub seed: Option<u64>,
    /// Values by which a method selects tokens, if it does: raw (`after`) or weighted (`before`).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub select: Option<Select>,
    /// Divide by the sum of the weights instead of the number of tokens.
    #[serde(default)]
    pub normalize: bool,
}

/// When a method that selects tokens does so.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, EnumString, VariantNames, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case", try_from = "String")]
#[strum(serialize_all = "snake_case")]
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
        by_name(&name)
    }
}

impl PdrRequest {
    /// The weights, one for each value of `alpha`; `None` where there is a fault. `pointer` is that of the request.
    pub fn read(&self, pointer: &str, faults: &mut Faults) -> Option<Vec<Pdr>> {
        let named = faults.keep(self.named(pointer))?;
        let faults_before = faults.len();
        let weightings = self.weightings(named, pointer, faults)?;
        let (select, normalize) = (self.select.unwrap_or_default(), self.normalize);
        let pdr = |weighting| Pdr { weighting, select, normalize };
        (faults.len() == faults_before).then(|| weightings.into_iter().map(pdr).collect())
    }

    /// A weighting of the name that is given, with parameters of its own.
    pub fn named(&self, pointer: &str) -> Result<Weighting, Fault> {
        let named = Weighting::NAMED.into_iter().find(|weighting| weighting.name() == self.decay);
        let known = Weighting::NAMED.map(|weighting| weighting.name());
        named.ok_or_else(|| Fault::unknown("decay", &self.decay, known, format!("{pointer}/decay")))
    }

    /// Everything is checked before the first `?`, so that no fault hides another.
    fn weightings(&self, named: Weighting, pointer: &str, faults: &mut Faults) -> Option<Vec<Weighting>> {
        let name = named.name();
        if named.curve().is_none() && self.alpha.is_some() {
            let detail = format!("`{name}` makes its own weights and takes no alpha");
            faults.push(Fault::new(format!("{pointer}/alpha"), detail));
        }
        let family = faults.keep(self.family(named, format!("{pointer}/family")));
        if self.seed.is_some() && !matches!(named, Weighting::Random { .. }) {
            let detail = format!("`{name}` draws nothing and takes no seed");
            faults.push(Fault::new(format!("{pointer}/seed"), detail));
        }
        if named.curve().is_none() {
            return Some(vec![named]);
        }
        let seed = self.seed.unwrap_or_default();
        let weighting = |curve| match named {
            Weighting::Reverse(_) => Weighting::Reverse(curve),
            Weighting::Random { .. } => Weighting::Random { curve, seed },
            _ => Weighting::Decay(curve),
        };
        Some(self.curves(family, &format!("{pointer}/alpha"), faults)?.into_iter().map(weighting).collect())
    }

    /// The family whose weights are used.
    fn family(&self, named: Weighting, pointer: String) -> Result<Decay, Fault> {
        match &self.family {
            None => Ok(named.curve().unwrap_or(Curve::LINEAR).family()),
            Some(family) if named.takes_family() => {
                let known = <Decay as VariantNames>::VARIANTS;
                family.parse().map_err(|_| Fault::unknown("family", family, known, pointer))
            }
            Some(_) => {
                Err(Fault::new(pointer, format!("`{}` takes no family; `reverse` and `random` do", named.name())))
            }
        }
    }

    /// The curves of the values of `alpha`, in the range of the family.
    fn curves(&self, family: Option<Decay>, pointer: &str, faults: &mut Faults) -> Option<Vec<Curve>> {
        let range = family.map(Decay::alpha_range);
        let Some(alphas) = &self.alpha else {
            let range = range.map_or(String::new(), |range| format!(" in {range}"));
            faults.push(Fault::new(pointer, format!("alpha is missing: `{}` takes a number{range}", self.decay)));
            return None;
        };
        let curve = |family: Decay, alpha| {
            let outside = || format!("alpha is {alpha:?}, outside {} for {family} decay", family.alpha_range());
            Curve::new(family, alpha).ok_or_else(outside)
        };
        let curves = |alpha| family.map(|family| curve(family, alpha)).transpose();
        alphas.checked(pointer, faults, curves)?.into_iter().collect()
    }
}

/// Reweighting of tokens, by position or by one of the ablations.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Pdr {
    pub weighting: Weighting,
    /// Selection of tokens by raw or by weighted values, for a method that selects.
    pub select: Select,
    /// True if the weighted sum is divided by the sum of the weights instead of the number of tokens.
    pub normalize: bool,
}

impl Pdr {
    /// Linear decay from 1 down to 0, the paper's plainest setting.
    pub const LINEAR: Pdr = Pdr::new(Weighting::Decay(Curve::LINEAR));

    /// Weights applied as the paper applies them.
    pub const fn new(weighting: Weighting) -> Pdr {
        Pdr { weighting, select: Select::After, normalize: false }
    }

    /// The request for it, defaults included. `selects`: whether the method selects tokens, so that `select` means
    /// something.
    pub fn to_request(self, selects: bool) -> PdrRequest {
        let curve = self.weighting.curve();
        PdrRequest {
            decay: self.weighting.name().to_owned(),
            family: curve.filter(|_| self.weighting.takes_family()).map(|curve| curve.family().to_string()),
            alpha: curve.map(|curve| Grid::One(curve.alpha())),
            seed: if let Weighting::Random { seed, .. } = self.weighting { Some(seed) } else { None },
            select: (selects || self.select == Select::Before).then_some(self.select),
            normalize: self.normalize,
        }
    }
}

/// The part of a label: `linear(alpha=1)`, `random(family=linear,alpha=1,seed=0)`, `entropy_sample(normalize)`.
impl fmt::Display for Pdr {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let PdrRequest { decay, family, seed, select, normalize, .. } = self.to_request(false);
        let alpha = self.weighting.curve().map(|curve| curve.alpha());
        let parts = [
            family.map(|family| format!("family={family}")),
            alpha.map(|alpha| format!("alpha={}", format_number(alpha))),
            seed.map(|seed| format!("seed={seed}")),
            select.map(|_| "before".to_owned()),
            normalize.then(|| "normalize".to_owned()),
        ];
        let parts: Vec<String> = parts.into_iter().flatten().collect();
        match parts.is_empty() {
            true => f.write_str(&decay),
            false => write!(f, "{decay}({})", parts.join(",")),
        }
    }
}
