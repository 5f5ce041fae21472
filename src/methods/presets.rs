//! The comparisons of the PDR paper (arXiv 2601.06827), with its parameters: every row of its tables but FSD's.

use super::base::{Base, Reading};
use super::decay::{Curve, Decay};
use super::method::Method;
use super::name::MethodName;
use super::pdr::Pdr;
use super::range::Fraction;
use super::view::Generator;
use super::weighting::Weighting;
use serde::Serialize;
use std::sync::Arc;
use utoipa::ToSchema;

/// The presets by name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum PresetName {
    /// The tables on WikiMIA; parameters depend on the length of the texts.
    PaperWikimia,
    /// The tables on MIMIR, which have no reference model.
    PaperMimir,
}

/// The lengths in words for which the paper gives parameters on WikiMIA.
pub const LENGTHS: [usize; 3] = [32, 64, 128];

impl PresetName {
    /// Every preset, in the order in which they are listed to clients.
    pub const ALL: [PresetName; 2] = [PresetName::PaperWikimia, PresetName::PaperMimir];

    /// The name that clients use.
    pub fn name(self) -> &'static str {
        match self {
            PresetName::PaperWikimia => "paper_wikimia",
            PresetName::PaperMimir => "paper_mimir",
        }
    }

    /// The preset of that name, if there is one.
    pub fn from_name(name: &str) -> Option<PresetName> {
        Self::ALL.into_iter().find(|preset| preset.name() == name)
    }
}

impl std::fmt::Display for PresetName {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.name())
    }
}

/// A preset with what it needs.
#[derive(Clone, Debug, PartialEq)]
pub enum Preset {
    /// [`PresetName::PaperWikimia`].
    PaperWikimia {
        /// 32, 64 or 128 words.
        length: usize,
        /// Id of the reference model.
        reference: Arc<str>,
    },
    /// [`PresetName::PaperMimir`].
    PaperMimir,
}

impl Preset {
    /// Its methods: the baselines, then each decayed one plain, with the slope of CAMIA and with each decay. `neighbor`
    /// is among them where there are neighbours: generated (`Some(Some(..))`) or with the texts (`Some(None)`).
    pub fn methods(&self, neighbors: Option<Option<Generator>>) -> Vec<Method> {
        let k = Fraction::FIFTH;
        let neighbor = neighbors.map(|generator| Base::Neighbor { generator });
        let mut methods: Vec<Method> =
            [Base::Lowercase, Base::Zlib].into_iter().chain(neighbor).map(Method::from).collect();
        let reference = match self {
            Preset::PaperWikimia { reference, .. } => {
                Some(Base::Ref { reference: Arc::clone(reference), reading: Reading::SameIds })
            }
            Preset::PaperMimir => None,
        };
        let decayed = [Some(Base::Loss), reference, Some(Base::MinK { k }), Some(Base::MinKPlusPlus { k })];
        for base in decayed.into_iter().flatten() {
            let weightings = self.weightings(base.name());
            let plain = Method::from(base);
            let with = |weighting| Method { pdr: Some(Pdr::new(weighting)), ..plain.clone() };
            methods.push(plain.clone());
            methods.extend(weightings.map(with));
        }
        methods
    }

    fn weightings(&self, name: MethodName) -> [Weighting; 4] {
        let (linear, exponential, polynomial) = match self {
            Preset::PaperWikimia { length, .. } => {
                let steep = matches!(name, MethodName::Ref | MethodName::MinKPlusPlus);
                let (linear, polynomial) = if *length == 32 { (0.1, 0.1) } else { (1.0, 2.0) };
                (linear, if steep { 0.02 } else { 0.002 }, polynomial)
            }
            Preset::PaperMimir => (1.0, 0.002, 0.1),
        };
        let decay = |family, alpha| Weighting::Decay(Curve::published(family, alpha));
        [
            Weighting::Slope,
            decay(Decay::Linear, linear),
            decay(Decay::Exponential, exponential),
            decay(Decay::Polynomial, polynomial),
        ]
    }
}
