//! What a request says of a preset.

use super::entry::RequestEntry;
use crate::methods::fault::{Fault, Faults};
use crate::methods::method::Method;
use crate::methods::method_object::MethodObject;
use crate::methods::neighbor::GENERATOR;
use crate::methods::presets::{LENGTHS, Preset, PresetName};
use crate::methods::reference::REFERENCE;
use strum::VariantArray;

impl RequestEntry<'_> {
    /// The methods of the preset that it names.
    pub(super) fn preset(&self, faults: &mut Faults) -> Option<Vec<Method>> {
        let object = self.object;
        self.refuse_parameters(faults);
        let faults_before = faults.len();
        let given = object.preset.as_deref().unwrap_or_default();
        let unknown = |_| Fault::unknown("preset", given, PresetName::VARIANTS, format!("{}/preset", self.pointer));
        let name = faults.keep(given.parse().map_err(unknown));
        let generator = self.reader(0, faults).read(&GENERATOR);
        let preset = match name {
            Some(PresetName::PaperWikimia) => {
                let length = faults.keep(self.length());
                let reference = self.reader(0, faults).read(&REFERENCE);
                length.zip(reference).map(|(length, reference)| Preset::PaperWikimia { length, reference })
            }
            Some(PresetName::PaperMimir) => {
                let reference = object.parameters.contains_key(REFERENCE.name);
                for (field, given) in [("length", object.length.is_some()), (REFERENCE.name, reference)] {
                    if given {
                        faults.push(self.fault(field, format!("`paper_mimir` takes no {field}")));
                    }
                }
                Some(Preset::PaperMimir)
            }
            None => None,
        };
        let neighbors = match generator? {
            Some(generator) => Some(Some(generator)),
            None => self.scope.is_some_and(|scope| scope.neighbors).then_some(None),
        };
        preset.filter(|_| faults.len() == faults_before).map(|preset| preset.methods(neighbors))
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
    fn refuse_parameters(&self, faults: &mut Faults) {
        let MethodObject { name, truncate, pdr, label, parameters, preset: _, length: _ } = self.object;
        let common = [
            ("name", name.is_some()),
            ("truncate", truncate.is_some()),
            ("pdr", pdr.is_some()),
            ("label", label.is_some()),
        ];
        let common = common.into_iter().filter(|(_, given)| *given).map(|(field, _)| field);
        let taken = [REFERENCE.name, GENERATOR.name];
        let parameters = parameters.keys().copied().filter(|field| !taken.contains(field));
        for field in common.chain(parameters) {
            faults.push(self.fault(field, format!("a preset takes no `{field}`")));
        }
    }
}
