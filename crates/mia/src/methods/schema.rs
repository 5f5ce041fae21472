//! The schemas of the OpenAPI document that are put together from the parameters of all methods.

use super::method_object::{MethodObject, all_parameters};
use super::registry::MethodName;
use super::request::MethodRequest;
use super::schema_parts::{Schemas, described, optional};
use serde_json::Value;
use strum::VariantArray;
use utoipa::openapi::schema::{ObjectBuilder, OneOfBuilder, Type};
use utoipa::openapi::{Ref, RefOr, Schema};
use utoipa::{PartialSchema, ToSchema};

impl PartialSchema for MethodRequest {
    fn schema() -> RefOr<Schema> {
        let name = ObjectBuilder::new()
            .schema_type(Type::String)
            .description(Some("Name of the method."))
            .examples([Value::from("min_k")]);
        let object = Ref::builder()
            .ref_location_from_schema_name(MethodObject::name())
            .description(Some("Name and parameters, or a preset."))
            .build();
        let description = "A method: its name alone, which takes that method's defaults, or an object with parameters.";
        OneOfBuilder::new().item(name).item(object).description(Some(description)).into()
    }
}

impl ToSchema for MethodRequest {
    fn schemas(schemas: &mut Schemas) {
        schemas.push((MethodObject::name().into_owned(), method_object()));
        MethodObject::schemas(schemas);
        for parameter in all_parameters() {
            parameter.schema(schemas);
        }
    }
}

/// The fields that all methods have, with the parameters of all methods among them.
fn method_object() -> RefOr<Schema> {
    let mut schema = MethodObject::schema();
    let RefOr::T(Schema::Object(object)) = &mut schema else { return schema };
    for parameter in all_parameters() {
        let takes = |name: &&MethodName| name.definition().parameters.iter().any(|p| p.name() == parameter.name());
        // A parameter of a single method names that method.
        let description = match MethodName::VARIANTS.iter().filter(takes).collect::<Vec<_>>()[..] {
            [only] => format!("`{only}`: {}", parameter.summary()),
            _ => parameter.summary().to_owned(),
        };
        let property = described(parameter.schema(&mut Vec::new()), description);
        object.properties.insert(parameter.name().to_owned(), optional(property));
    }
    schema
}

/// The parameters of all methods; each has its own.
pub struct Parameters;

impl PartialSchema for Parameters {
    fn schema() -> RefOr<Schema> {
        let mut object = ObjectBuilder::new().description(Some("The parameters of all methods; each has its own."));
        for name in MethodName::VARIANTS {
            let RefOr::T(Schema::Object(parameters)) = (name.definition().schema)(&mut Vec::new()) else { continue };
            for (name, property) in parameters.properties {
                object = object.property(name, optional(property));
            }
        }
        object.into()
    }
}

impl ToSchema for Parameters {
    fn schemas(schemas: &mut Schemas) {
        for name in MethodName::VARIANTS {
            (name.definition().schema)(schemas);
        }
    }
}
