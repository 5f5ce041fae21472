//! A parameter that is one of a few names.

use super::kind::{ParameterKind, Place};
use super::value::{ParameterValue, ValueType};
use crate::methods::fault::Fault;
use crate::methods::parameter_entry::{ParameterEntry, ParameterType};
use crate::methods::schema_parts::{Schemas, schema_reference};
use std::fmt::{Debug, Display};
use std::marker::PhantomData;
use std::str::FromStr;
use strum::VariantNames;
use utoipa::ToSchema;
use utoipa::openapi::{RefOr, Schema};

/// One of the names of `T`; its default where none is given.
#[derive(Debug)]
pub struct Choice<T>(pub PhantomData<T>);

impl<T: FromStr + VariantNames + Default + Display + ToSchema + Debug + Sync> ParameterKind for Choice<T> {
    type Value = T;
    const VALUE_TYPE: ValueType = ValueType::String;

    fn read(&self, place: &Place) -> Result<T, Fault> {
        match place.value {
            None => Ok(T::default()),
            Some(ParameterValue::String(name)) => {
                name.parse().map_err(|_| Fault::unknown(place.name, name, T::VARIANTS, place.pointer()))
            }
            Some(other) => Err(place.wrong_type(other, "a name")),
        }
    }

    fn entry(&self, name: &'static str, description: &str) -> ParameterEntry {
        ParameterEntry {
            default: Some(T::default().to_string().into()),
            values: Some(T::VARIANTS.iter().map(|&name| name.into()).collect()),
            ..ParameterEntry::optional(name, ParameterType::String, description)
        }
    }

    fn schema(&self, schemas: &mut Schemas) -> RefOr<Schema> {
        schema_reference::<T>(schemas)
    }
}
