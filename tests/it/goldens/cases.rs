//! The methods that goldens have numbers of: as requests, and by the place of their number.

use serde_json::{Value, json};

/// Shares of Min-K% and Min-K%++ in the goldens.
const KS: [f64; 10] = [0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0];
/// Alphas of each decay in the goldens.
const ALPHAS: [(Family, &[f64]); 3] =
    [(Family::Linear, &[0.1, 0.5, 1.0]), (Family::Exponential, &[0.002, 0.02]), (Family::Polynomial, &[0.1, 1.0, 2.0])];
/// Methods that the goldens weight.
const WEIGHTED: [Base; 4] = [Base::Loss, Base::Ref, Base::MinK(0.2), Base::MinKPlusPlus(0.2)];

#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Base {
    Loss,
    Zlib,
    Lowercase,
    Ref,
    MinK(f64),
    MinKPlusPlus(f64),
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Family {
    Linear,
    Exponential,
    Polynomial,
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Weights {
    None,
    Decay(Family, f64),
    /// Linear with an alpha of 1, backwards.
    Reverse,
    /// Linear with an alpha of 1, and the weighted values are selected among.
    Before,
    Slope,
}

/// One score.
#[derive(Clone, Debug)]
pub struct Case {
    pub base: Base,
    pub weights: Weights,
}

impl Base {
    fn name(self) -> &'static str {
        match self {
            Base::Loss => "loss",
            Base::Zlib => "zlib",
            Base::Lowercase => "lowercase",
            Base::Ref => "ref",
            Base::MinK(_) => "min_k",
            Base::MinKPlusPlus(_) => "min_k_plus_plus",
        }
    }

    fn theirs(self) -> &'static str {
        match self {
            Base::MinK(_) => "mink",
            Base::MinKPlusPlus(_) => "mink++",
            other => other.name(),
        }
    }

    fn k(self) -> Option<f64> {
        match self {
            Base::MinK(k) | Base::MinKPlusPlus(k) => Some(k),
            _ => None,
        }
    }

    /// Where weighted scores of it stand.
    fn key(self) -> String {
        self.k().map_or(self.theirs().to_owned(), |k| format!("{}_{k:?}", self.theirs()))
    }
}

impl Family {
    fn name(self) -> &'static str {
        match self {
            Family::Linear => "linear",
            Family::Exponential => "exponential",
            Family::Polynomial => "polynomial",
        }
    }
}

impl Case {
    /// The label under which [`requests`] asks for it.
    pub fn label(&self) -> String {
        let name = self.base.name();
        match (self.weights, self.base.k()) {
            (Weights::None, Some(k)) => format!("{name}(k={k})"),
            (Weights::None, None) => name.to_owned(),
            (Weights::Decay(family, alpha), _) => format!("{name} {}(alpha={alpha})", family.name()),
            (Weights::Reverse, _) => format!("{name} reverse"),
            (Weights::Before, _) => format!("{name} before"),
            (Weights::Slope, _) => format!("{name} slope"),
        }
    }

    /// Where its number is in `scores`.
    pub fn pointer(&self) -> String {
        let key = self.base.key();
        match (self.weights, self.base.k()) {
            (Weights::None, Some(k)) => format!("/{}/{k:?}", self.base.theirs()),
            (Weights::None, None) => format!("/{key}"),
            (Weights::Decay(family, alpha), _) => format!("/pdr/{}/{alpha:?}/{key}", family.name()),
            (Weights::Reverse, _) => format!("/ablation/reverse_linear_1.0/{key}"),
            (Weights::Before, _) => format!("/ablation/before_linear_1.0/{key}"),
            (Weights::Slope, _) => format!("/ablation/slope_linear/{key}"),
        }
    }
}

/// Every score of a golden text, those of a reference model only where there is one.
pub fn cases(with_reference: bool) -> Vec<Case> {
    let plain = [Base::Loss, Base::Zlib, Base::Lowercase, Base::Ref].into_iter();
    let swept = KS.into_iter().flat_map(|k| [Base::MinK(k), Base::MinKPlusPlus(k)]);
    let mut cases: Vec<Case> = plain.chain(swept).map(|base| Case { base, weights: Weights::None }).collect();
    for base in WEIGHTED {
        let decays = ALPHAS.iter().flat_map(|(family, alphas)| alphas.iter().map(|&a| Weights::Decay(*family, a)));
        let all = decays.chain([Weights::Reverse, Weights::Slope]);
        let all = all.chain(base.k().map(|_| Weights::Before));
        cases.extend(all.map(|weights| Case { base, weights }));
    }
    cases.retain(|case| with_reference || case.base != Base::Ref);
    cases
}

/// The methods of a request that asks for all of [`cases`], grids as grids.
pub fn requests(with_reference: bool) -> Vec<Value> {
    let mut requests = vec![json!("loss"), json!("zlib"), json!("lowercase")];
    if with_reference {
        requests.push(json!({ "name": "ref", "label": "ref" }));
    }
    for name in ["min_k", "min_k_plus_plus"] {
        requests.push(json!({ "name": name, "k": KS, "label": name }));
    }
    for base in WEIGHTED.into_iter().filter(|base| with_reference || *base != Base::Ref) {
        let name = base.name();
        let mut add = |label: &str, pdr: Value| {
            let mut request = json!({ "name": name, "pdr": pdr, "label": format!("{name} {label}") });
            if let Some(k) = base.k() {
                request["k"] = json!(k);
            }
            requests.push(request);
        };
        for (family, alphas) in ALPHAS {
            add(family.name(), json!({ "decay": family.name(), "alpha": alphas }));
        }
        add("reverse", json!({ "decay": "reverse", "family": "linear", "alpha": 1.0 }));
        add("slope", json!({ "decay": "slope" }));
        if base.k().is_some() {
            add("before", json!({ "decay": "linear", "alpha": 1.0, "select": "before" }));
        }
    }
    requests
}
