//! What a request says of weights.

use super::entry::RequestEntry;
use crate::methods::definition::PdrPolicy;
use crate::methods::fault::{Fault, Faults};
use crate::methods::pdr::{Curve, Decay, Pdr, PdrRequest, Select, Weighting, WeightingName};
use crate::methods::registry::MethodName;
use strum::VariantArray;

impl RequestEntry<'_> {
    /// One for each value of `alpha`; one without weights where none are asked for. `name` is that of the method, if
    /// it has one.
    pub(super) fn weights(&self, name: Option<MethodName>, faults: &mut Faults) -> Option<Vec<Option<Pdr>>> {
        let Some(request) = &self.object.pdr else { return Some(vec![None]) };
        let faults_before = faults.len();
        let weighting = request
            .decay
            .parse()
            .map_err(|_| Fault::unknown("decay", &request.decay, WeightingName::VARIANTS, self.pdr_pointer("decay")));
        let weighting = faults.keep(weighting);
        if let Some(name) = name {
            self.check_method(name, request, weighting, faults);
        }
        let weightings = match weighting {
            Some(weighting) => self.weightings(request, weighting, faults),
            None => Vec::new(),
        };
        let with = |weighting| {
            Some(Pdr {
                select: request.select.unwrap_or_default(),
                normalize: request.normalize,
                ..Pdr::new(weighting)
            })
        };
        (faults.len() == faults_before).then(|| weightings.into_iter().map(with).collect())
    }

    fn pdr_pointer(&self, field: &str) -> String {
        format!("{}/pdr/{field}", self.pointer)
    }

    /// Whether such weights make sense on the method.
    fn check_method(
        &self,
        name: MethodName,
        request: &PdrRequest,
        weighting: Option<WeightingName>,
        faults: &mut Faults,
    ) {
        let (selects, text_alone) = match name.definition().pdr {
            PdrPolicy::Accepted { selects, text_alone, .. } => (selects, text_alone),
            PdrPolicy::Refused(reason) => {
                faults.push(self.fault("pdr", format!("`{name}` takes no weights: {reason}")));
                return;
            }
        };
        if request.select == Some(Select::Before) && !selects {
            let detail = format!("`select` is `before`, but `{name}` does not select tokens");
            faults.push(Fault::new(self.pdr_pointer("select"), detail));
        }
        if weighting == Some(WeightingName::EntropyDataset) {
            let detail = if self.scope.is_some_and(|scope| !scope.audit) {
                "`entropy_dataset` is made of all texts of an audit, and needs one; `entropy_sample` needs the text alone".to_owned()
            } else if !text_alone {
                format!(
                    "`entropy_dataset` belongs to the positions of the audit's texts, and `{name}` weights others too"
                )
            } else {
                return;
            };
            faults.push(Fault::new(self.pdr_pointer("decay"), detail));
        }
    }

    fn weightings(&self, request: &PdrRequest, weighting: WeightingName, faults: &mut Faults) -> Vec<Weighting> {
        let family = self.family(request, weighting, faults);
        if request.seed.is_some() && weighting != WeightingName::Random {
            let detail = format!("`{weighting}` draws nothing and takes no seed");
            faults.push(Fault::new(self.pdr_pointer("seed"), detail));
        }
        let seed = request.seed.unwrap_or_default();
        match weighting {
            WeightingName::EntropySample => vec![Weighting::EntropySample],
            WeightingName::EntropyDataset => vec![Weighting::EntropyDataset],
            WeightingName::Slope => vec![Weighting::Slope],
            WeightingName::Linear | WeightingName::Exponential | WeightingName::Polynomial => {
                self.curves(request, family, faults).into_iter().map(Weighting::Decay).collect()
            }
            WeightingName::Reverse => {
                self.curves(request, family, faults).into_iter().map(Weighting::Reverse).collect()
            }
            WeightingName::Random => {
                let curves = self.curves(request, family, faults).into_iter();
                curves.map(|curve| Weighting::Random { curve, seed }).collect()
            }
        }
    }

    /// The family whose weights are used. Faults: one given where none is taken, or that there is not; an alpha where
    /// none is taken.
    fn family(&self, request: &PdrRequest, weighting: WeightingName, faults: &mut Faults) -> Option<Decay> {
        if !weighting.takes_alpha() && request.alpha.is_some() {
            let detail = format!("`{weighting}` makes its own weights and takes no alpha");
            faults.push(Fault::new(self.pdr_pointer("alpha"), detail));
        }
        match (&request.family, weighting) {
            (Some(family), weighting) if weighting.takes_family() => {
                let known = || Fault::unknown("family", family, Decay::VARIANTS, self.pdr_pointer("family"));
                faults.keep(family.parse().map_err(|_| known()))
            }
            (Some(_), weighting) => {
                let detail = format!("`{weighting}` takes no family; `reverse` and `random` do");
                faults.keep(Err(Fault::new(self.pdr_pointer("family"), detail)))
            }
            (None, weighting) => Some(weighting.decay().unwrap_or(Decay::Linear)),
        }
    }

    fn curves(&self, request: &PdrRequest, family: Option<Decay>, faults: &mut Faults) -> Vec<Curve> {
        let range = family.map(Decay::alpha_range);
        let Some(alphas) = &request.alpha else {
            let range = range.map_or(String::new(), |range| format!(" in {range}"));
            let detail = format!("alpha is missing: `{}` takes a number{range}", request.decay);
            faults.push(Fault::new(self.pdr_pointer("alpha"), detail));
            return Vec::new();
        };
        if alphas.len() == 0 {
            faults.push(Fault::new(self.pdr_pointer("alpha"), "the list of values is empty"));
        }
        let Some(family) = family else { return Vec::new() };
        let curve = |(alpha, below): (f64, String)| {
            faults.keep(Curve::new(family, alpha).ok_or_else(|| {
                let detail = format!("alpha is {alpha:?}, outside {} for {family} decay", family.alpha_range());
                Fault::new(format!("{}{below}", self.pdr_pointer("alpha")), detail)
            }))
        };
        alphas.values().into_iter().filter_map(curve).collect()
    }
}
