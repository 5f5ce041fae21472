//! From what a request says of weights to weights, or to everything that is wrong with it.

use super::decay::{Curve, Decay};
use super::request::PdrRequest;
use super::settings::Pdr;
use super::weighting::{Weighting, WeightingName};
use crate::methods::fault::{Fault, Faults};
use strum::VariantArray;

/// Reads a `pdr` object.
pub struct PdrReader<'a> {
    pub request: &'a PdrRequest,
    pub pointer: &'a str,
}

impl PdrReader<'_> {
    /// One for each value of `alpha`; `None` where there is a fault.
    pub fn read(&self, faults: &mut Faults) -> Option<Vec<Pdr>> {
        let faults_before = faults.len();
        let weightings = match faults.keep(self.weighting()) {
            Some(weighting) => self.weightings(weighting, faults),
            None => Vec::new(),
        };
        let with = |weighting| Pdr {
            select: self.request.select.unwrap_or_default(),
            normalize: self.request.normalize,
            ..Pdr::new(weighting)
        };
        (faults.len() == faults_before).then(|| weightings.into_iter().map(with).collect())
    }

    /// The weighting that it names.
    ///
    /// # Errors
    /// Where there is none of that name.
    pub fn weighting(&self) -> Result<WeightingName, Fault> {
        let name = &self.request.decay;
        name.parse().map_err(|_| Fault::unknown("decay", name, WeightingName::VARIANTS, self.field("decay")))
    }

    /// Pointer to a field.
    pub fn field(&self, field: &str) -> String {
        format!("{}/{field}", self.pointer)
    }

    fn weightings(&self, weighting: WeightingName, faults: &mut Faults) -> Vec<Weighting> {
        let family = self.family(weighting, faults);
        if self.request.seed.is_some() && weighting != WeightingName::Random {
            let detail = format!("`{weighting}` draws nothing and takes no seed");
            faults.push(Fault::new(self.field("seed"), detail));
        }
        let seed = self.request.seed.unwrap_or_default();
        match weighting {
            WeightingName::EntropySample => vec![Weighting::EntropySample],
            WeightingName::EntropyDataset => vec![Weighting::EntropyDataset],
            WeightingName::Slope => vec![Weighting::Slope],
            WeightingName::Linear | WeightingName::Exponential | WeightingName::Polynomial => {
                self.curves(family, faults).into_iter().map(Weighting::Decay).collect()
            }
            WeightingName::Reverse => self.curves(family, faults).into_iter().map(Weighting::Reverse).collect(),
            WeightingName::Random => {
                let curves = self.curves(family, faults).into_iter();
                curves.map(|curve| Weighting::Random { curve, seed }).collect()
            }
        }
    }

    /// The family whose weights are used. Faults: one given where none is taken, or that there is not; an alpha where
    /// none is taken.
    fn family(&self, weighting: WeightingName, faults: &mut Faults) -> Option<Decay> {
        if !weighting.takes_alpha() && self.request.alpha.is_some() {
            let detail = format!("`{weighting}` makes its own weights and takes no alpha");
            faults.push(Fault::new(self.field("alpha"), detail));
        }
        match (&self.request.family, weighting) {
            (Some(family), weighting) if weighting.takes_family() => {
                let known = || Fault::unknown("family", family, Decay::VARIANTS, self.field("family"));
                faults.keep(family.parse().map_err(|_| known()))
            }
            (Some(_), weighting) => {
                let detail = format!("`{weighting}` takes no family; `reverse` and `random` do");
                faults.keep(Err(Fault::new(self.field("family"), detail)))
            }
            (None, weighting) => Some(weighting.decay().unwrap_or(Decay::Linear)),
        }
    }

    fn curves(&self, family: Option<Decay>, faults: &mut Faults) -> Vec<Curve> {
        let range = family.map(Decay::alpha_range);
        let Some(alphas) = &self.request.alpha else {
            let range = range.map_or(String::new(), |range| format!(" in {range}"));
            let detail = format!("alpha is missing: `{}` takes a number{range}", self.request.decay);
            faults.push(Fault::new(self.field("alpha"), detail));
            return Vec::new();
        };
        if alphas.len() == 0 {
            faults.push(Fault::new(self.field("alpha"), "the list of values is empty"));
        }
        let Some(family) = family else { return Vec::new() };
        let curve = |(alpha, below): (f64, String)| {
            faults.keep(Curve::new(family, alpha).ok_or_else(|| {
                let detail = format!("alpha is {alpha:?}, outside {} for {family} decay", family.alpha_range());
                Fault::new(format!("{}{below}", self.field("alpha")), detail)
            }))
        };
        alphas.values().into_iter().filter_map(curve).collect()
    }
}
