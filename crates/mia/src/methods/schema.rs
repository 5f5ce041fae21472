//! The schemas of the OpenAPI document that are put together from the parameters of all methods.

use super::grid::Grid;
use super::registry::MethodName;
use super::request::{MethodObject, MethodRequest};
use super::value::{GeneratorRequest, ValueType};
use serde_json::Value;
use strum::VariantArray;
use utoipa::openapi::schema::{ObjectBuilder, OneOfBuilder, SchemaType, Type};
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
    fn schemas(schemas: &mut Vec<(String, RefOr<Schema>)>) {
        schemas.push((MethodObject::name().into_owned(), method_object()));
        MethodObject::schemas(schemas);
        add::<Grid>(schemas);
        add::<GeneratorRequest>(schemas);
        Parameters::schemas(schemas);
    }
}

/// Adds the schema of a type, and those that it refers to.
fn add<T: ToSchema>(schemas: &mut Vec<(String, RefOr<Schema>)>) {
    schemas.push((T::name().into_owned(), T::schema()));
    T::schemas(schemas);
}

/// The fields that all methods have, with the parameters of all methods among them.
fn method_object() -> RefOr<Schema> {
    let mut schema = MethodObject::schema();
    let RefOr::T(Schema::Object(object)) = &mut schema else { return schema };
    for name in MethodName::VARIANTS {
        let RefOr::T(Schema::Object(method)) = name.schema(&mut Vec::new()) else { continue };
        for parameter in name.definition().parameters {
            // A request has lists and defaults where the method has a number and all of the generator.
            let property = match (parameter.value_type(), method.properties.get(parameter.name)) {
                (ValueType::Grid, _) => Ref::from_schema_name(Grid::name()).into(),
                (ValueType::Generator, _) => Ref::from_schema_name(GeneratorRequest::name()).into(),
                (_, Some(property)) => property.clone(),
                (_, None) => continue,
            };
            let takes = |name: &&MethodName| name.definition().parameters.iter().any(|p| p.name == parameter.name);
            // A parameter of a single method names that method.
            let description = match MethodName::VARIANTS.iter().filter(takes).count() {
                1 => format!("`{name}`: {}", parameter.description),
                _ => parameter.description.to_owned(),
            };
            object.properties.insert(parameter.name.to_owned(), optional(described(property, description)));
        }
    }
    schema
}

/// The parameters of all methods; each has its own.
pub struct Parameters;

impl PartialSchema for Parameters {
    fn schema() -> RefOr<Schema> {
        let mut object = ObjectBuilder::new().description(Some("The parameters of all methods; each has its own."));
        for name in MethodName::VARIANTS {
            let RefOr::T(Schema::Object(parameters)) = name.schema(&mut Vec::new()) else { continue };
            for (name, property) in parameters.properties {
                object = object.property(name, optional(property));
            }
        }
        object.into()
    }
}

impl ToSchema for Parameters {
    fn schemas(schemas: &mut Vec<(String, RefOr<Schema>)>) {
        for name in MethodName::VARIANTS {
            name.schema(schemas);
        }
    }
}

/// The schema with a description.
fn described(schema: RefOr<Schema>, description: impl Into<String>) -> RefOr<Schema> {
    match schema {
        RefOr::Ref(mut reference) => {
            reference.description = description.into();
            RefOr::Ref(reference)
        }
        RefOr::T(Schema::Object(mut object)) => {
            object.description = Some(description.into());
            RefOr::T(Schema::Object(object))
        }
        RefOr::T(Schema::Array(mut array)) => {
            array.description = Some(description.into());
            RefOr::T(Schema::Array(array))
        }
        RefOr::T(other) => RefOr::T(other),
    }
}

/// The schema of a field that may be left out or null.
fn optional(schema: RefOr<Schema>) -> RefOr<Schema> {
    let or_null = |schema_type: SchemaType| match schema_type {
        SchemaType::Type(one) => SchemaType::from_iter([one, Type::Null]),
        several => several,
    };
    RefOr::T(match schema {
        RefOr::Ref(reference) => {
            let null = ObjectBuilder::new().schema_type(Type::Null);
            Schema::OneOf(OneOfBuilder::new().item(reference).item(null).build())
        }
        RefOr::T(Schema::Object(mut object)) => {
            object.schema_type = or_null(object.schema_type);
            Schema::Object(object)
        }
        RefOr::T(Schema::Array(mut array)) => {
            array.schema_type = or_null(array.schema_type);
            Schema::Array(array)
        }
        RefOr::T(other) => other,
    })
}
