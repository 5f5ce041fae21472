//! Objects, which must be written as objects: derived code would take a list of the fields in order as well.

use serde::de::value::MapAccessDeserializer;
use serde::de::{MapAccess, Visitor};
use serde::{Deserialize, Deserializer};
use std::fmt;
use std::marker::PhantomData;

/// A value that is written as an object.
#[derive(Debug)]
pub struct Object<T>(pub T);

impl<'de, T: Deserialize<'de>> Deserialize<'de> for Object<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct ObjectVisitor<T>(PhantomData<T>);

        impl<'de, T: Deserialize<'de>> Visitor<'de> for ObjectVisitor<T> {
            type Value = Object<T>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Object<T>, A::Error> {
                T::deserialize(MapAccessDeserializer::new(map)).map(Object)
            }
        }

        deserializer.deserialize_map(ObjectVisitor(PhantomData))
    }
}

/// For a field that is an object or null.
///
/// # Errors
/// Where it is anything else, and those of the object.
pub fn object_or_null<'de, D: Deserializer<'de>, T: Deserialize<'de>>(deserializer: D) -> Result<Option<T>, D::Error> {
    Option::<Object<T>>::deserialize(deserializer).map(|object| object.map(|Object(value)| value))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug, Deserialize)]
    #[serde(deny_unknown_fields)]
    struct Pair {
        a: u8,
        #[serde(default, deserialize_with = "object_or_null")]
        inner: Option<Box<Pair>>,
    }

    #[test]
    fn a_list_is_no_object() {
        let Object(pair) = serde_json::from_str::<Object<Pair>>(r#"{"a": 1, "inner": {"a": 2}}"#).unwrap();
        assert_eq!((pair.a, pair.inner.map(|inner| inner.a)), (1, Some(2)));
        assert!(serde_json::from_str::<Object<Pair>>(r#"{"a": 1, "inner": null}"#).is_ok());
        for bad in ["[1, null]", r#"{"a": 1, "inner": [2, null]}"#, "1", r#"{"a": 1, "b": 2}"#] {
            assert!(serde_json::from_str::<Object<Pair>>(bad).is_err(), "{bad}");
        }
    }
}
