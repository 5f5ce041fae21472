//! JSON whose objects have each key once: of two values under one key, readers take the first or the last.

use anyhow::{Result, bail};
use serde::de::{DeserializeSeed, Deserializer, Error, MapAccess, SeqAccess, Visitor};
use std::collections::HashSet;
use std::fmt;

/// Checks that no object has a key twice.
///
/// # Errors
/// If one has, or the text is not JSON.
pub fn check_unique_keys(json: &str) -> Result<()> {
    let mut deserializer = serde_json::Deserializer::from_str(json);
    if let Err(error) = UniqueKeys.deserialize(&mut deserializer).and_then(|()| deserializer.end()) {
        bail!("{error}");
    }
    Ok(())
}

struct UniqueKeys;

impl<'de> DeserializeSeed<'de> for UniqueKeys {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for UniqueKeys {
    type Value = ();

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("JSON")
    }

    fn visit_bool<E>(self, _: bool) -> Result<(), E> {
        Ok(())
    }

    fn visit_i64<E>(self, _: i64) -> Result<(), E> {
        Ok(())
    }

    fn visit_u64<E>(self, _: u64) -> Result<(), E> {
        Ok(())
    }

    fn visit_f64<E>(self, _: f64) -> Result<(), E> {
        Ok(())
    }

    fn visit_str<E>(self, _: &str) -> Result<(), E> {
        Ok(())
    }

    fn visit_unit<E>(self) -> Result<(), E> {
        Ok(())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<(), A::Error> {
        while list.next_element_seed(Self)?.is_some() {}
        Ok(())
    }

    fn visit_map<A: MapAccess<'de>>(self, mut object: A) -> Result<(), A::Error> {
        let mut keys = HashSet::new();
        while let Some(key) = object.next_key::<String>()? {
            object.next_value_seed(Self)?;
            if let Some(twice) = keys.replace(key) {
                return Err(A::Error::custom(format!("an object has the key {twice:?} twice")));
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::check_unique_keys;

    #[test]
    fn a_key_that_is_there_twice_is_found_at_any_depth() {
        let fault = |json| check_unique_keys(json).err().map(|error| error.to_string()).unwrap_or_default();
        assert_eq!(fault(r#"{"a":[{"b":1.5,"c":null},{"b":-1,"c":true}],"d":"a"}"#), "");
        assert!(fault(r#"{"a":[{"b":1},{"c":[],"b":2,"c":{}}]}"#).starts_with("an object has the key \"c\" twice"));
        assert!(fault(r#"{"a":1} {"a":1}"#).starts_with("trailing characters"));
        assert!(fault("{").starts_with("EOF"));
    }
}
