//! Building blocks of the schemas of the OpenAPI document.

use serde_json::Value;
use utoipa::ToSchema;
use utoipa::openapi::schema::{ObjectBuilder, OneOfBuilder, SchemaType, Type};
use utoipa::openapi::{Ref, RefOr, Schema};

/// The schemas that others refer to, by name.
pub type Schemas = Vec<(String, RefOr<Schema>)>;

/// A reference to the schema of a type, which is added with all that it refers to.
pub fn schema_reference<T: ToSchema>(schemas: &mut Schemas) -> RefOr<Schema> {
    schemas.push((T::name().into_owned(), T::schema()));
    T::schemas(schemas);
    Ref::from_schema_name(T::name()).into()
}

/// The schema with a description.
pub fn described(schema: RefOr<Schema>, description: impl Into<String>) -> RefOr<Schema> {
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
pub fn optional(schema: RefOr<Schema>) -> RefOr<Schema> {
    let or_null = |schema_type: SchemaType| match schema_type {
        SchemaType::Type(one) => SchemaType::from_iter([one, Type::Null]),
        several => several,
    };
    RefOr::T(match schema {
        RefOr::Ref(reference) => {
            let null = ObjectBuilder::new().schema_type(Type::Null);
            Schema::OneOf(OneOfBuilder::new().item(reference).item(null).default(Some(Value::Null)).build())
        }
        RefOr::T(Schema::Object(mut object)) => {
            object.schema_type = or_null(object.schema_type);
            object.default = Some(Value::Null);
            Schema::Object(object)
        }
        RefOr::T(Schema::Array(mut array)) => {
            array.schema_type = or_null(array.schema_type);
            array.default = Some(Value::Null);
            Schema::Array(array)
        }
        RefOr::T(Schema::OneOf(mut one_of)) => {
            one_of.default = Some(Value::Null);
            Schema::OneOf(one_of)
        }
        RefOr::T(other) => other,
    })
}
