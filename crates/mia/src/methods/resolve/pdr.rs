//! What a request says of weights, on the method that takes them.

use super::entry::RequestEntry;
use crate::methods::definition::PdrPolicy;
use crate::methods::fault::{Fault, Faults};
use crate::methods::pdr::{Pdr, PdrReader, PdrRequest, Select, WeightingName};
use crate::methods::registry::MethodName;

impl RequestEntry<'_> {
    /// One for each value of `alpha`; one without weights where none are asked for. `name` is that of the method, if
    /// it has one.
    pub(super) fn weights(&self, name: Option<MethodName>, faults: &mut Faults) -> Option<Vec<Option<Pdr>>> {
        let Some(request) = &self.object.pdr else { return Some(vec![None]) };
        let faults_before = faults.len();
        let reader = PdrReader { request, pointer: &format!("{}/pdr", self.pointer) };
        if let Some(name) = name {
            self.check_method(name, request, reader.weighting().ok(), faults);
        }
        let weights = reader.read(faults)?;
        (faults.len() == faults_before).then(|| weights.into_iter().map(Some).collect())
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
}
