//! What a request says of a preset.

use super::super::method::Method;
use super::super::presets::{LENGTHS, Preset, PresetName};
use super::super::request::MethodObject;
use super::{Fault, Faults, One, unknown};

impl One<'_> {
    /// The methods of the preset that it names.
    pub(super) fn preset(&self, faults: &mut Faults) -> Option<Vec<Method>> {
        let object = self.object;
        self.not_of_a_preset(faults);
        let found = faults.0.len();
        let given = object.preset.as_deref().unwrap_or_default();
        let at = format!("{}/preset", self.at);
        let name = PresetName::from_name(given).ok_or_else(|| unknown("preset", given, &PresetName::ALL, &at));
        let name = faults.keep(name);
        let generator = object.generator.as_ref().map(|generator| self.generator(generator)).transpose();
        let generator = faults.keep(generator);
        let preset = match name {
            Some(PresetName::PaperWikimia) => {
                let (length, reference) = (faults.keep(self.length()), faults.keep(self.reference()));
                length.zip(reference).map(|(length, reference)| Preset::PaperWikimia { length, reference })
            }
            Some(PresetName::PaperMimir) => {
                for (field, given) in [("length", object.length.is_some()), ("reference", object.reference.is_some())] {
                    if given {
                        faults.0.push(self.fault(field, format!("`paper_mimir` takes no {field}")));
                    }
                }
                Some(Preset::PaperMimir)
            }
            None => None,
        };
        let neighbors = match generator? {
            Some(generator) => Some(Some(generator)),
            None => self.scope.neighbors.then_some(None),
        };
        preset.filter(|_| faults.0.len() == found).map(|preset| preset.methods(neighbors))
    }

    fn length(&self) -> Result<usize, Fault> {
        let known = "32, 64 or 128, for which the paper gives parameters";
        match self.object.length {
            Some(length) if LENGTHS.contains(&length) => Ok(length),
            Some(length) => Err(self.fault("length", format!("length is {length}; it must be {known}"))),
            None => Err(self.fault("length", format!("length is missing: {known}"))),
        }
    }

    /// A preset sets its methods' parameters itself.
    fn not_of_a_preset(&self, faults: &mut Faults) {
        let MethodObject { name, k, truncate, pdr, label, prefix, align, .. } = self.object;
        let MethodObject { non_members, members, gamma, window, max_entropy, counts, a, .. } = self.object;
        let given = [
            ("name", name.is_some()),
            ("k", k.is_some()),
            ("truncate", truncate.is_some()),
            ("pdr", pdr.is_some()),
            ("label", label.is_some()),
            ("prefix", prefix.is_some()),
            ("align", align.is_some()),
            ("non_members", non_members.is_some()),
            ("members", members.is_some()),
            ("gamma", gamma.is_some()),
            ("window", window.is_some()),
            ("max_entropy", max_entropy.is_some()),
            ("counts", counts.is_some()),
            ("a", a.is_some()),
        ];
        for (field, _) in given.into_iter().filter(|(_, given)| *given) {
            faults.0.push(self.fault(field, format!("a preset takes no `{field}`")));
        }
    }
}
