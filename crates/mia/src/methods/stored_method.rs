//! Methods that were stored, read back and checked as those of a request are.

use super::fault::Faults;
use super::labelled::LabelledMethod;
use super::reference::Tokenization;
use super::registry::BaseMethod;
use super::request::MethodObject;
use super::resolve::RequestEntry;
use serde::de::{Error, IgnoredAny};
use serde::{Deserialize, Deserializer};
use std::sync::Arc;

/// The fields of a serialised method. `extension` follows from the rest; the note says that the reference model has
/// another tokenization.
#[derive(Deserialize)]
struct StoredMethod {
    label: Arc<str>,
    #[serde(rename = "extension", default)]
    _extension: IgnoredAny,
    note: Option<IgnoredAny>,
    #[serde(flatten)]
    object: MethodObject,
}

impl<'de> Deserialize<'de> for LabelledMethod {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let StoredMethod { label, object, note, .. } = StoredMethod::deserialize(deserializer)?;
        let mut faults = Faults::default();
        let mut methods = RequestEntry::new(&object, "", false, None).methods(&mut faults);
        match (methods.pop(), methods.is_empty(), faults.into_vec().first()) {
            (Some((_, mut method)), true, None) => {
                if let (Some(_), BaseMethod::Ref(reference)) = (note, &mut method.base) {
                    reference.tokenization = Tokenization::Separate;
                }
                Ok(LabelledMethod { label, method, origin: None })
            }
            (_, _, Some(fault)) => Err(D::Error::custom(format!("{}: {}", fault.pointer, fault.detail))),
            (_, _, None) => Err(D::Error::custom("a stored method is one method, not several")),
        }
    }
}
