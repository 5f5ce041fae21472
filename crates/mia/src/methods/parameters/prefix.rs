//! A parameter that holds the texts of a prefix.

use super::kind::{ParameterKind, Place};
use super::value::{MAX_PREFIX_TEXTS, ParameterValue, ValueType};
use crate::methods::fault::Fault;
use crate::methods::parameter_entry::{ParameterEntry, ParameterType};
use crate::methods::schema_parts::Schemas;
use crate::methods::texts::Texts;
use utoipa::PartialSchema;
use utoipa::openapi::{RefOr, Schema};

/// Texts that are put before the text to score. They must be given.
#[derive(Debug)]
pub struct PrefixTexts;

impl ParameterKind for PrefixTexts {
    type Value = Texts;
    const VALUE_TYPE: ValueType = ValueType::Strings;

    fn read(&self, place: &Place) -> Result<Texts, Fault> {
        let texts = match place.value {
            None => return Err(place.fault(format!("missing field `{}`: texts to put before the text", place.name))),
            Some(ParameterValue::Strings(texts)) => texts,
            Some(other) => return Err(place.wrong_type(other, "a list of texts")),
        };
        let total = texts.total();
        if !(1..=MAX_PREFIX_TEXTS).contains(&total) {
            return Err(place.fault(format!("there are {total} texts; there must be 1 to {MAX_PREFIX_TEXTS}")));
        }
        match texts.kept().iter().position(String::is_empty) {
            Some(empty) => Err(Fault::new(format!("{}/{empty}", place.pointer()), "the text is empty")),
            None => Ok(Texts::new(texts.kept().to_vec())),
        }
    }

    fn entry(&self, name: &'static str, description: &str) -> ParameterEntry {
        let description = format!("{description}, 1 to {MAX_PREFIX_TEXTS}, none of them scored.");
        ParameterEntry { required: true, ..ParameterEntry::optional(name, ParameterType::Strings, description) }
    }

    fn schema(&self, _: &mut Schemas) -> RefOr<Schema> {
        Vec::<String>::schema()
    }
}
