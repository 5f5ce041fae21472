//! The comparisons of the PDR paper (arXiv 2601.06827), with its parameters: its tables but FSD's, its ablation, and the
//! sweeps behind its figures.

use super::auxiliary_pass::Generator;
use super::loss::Loss;
use super::lowercase::Lowercase;
use super::method::Method;
use super::min_k::MinK;
use super::min_k_plus_plus::MinKPlusPlus;
use super::neighbor::Neighbor;
use super::pdr::{Curve, Decay, Pdr, Select, Weighting};
use super::range::Fraction;
use super::reference::{Ref, Tokenization};
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
    /// The table of the ablation, in audits only; parameters depend on the length of the texts.
    PaperAblation,
    /// The grids of alpha over each decay.
    PaperAlpha,
    /// Truncation against linear decay.
    PaperTruncation,
}

/// The lengths in words for which the paper gives parameters on WikiMIA.
pub const LENGTHS: [usize; 3] = [32, 64, 128];

impl PresetName {
    /// Returns true if it takes `length`, the length of the texts in words.
    pub fn takes_length(self) -> bool {
        matches!(self, PresetName::PaperWikimia | PresetName::PaperAblation)
    }

    /// Returns true if it takes `reference`, the id of a reference model.
    pub fn takes_reference(self) -> bool {
        self != PresetName::PaperMimir
    }

    /// Returns true if `neighbor` is among its methods, so that it takes `generator`.
    pub fn takes_generator(self) -> bool {
        matches!(self, PresetName::PaperWikimia | PresetName::PaperMimir)
    }

    /// Returns true if one of its methods is weighted by `entropy_dataset`, which only an audit has.
    pub fn needs_audit(self) -> bool {
        self == PresetName::PaperAblation
    }

    /// Its methods, baselines before the same with weights. `length` and `reference` are given where it takes them. With the
    /// tables on WikiMIA and MIMIR, `neighbor` is among them where there are neighbours: generated (`Some(Some(..))`) or with
    /// the texts (`Some(None)`).
    pub fn methods(
        self,
        length: Option<usize>,
        reference: Option<&Arc<str>>,
        neighbors: Option<Option<Generator>>,
    ) -> Vec<Method> {
        let (linear, polynomial) = match (self, length) {
            (PresetName::PaperMimir, _) => (1.0, 0.1),
            (_, Some(32)) => (0.1, 0.1),
            _ => (1.0, 2.0),
        };
        // The alpha of exponential decay is given by method; that of `min_k_plus_plus` differs between WikiMIA and MIMIR.
        let k = Fraction::FIFTH;
        let of_plus_plus = if reference.is_some() { 0.02 } else { 0.002 };
        let reference = reference.map(|id| Ref { reference: Arc::clone(id), tokenization: Tokenization::Shared });
        let mut plain = vec![(Method::new(Loss), 0.002)];
        plain.extend(reference.map(|reference| (Method::new(reference), 0.02)));
        plain.extend([(Method::new(MinK { k }), 0.002), (Method::new(MinKPlusPlus { k }), of_plus_plus)]);
        let decayed =
            plain.into_iter().map(|(plain, exponential)| DecayedMethod { plain, linear, exponential, polynomial });
        match self {
            PresetName::PaperWikimia | PresetName::PaperMimir => {
                let neighbor = neighbors.map(|generator| Method::new(Neighbor { generator }));
                let baselines = [Method::new(Lowercase), Method::new(Zlib)].into_iter().chain(neighbor);
                baselines.chain(decayed.flat_map(DecayedMethod::rows)).collect()
            }
            PresetName::PaperAblation => decayed.flat_map(DecayedMethod::ablation).collect(),
            PresetName::PaperAlpha => decayed.flat_map(DecayedMethod::alphas).collect(),
            PresetName::PaperTruncation => decayed.flat_map(DecayedMethod::truncations).collect(),
        }
    }
}

/// The alphas of each decay in the paper's appendix on weight functions.
const ALPHAS: [(Decay, &[f64]); 3] = [
    (Decay::Linear, &[0.1, 0.3, 0.5, 0.7, 1.0]),
    (Decay::Exponential, &[0.002, 0.004, 0.006, 0.008, 0.01, 0.02, 0.04, 0.06, 0.08, 0.1]),
    (Decay::Polynomial, &[0.1, 0.3, 0.5, 0.7, 1.0, 1.2, 1.5, 1.8, 2.0]),
];

/// A method that the paper decays, and the alphas that it gives the decays.
struct DecayedMethod {
    plain: Method,
    linear: f64,
    exponential: f64,
    polynomial: f64,
}

impl DecayedMethod {
    fn with(&self, weighting: Weighting) -> Method {
        Method { pdr: Some(Pdr::new(weighting)), ..self.plain.clone() }
    }

    fn decayed(&self, family: Decay, alpha: f64) -> Method {
        self.with(Weighting::Decay(Curve::published(family, alpha)))
    }

    /// LPDR, EPDR and PPDR.
    fn decays(&self) -> [Method; 3] {
        [
            self.decayed(Decay::Linear, self.linear),
            self.decayed(Decay::Exponential, self.exponential),
            self.decayed(Decay::Polynomial, self.polynomial),
        ]
    }

    /// Its rows in a table: plain, with the slope of CAMIA and with each decay.
    fn rows(self) -> Vec<Method> {
        let mut methods = vec![self.plain.clone(), self.with(Weighting::Slope)];
        methods.extend(self.decays());
        methods
    }

    /// The row of the table of the ablation. It reorders the weights of LPDR, and selects by them.
    fn ablation(self) -> Vec<Method> {
        let curve = Curve::published(Decay::Linear, self.linear);
        let weightings = [
            Weighting::Slope,
            Weighting::Random { curve, seed: 0 },
            Weighting::Reverse(curve),
            Weighting::EntropySample,
            Weighting::EntropyDataset,
        ];
        let before = Pdr { select: Select::Before, ..Pdr::new(Weighting::Decay(curve)) };
        let before = Method { pdr: Some(before), ..self.plain.clone() };
        let mut methods = vec![self.plain.clone()];
        methods.extend(weightings.map(|weighting| self.with(weighting)));
        methods.extend(self.plain.selects().then_some(before));
        methods.extend(self.decays());
        methods
    }

    /// Every alpha of every decay.
    fn alphas(self) -> Vec<Method> {
        let mut methods = vec![self.plain.clone()];
        for (family, alphas) in ALPHAS {
            methods.extend(alphas.iter().map(|&alpha| self.decayed(family, alpha)));
        }
        methods
    }

    /// The first tenths of the text, the whole text, and the whole text with linear decay.
    fn truncations(self) -> Vec<Method> {
        let tenths = (1..10).map(|tenth| Fraction::new(f64::from(tenth) / 10.0));
        let mut methods: Vec<Method> = tenths.map(|truncate| Method { truncate, ..self.plain.clone() }).collect();
        methods.extend([self.plain.clone(), self.decayed(Decay::Linear, 1.0)]);
        methods
    }
}
