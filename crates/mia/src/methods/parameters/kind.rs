//! Declaration of parameters, and reading of their values from a request.

use super::value::{GivenParameters, ParameterValue, ValueType};
use crate::methods::fault::{Fault, Faults};
use crate::methods::parameter_entry::ParameterEntry;
use crate::methods::schema_parts::Schemas;
use crate::methods::scope::Scope;
use std::fmt::Debug;
use utoipa::openapi::{RefOr, Schema};

/// A parameter of a method.
#[derive(Debug)]
pub struct Parameter<K> {
    /// Field of the request.
    pub name: &'static str,
    /// Its type, the values accepted and the default.
    pub kind: K,
    /// A few words, for the OpenAPI document of a request.
    pub summary: &'static str,
    /// Effect of the parameter, for the catalogue. The kind may add the values that it accepts.
    pub description: &'static str,
}

/// The type of a parameter with the values that it accepts and its default.
pub trait ParameterKind: Debug + Sync {
    /// Type of a checked value.
    type Value;

    /// The JSON type of its value in a request.
    const VALUE_TYPE: ValueType;

    /// Checks the value in a request, or takes the default.
    ///
    /// # Errors
    /// Where the value is not accepted, or is missing and there is no default.
    fn read(&self, place: &Place) -> Result<Self::Value, Fault>;

    /// Returns the catalogue entry of a parameter of this kind.
    fn entry(&self, name: &'static str, description: &str) -> ParameterEntry;

    /// The type of its value, for the OpenAPI document. Adds the schemas that it refers to.
    fn schema(&self, schemas: &mut Schemas) -> RefOr<Schema>;
}

/// A parameter of any kind.
pub trait AnyParameter: Debug + Sync {
    /// Field of the request.
    fn name(&self) -> &'static str;
    /// A few words, for the OpenAPI document.
    fn summary(&self) -> &'static str;
    /// The JSON type of its value in a request.
    fn value_type(&self) -> ValueType;
    /// Returns its catalogue entry.
    fn entry(&self) -> ParameterEntry;
    /// The type of its value, for the OpenAPI document. Adds the schemas that it refers to.
    fn schema(&self, schemas: &mut Schemas) -> RefOr<Schema>;
}

impl<K: ParameterKind> AnyParameter for Parameter<K> {
    fn name(&self) -> &'static str {
        self.name
    }

    fn summary(&self) -> &'static str {
        self.summary
    }

    fn value_type(&self) -> ValueType {
        K::VALUE_TYPE
    }

    fn entry(&self) -> ParameterEntry {
        self.kind.entry(self.name, self.description)
    }

    fn schema(&self, schemas: &mut Schemas) -> RefOr<Schema> {
        self.kind.schema(schemas)
    }
}

/// Reads the parameters of one method out of a request.
pub struct Reader<'a> {
    pub given: &'a GivenParameters,
    /// Pointer to the entry of the list of methods.
    pub entry: &'a str,
    /// True if that entry is a name alone, which has no fields to point at.
    pub name_alone: bool,
    /// Scope of the names in the request; `None` for a method that was stored, whose names were checked before.
    pub scope: Option<&'a Scope<'a>>,
    /// Which value of a list is read, for the parameter that is swept.
    pub sweep: usize,
    pub faults: &'a mut Faults,
}

impl Reader<'_> {
    /// The value of a parameter, or its default; `None` where it is at fault.
    pub fn read<K: ParameterKind>(&mut self, parameter: &Parameter<K>) -> Option<K::Value> {
        let place = Place {
            name: parameter.name,
            value: self.given.get(parameter.name),
            entry: self.entry,
            name_alone: self.name_alone,
            scope: self.scope,
            sweep: self.sweep,
        };
        self.faults.keep(parameter.kind.read(&place))
    }
}

/// One parameter in a request: its value, if it has one, and what a fault points at.
pub struct Place<'a> {
    pub name: &'static str,
    pub value: Option<&'a ParameterValue>,
    /// Scope of the names in the request; `None` for a method that was stored, whose names were checked before.
    pub scope: Option<&'a Scope<'a>>,
    /// Which value of a list is read, for the parameter that is swept.
    pub sweep: usize,
    entry: &'a str,
    name_alone: bool,
}

impl Place<'_> {
    /// JSON pointer to the field; to the entry, where that is a name alone.
    pub fn pointer(&self) -> String {
        if self.name_alone { self.entry.to_owned() } else { format!("{}/{}", self.entry, self.name) }
    }

    pub fn fault(&self, detail: impl Into<String>) -> Fault {
        Fault::new(self.pointer(), detail)
    }

    /// A value of another JSON type than the parameter has.
    pub fn wrong_type(&self, value: &ParameterValue, expected: &str) -> Fault {
        self.fault(format!("{} is {value}, which is not {expected}", self.name))
    }

    /// The id of a model, which must be one of those there are. `field` is what follows the pointer of the parameter.
    ///
    /// # Errors
    /// Where there is no such model.
    pub fn model(&self, id: &str, field: &str) -> Result<std::sync::Arc<str>, Fault> {
        match self.scope {
            Some(scope) if !scope.models.contains(&id) => {
                Err(Fault::unknown("model", id, &scope.models, format!("{}{field}", self.pointer())))
            }
            Some(_) | None => Ok(id.into()),
        }
    }
}
