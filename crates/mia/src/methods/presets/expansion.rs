//! The methods of each preset.

use super::Preset;
use crate::methods::auxiliary_pass::Generator;
use crate::methods::loss::Loss;
use crate::methods::lowercase::Lowercase;
use crate::methods::method::Method;
use crate::methods::min_k::MinK;
use crate::methods::min_k_plus_plus::MinKPlusPlus;
use crate::methods::neighbor::Neighbor;
use crate::methods::pdr::{Curve, Decay, Pdr, Select, Weighting};
use crate::methods::range::Fraction;
use crate::methods::reference::{Ref, Tokenization};
use crate::methods::zlib::Zlib;
use std::sync::Arc;

/// The alphas of linear decay in the paper's appendix on weight functions.
const LINEAR_ALPHAS: [f64; 5] = [0.1, 0.3, 0.5, 0.7, 1.0];
const EXPONENTIAL_ALPHAS: [f64; 10] = [0.002, 0.004, 0.006, 0.008, 0.01, 0.02, 0.04, 0.06, 0.08, 0.1];
const POLYNOMIAL_ALPHAS: [f64; 9] = [0.1, 0.3, 0.5, 0.7, 1.0, 1.2, 1.5, 1.8, 2.0];

/// A method that the paper decays.
struct DecayedMethod {
    plain: Method,
    /// The alpha that the paper gives its exponential decay.
    exponential: f64,
}

/// The alphas that the paper gives the decays of all methods.
struct Alphas {
    linear: f64,
    polynomial: f64,
}

impl Preset {
    /// Its methods, baselines before the same with weights. With the tables on WikiMIA and MIMIR, `neighbor` is among them
    /// where there are neighbours: generated (`Some(Some(..))`) or with the texts (`Some(None)`).
    pub fn methods(&self, neighbors: Option<Option<Generator>>) -> Vec<Method> {
        match self {
            Preset::PaperWikimia { length, reference } => {
                table(neighbors, &with_reference(reference), &Alphas::on_wikimia(*length))
            }
            Preset::PaperMimir => table(neighbors, &without_reference(), &Alphas { linear: 1.0, polynomial: 0.1 }),
            Preset::PaperAblation { length, reference } => {
                let alphas = Alphas::on_wikimia(*length);
                with_reference(reference).iter().flat_map(|method| method.ablation(&alphas)).collect()
            }
            Preset::PaperAlpha { reference } => {
                with_reference(reference).iter().flat_map(DecayedMethod::alphas).collect()
            }
            Preset::PaperTruncation { reference } => {
                with_reference(reference).iter().flat_map(DecayedMethod::truncations).collect()
            }
        }
    }
}

impl Alphas {
    /// Those of texts of 32, 64 or 128 words.
    fn on_wikimia(length: usize) -> Self {
        match length {
            32 => Self { linear: 0.1, polynomial: 0.1 },
            _ => Self { linear: 1.0, polynomial: 2.0 },
        }
    }
}

impl DecayedMethod {
    fn new(plain: Method, exponential: f64) -> Self {
        Self { plain, exponential }
    }

    fn with(&self, weighting: Weighting) -> Method {
        Method { pdr: Some(Pdr::new(weighting)), ..self.plain.clone() }
    }

    fn decayed(&self, family: Decay, alpha: f64) -> Method {
        self.with(Weighting::Decay(Curve::published(family, alpha)))
    }

    /// LPDR, EPDR and PPDR.
    fn decays(&self, alphas: &Alphas) -> [Method; 3] {
        [
            self.decayed(Decay::Linear, alphas.linear),
            self.decayed(Decay::Exponential, self.exponential),
            self.decayed(Decay::Polynomial, alphas.polynomial),
        ]
    }

    /// The row of the table of the ablation. What it reorders and selects by are the weights of LPDR.
    fn ablation(&self, alphas: &Alphas) -> Vec<Method> {
        let curve = Curve::published(Decay::Linear, alphas.linear);
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
        methods.extend(self.decays(alphas));
        methods
    }

    /// Every alpha of every decay.
    fn alphas(&self) -> Vec<Method> {
        let decay = |family, alphas: &'static [f64]| alphas.iter().map(move |&alpha| self.decayed(family, alpha));
        std::iter::once(self.plain.clone())
            .chain(decay(Decay::Linear, &LINEAR_ALPHAS))
            .chain(decay(Decay::Exponential, &EXPONENTIAL_ALPHAS))
            .chain(decay(Decay::Polynomial, &POLYNOMIAL_ALPHAS))
            .collect()
    }

    /// The first tenths of the text, the whole text, and the whole text with linear decay.
    fn truncations(&self) -> Vec<Method> {
        let truncated = Fraction::TENTHS.map(|share| Method { truncate: Some(share), ..self.plain.clone() });
        let mut methods = truncated.to_vec();
        methods.extend([self.plain.clone(), self.decayed(Decay::Linear, 1.0)]);
        methods
    }
}

/// The rows of a table: the baselines, then each decayed method plain, with the slope of CAMIA and with each decay.
fn table(neighbors: Option<Option<Generator>>, decayed: &[DecayedMethod], alphas: &Alphas) -> Vec<Method> {
    let neighbor = neighbors.map(|generator| Method::new(Neighbor { generator }));
    let mut methods: Vec<Method> = [Method::new(Lowercase), Method::new(Zlib)].into_iter().chain(neighbor).collect();
    for method in decayed {
        methods.extend([method.plain.clone(), method.with(Weighting::Slope)]);
        methods.extend(method.decays(alphas));
    }
    methods
}

/// The methods that the paper decays on WikiMIA.
fn with_reference(reference: &Arc<str>) -> [DecayedMethod; 4] {
    let k = Fraction::FIFTH;
    let reference = Ref { reference: Arc::clone(reference), tokenization: Tokenization::Shared };
    [
        DecayedMethod::new(Method::new(Loss), 0.002),
        DecayedMethod::new(Method::new(reference), 0.02),
        DecayedMethod::new(Method::new(MinK { k }), 0.002),
        DecayedMethod::new(Method::new(MinKPlusPlus { k }), 0.02),
    ]
}

/// Those that it decays on MIMIR.
fn without_reference() -> [DecayedMethod; 3] {
    let k = Fraction::FIFTH;
    [Method::new(Loss), Method::new(MinK { k }), Method::new(MinKPlusPlus { k })]
        .map(|plain| DecayedMethod::new(plain, 0.002))
}
