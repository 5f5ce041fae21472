//! Schemas in the form that generators of clients understand.
//!
//! The schemas derived from serde's attributes are correct, but the generators in use (openapi-python-client,
//! datamodel-code-generator, openapi-typescript) lose types over them. So
//!
//! - an `allOf`, which a flattened field becomes, is one object with the properties of all its parts; those of a part
//!   that may be null are not required;
//! - a default is stated in the description: as a keyword it makes a property required in TypeScript, and a generator
//!   that takes a default of another type for a mistake leaves the whole schema out;
//! - the description of a property that is a reference or null stands at the property, not at the reference;
//! - a `seed` is stated as what is accepted, any unsigned number of 64 bits; as `int64` half of them would be invalid.

use serde_json::Value;
use std::collections::BTreeMap;
use utoipa::Number;
use utoipa::openapi::schema::{AdditionalProperties, ArrayItems, Object, OneOf, SchemaType, Type};
use utoipa::openapi::{OpenApi, RefOr, Schema};

/// Schemas by name.
type DeclaredSchemas = BTreeMap<String, RefOr<Schema>>;

/// The document with all its schemas in this form.
pub fn simplified(mut document: OpenApi) -> OpenApi {
    if let Some(components) = &mut document.components {
        let declared = components.schemas.clone();
        for schema in components.schemas.values_mut() {
            merge(schema, &declared);
            visit(schema);
        }
    }
    document
}

/// Makes one object of an `allOf`.
fn merge(schema: &mut RefOr<Schema>, declared: &DeclaredSchemas) {
    if let RefOr::T(Schema::AllOf(all)) = schema {
        let description = all.description.take();
        let mut merged = union(&all.items, declared);
        merged.description = description;
        *schema = RefOr::T(Schema::Object(merged));
    }
}

/// An object with the properties of all parts.
fn union(parts: &[RefOr<Schema>], declared: &DeclaredSchemas) -> Object {
    let mut object = Object::new();
    for part in parts.iter().map(|part| as_object(part, declared)) {
        object.properties.extend(part.properties);
        object.required.extend(part.required);
    }
    object.required.sort();
    object.required.dedup();
    object
}

/// The properties of a schema and which of them are required; those of null are none.
fn as_object(schema: &RefOr<Schema>, declared: &DeclaredSchemas) -> Object {
    match schema {
        RefOr::Ref(reference) => {
            let name = reference.ref_location.rsplit('/').next();
            let target = name.and_then(|name| declared.get(name));
            target.map_or_else(Object::new, |target| as_object(target, declared))
        }
        RefOr::T(Schema::AllOf(all)) => union(&all.items, declared),
        RefOr::T(Schema::OneOf(one)) if is_nullable(one) => {
            let mut object = union(&one.items, declared);
            object.required.clear();
            object
        }
        RefOr::T(Schema::Object(object)) => object.clone(),
        RefOr::T(_) => Object::new(),
    }
}

fn is_nullable(one: &OneOf) -> bool {
    let null = SchemaType::Type(Type::Null);
    one.items.iter().any(|item| matches!(item, RefOr::T(Schema::Object(object)) if object.schema_type == null))
}

/// Moves defaults and descriptions, in the schema and in all that it consists of.
fn visit(schema: &mut RefOr<Schema>) {
    let schema = match schema {
        RefOr::T(schema) => schema,
        RefOr::Ref(reference) => {
            let mut description = Some(std::mem::take(&mut reference.description)).filter(|text| !text.is_empty());
            state_default(&mut reference.default, &mut description);
            reference.description = description.unwrap_or_default();
            return;
        }
    };
    match schema {
        Schema::Object(object) => {
            state_default(&mut object.default, &mut object.description);
            if let Some(seed) = object.properties.get_mut("seed") {
                state_range(seed);
            }
            object.properties.values_mut().for_each(visit);
            if let Some(AdditionalProperties::RefOr(values)) = object.additional_properties.as_deref_mut() {
                visit(values);
            }
        }
        Schema::Array(array) => {
            state_default(&mut array.default, &mut array.description);
            if let ArrayItems::RefOrSchema(items) = &mut array.items {
                visit(items);
            }
        }
        Schema::OneOf(one) => {
            lift_description(one);
            state_default(&mut one.default, &mut one.description);
            one.items.iter_mut().for_each(visit);
        }
        _ => {}
    }
}

/// States the range of unsigned numbers of 64 bits, for which there is no format.
fn state_range(schema: &mut RefOr<Schema>) {
    if let RefOr::T(Schema::Object(seed)) = schema {
        seed.format = None;
        (seed.minimum, seed.maximum) = (Some(Number::UInt(0)), Some(Number::UInt(usize::MAX)));
    }
}

/// The description of the reference in "a reference or null" goes to the whole.
fn lift_description(one: &mut OneOf) {
    if !is_nullable(one) || one.description.is_some() {
        return;
    }
    let reference = one.items.iter_mut().find_map(|item| match item {
        RefOr::Ref(reference) if !reference.description.is_empty() => Some(reference),
        _ => None,
    });
    one.description = reference.map(|reference| std::mem::take(&mut reference.description));
}

/// A default in words; that something is null unless it is given goes without saying.
fn state_default(default: &mut Option<Value>, description: &mut Option<String>) {
    let Some(value) = default.take().filter(|value| !value.is_null()) else { return };
    let stated = format!("Default: `{value}`.");
    *description = Some(match description.take() {
        Some(text) => format!("{text} {stated}"),
        None => stated,
    });
}

#[cfg(test)]
mod tests {
    use super::simplified;
    use serde_json::{Value, json};
    use utoipa::openapi::OpenApi;

    fn schemas(schemas: &Value) -> Value {
        let document = json!({ "openapi": "3.1.0", "info": { "title": "t", "version": "1" }, "paths": {},
            "components": { "schemas": schemas } });
        let document: OpenApi = serde_json::from_value(document).unwrap();
        serde_json::to_value(simplified(document)).unwrap()["components"]["schemas"].take()
    }

    #[test]
    fn parts_become_one_object() {
        let property =
            |name: &str| json!({ "type": "object", "required": [name], "properties": { name: { "type": "string" } } });
        let simple = schemas(&json!({
            "A": property("a"),
            "B": property("b"),
            "Ab": { "allOf": [{ "$ref": "#/components/schemas/A" }, property("c")] },
            "All": { "description": "Words.", "allOf": [
                { "$ref": "#/components/schemas/Ab" },
                { "oneOf": [{ "$ref": "#/components/schemas/B" }, { "type": "null" }] },
                property("a")
            ] },
        }));
        let text = json!({ "type": "string" });
        let all = json!({ "type": "object", "description": "Words.", "required": ["a", "c"],
            "properties": { "a": text, "b": text, "c": text } });
        assert_eq!(simple["All"], all);
    }

    #[test]
    fn defaults_and_descriptions_are_words_of_the_property() {
        let simple = schemas(&json!({ "A": { "type": "object", "properties": {
            "nothing": { "type": ["string", "null"], "default": null, "description": "A." },
            "number": { "type": "integer", "default": 7, "description": "B." },
            "object": { "oneOf": [{ "$ref": "#/components/schemas/A", "description": "C." }, { "type": "null" }],
                "default": { "number": 1 } },
            "default": { "type": "boolean" },
        } } }));
        let properties = json!({
            "nothing": { "type": ["string", "null"], "description": "A." },
            "number": { "type": "integer", "description": "B. Default: `7`." },
            "object": { "oneOf": [{ "$ref": "#/components/schemas/A" }, { "type": "null" }],
                "description": "C. Default: `{\"number\":1}`." },
            "default": { "type": "boolean" },
        });
        assert_eq!(simple["A"]["properties"], properties);
    }

    #[test]
    fn a_seed_is_any_unsigned_number() {
        let seed = |kind: &Value| json!({ "type": kind, "format": "int64", "description": "A.", "minimum": 0 });
        for kind in [json!("integer"), json!(["integer", "null"])] {
            let simple = schemas(&json!({ "A": { "type": "object", "properties": { "seed": seed(&kind) } } }));
            let stated = json!({ "type": kind, "description": "A.", "minimum": 0, "maximum": u64::MAX });
            assert_eq!(simple["A"]["properties"]["seed"], stated);
        }
    }

    /// The schemas of all properties `seed`.
    fn seeds<'a>(value: &'a Value, seeds: &mut Vec<&'a Value>) {
        match value {
            Value::Object(members) => members.iter().for_each(|(name, member)| match name.as_str() {
                "seed" if member.is_object() => seeds.push(member),
                _ => self::seeds(member, seeds),
            }),
            Value::Array(items) => items.iter().for_each(|item| self::seeds(item, seeds)),
            _ => {}
        }
    }

    #[test]
    fn all_seeds_in_the_document_are_stated_so() {
        let document = serde_json::to_value(crate::api::document(&crate::api::JobKinds::all())).unwrap();
        let mut schemas = Vec::new();
        seeds(&document, &mut schemas);
        assert!(schemas.len() >= 6, "{schemas:?}");
        for seed in schemas {
            assert_eq!((&seed["maximum"], seed.get("format")), (&json!(u64::MAX), None), "{seed}");
        }
    }

    /// Where a schema in the document has one of these keywords; a property may well be called `default`.
    fn places(value: &Value, at: &str, places: &mut Vec<String>) {
        match value {
            Value::Object(members) => {
                let is_list_of_properties = at.ends_with("/properties");
                for (name, member) in members.iter().filter(|(name, _)| !name.starts_with("example")) {
                    let place = format!("{at}/{name}");
                    if !is_list_of_properties && ["default", "allOf", "anyOf"].contains(&name.as_str()) {
                        places.push(place.clone());
                    }
                    self::places(member, &place, places);
                }
            }
            Value::Array(items) => {
                items.iter().enumerate().for_each(|(i, item)| self::places(item, &format!("{at}/{i}"), places))
            }
            _ => {}
        }
    }

    #[test]
    fn nothing_of_the_kind_is_left_in_the_document() {
        let (mut before, mut after) = (Vec::new(), Vec::new());
        places(
            &serde_json::to_value(crate::api::routes::routes(&crate::api::JobKinds::all()).into_openapi()).unwrap(),
            "",
            &mut before,
        );
        places(&serde_json::to_value(crate::api::document(&crate::api::JobKinds::all())).unwrap(), "", &mut after);
        assert!(before.len() > 30, "{before:?}");
        assert_eq!(after, Vec::<String>::new());
    }
}
