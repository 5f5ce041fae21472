//! How values that clients write are read where serde's derived code would take more than the document says: an object
//! only as an object, though a list of its fields in order would do; a name only as a string.

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

/// Reads one of a few values by its name, which must be a string.
///
/// # Errors
/// Where there is no value of that name, listing those there are.
pub fn by_name<T: Copy>(name: &str, known: &[(&str, T)]) -> Result<T, String> {
    let found = known.iter().find(|(known, _)| *known == name).map(|(_, value)| *value);
    found.ok_or_else(|| {
        let given: String = name.chars().take(60).collect();
        let known: Vec<String> = known.iter().map(|(known, _)| format!("`{known}`")).collect();
        format!("unknown variant `{given}`, expected {}", known.join(" or "))
    })
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

    #[test]
    fn names_are_known_or_listed() {
        assert_eq!(by_name("b", &[("a", 1), ("b", 2)]), Ok(2));
        assert_eq!(by_name("c", &[("a", 1), ("b", 2)]), Err("unknown variant `c`, expected `a` or `b`".to_owned()));
    }
}
