//! Resolution of a preset in a request.

use super::entry::RequestEntry;
use crate::methods::fault::{Fault, Faults};
use crate::methods::method::Method;
use crate::methods::neighbor::{GENERATOR, generator};
use crate::methods::presets::{LENGTHS, PresetName};
use crate::methods::reference::{REFERENCE, reference_model};
use crate::methods::request::MethodObject;
use strum::VariantArray;

impl RequestEntry<'_> {
    /// The methods of the preset that it names. Everything is checked before the first `?`, so that no fault hides another.
    pub(super) fn preset(&self, faults: &mut Faults) -> Option<Vec<Method>> {
        self.refuse_parameters(faults);
        let faults_before = faults.len();
        let given = self.object.preset.as_deref().unwrap_or_default();
        let unknown = |_| Fault::unknown("preset", given, PresetName::VARIANTS, self.place.pointer("preset"));
        let name: Option<PresetName> = faults.keep(given.parse().map_err(unknown));
        let generator = faults.keep(generator(&self.place));
        let name = name?;
        self.check_preset(name, faults);
        let length = name.takes_length().then(|| faults.keep(self.length())).flatten();
        let reference = name.takes_reference().then(|| faults.keep(reference_model(&self.place))).flatten();
        let neighbors = match generator? {
            Some(generator) => Some(Some(generator)),
            None => self.place.scope.is_some_and(|scope| scope.neighbors).then_some(None),
        };
        (faults.len() == faults_before).then(|| name.methods(length, reference.as_ref(), neighbors))
    }

    /// Notes the parameters that the preset does not take, and an audit that it needs where there is none.
    fn check_preset(&self, name: PresetName, faults: &mut Faults) {
        let given = |field| self.object.parameters.contains_key(field);
        for (field, refused) in [
            ("length", self.object.length.is_some() && !name.takes_length()),
            (REFERENCE.name, given(REFERENCE.name) && !name.takes_reference()),
            (GENERATOR.name, given(GENERATOR.name) && !name.takes_generator()),
        ] {
            if refused {
                faults.push(self.place.fault(field, format!("`{name}` takes no {field}")));
            }
        }
        if name.needs_audit() && self.place.scope.is_some_and(|scope| !scope.audit) {
            let detail = format!(
                "`{name}` weights tokens by `entropy_dataset`, which is made of all texts of an audit, and needs one"
            );
            faults.push(self.place.fault("preset", detail));
        }
    }

    fn length(&self) -> Result<usize, Fault> {
        let known = "32, 64 or 128, for which the paper gives parameters";
        match self.object.length {
            Some(length) if LENGTHS.contains(&length) => Ok(length),
            Some(length) => Err(self.place.fault("length", format!("length is {length}; it must be {known}"))),
            None => Err(self.place.fault("length", format!("length is missing: {known}"))),
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
            faults.push(self.place.fault(field, format!("a preset takes no `{field}`")));
        }
    }
}
