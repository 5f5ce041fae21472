//! The comparisons of the PDR paper (arXiv 2601.06827), with its parameters: every row of its tables but FSD's.

use super::generator::Generator;
use super::loss::Loss;
use super::lowercase::Lowercase;
use super::method::Method;
use super::min_k::MinK;
use super::min_k_plus_plus::MinKPlusPlus;
use super::neighbor::{GENERATOR, Neighbor};
use super::parameters::{AnyParameter, ParameterEntry, ParameterType};
use super::pdr::{Curve, Decay, Pdr, Weighting};
use super::range::Fraction;
use super::reference::{REFERENCE, Ref, Tokenization};
use super::zlib::Zlib;
use serde::Serialize;
use std::sync::Arc;
use strum::{Display, EnumString, VariantArray};
use utoipa::ToSchema;

/// The presets by name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Display, EnumString, VariantArray, Serialize, ToSchema)]
#[serde(rename_all = "snake_case")]
#[strum(serialize_all = "snake_case")]
pub enum PresetName {
    /// The tables on WikiMIA; parameters depend on the length of the texts.
    PaperWikimia,
    /// The tables on MIMIR, which have no reference model.
    PaperMimir,
}

/// The lengths in words for which the paper gives parameters on WikiMIA.
pub const LENGTHS: [usize; 3] = [32, 64, 128];

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
        let neighbor = neighbors.map(|generator| Method::new(Neighbor { generator }));
        let mut methods: Vec<Method> =
            [Method::new(Lowercase), Method::new(Zlib)].into_iter().chain(neighbor).collect();
        for (plain, exponential) in self.decayed() {
            let with = |weighting| Method { pdr: Some(Pdr::new(weighting)), ..plain.clone() };
            methods.push(plain.clone());
            methods.extend(self.weightings(exponential).map(with));
        }
        methods
    }

    /// The methods that the paper decays, each with its alpha of exponential decay.
    fn decayed(&self) -> Vec<(Method, f64)> {
        let k = Fraction::FIFTH;
        let (loss, min_k, min_k_plus_plus) =
            (Method::new(Loss), Method::new(MinK { k }), Method::new(MinKPlusPlus { k }));
        match self {
            Preset::PaperWikimia { reference, .. } => {
                let reference = Ref { reference: Arc::clone(reference), tokenization: Tokenization::Shared };
                vec![(loss, 0.002), (Method::new(reference), 0.02), (min_k, 0.002), (min_k_plus_plus, 0.02)]
            }
            Preset::PaperMimir => vec![(loss, 0.002), (min_k, 0.002), (min_k_plus_plus, 0.002)],
        }
    }

    fn weightings(&self, exponential: f64) -> [Weighting; 4] {
        let (linear, polynomial) = match self {
            Preset::PaperWikimia { length: 32, .. } => (0.1, 0.1),
            Preset::PaperWikimia { .. } => (1.0, 2.0),
            Preset::PaperMimir => (1.0, 0.1),
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

/// One preset.
#[derive(Clone, Debug, PartialEq, Serialize, ToSchema)]
pub struct PresetEntry {
    /// What `preset` calls it.
    pub name: PresetName,
    /// What it expands to.
    pub summary: &'static str,
    /// What stands beside `preset`.
    pub parameters: Vec<ParameterEntry>,
    /// Whose tables it redoes.
    pub source: &'static str,
}

/// What the catalogue says of a preset.
pub fn preset_entry(name: PresetName) -> PresetEntry {
    let generator = ParameterEntry {
        description: "As of the method `neighbor`, which is among the methods where this is given or the texts have \
                      neighbours."
            .to_owned(),
        ..GENERATOR.entry()
    };
    let length = ParameterEntry {
        required: true,
        values: Some(LENGTHS.map(Into::into).to_vec()),
        ..ParameterEntry::optional(
            "length",
            ParameterType::Integer,
            "Length of the texts in words, which chooses the alphas.",
        )
    };
    let (summary, parameters) = match name {
        PresetName::PaperWikimia => (
            "The tables on WikiMIA: lowercase, zlib, neighbor; loss, ref, min_k and min_k_plus_plus plain, with slope \
             and with each decay.",
            vec![length, REFERENCE.entry(), generator],
        ),
        PresetName::PaperMimir => (
            "The tables on MIMIR: lowercase, zlib, neighbor; loss, min_k and min_k_plus_plus plain, with slope and with \
             each decay.",
            vec![generator],
        ),
    };
    PresetEntry { name, summary, parameters, source: "PDR, arXiv:2601.06827" }
}
