//! JSON that is copied as compact text while it is read, so that no tree of it is ever in memory.

use serde::Serialize;
use serde::de::{DeserializeSeed, Deserializer, Error, MapAccess, SeqAccess, Visitor};
use std::fmt;
use std::io::Write;

/// Copies one value to the writer. Of names that an object repeats all are copied.
#[derive(Debug)]
pub struct CompactJson<'w, W> {
    /// Text written before the value.
    before: &'static str,
    writer: &'w mut W,
}

/// Copies one value that must be an object.
#[derive(Debug)]
pub struct CompactObject<'w, W>(pub &'w mut W);

impl<W: Write> CompactJson<'_, W> {
    fn text<E: Error>(&mut self, text: &str) -> Result<(), E> {
        self.writer.write_all(text.as_bytes()).map_err(E::custom)
    }

    fn value<E: Error>(self, value: &impl Serialize) -> Result<(), E> {
        serde_json::to_writer(self.writer, value).map_err(E::custom)
    }

    /// For a value within this one.
    fn inner(&mut self, before: &'static str) -> CompactJson<'_, W> {
        CompactJson { before, writer: self.writer }
    }

    fn object<'de, A: MapAccess<'de>>(mut self, mut entries: A) -> Result<(), A::Error> {
        self.text("{")?;
        let mut before = "";
        while entries.next_key_seed(self.inner(before))?.is_some() {
            entries.next_value_seed(self.inner(":"))?;
            before = ",";
        }
        self.text("}")
    }
}

impl<'de, W: Write> DeserializeSeed<'de> for CompactJson<'_, W> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(mut self, deserializer: D) -> Result<(), D::Error> {
        self.text(self.before)?;
        deserializer.deserialize_any(self)
    }
}

impl<'de, W: Write> Visitor<'de> for CompactJson<'_, W> {
    type Value = ();

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("any JSON value")
    }

    fn visit_unit<E: Error>(self) -> Result<(), E> {
        self.value(&())
    }

    fn visit_bool<E: Error>(self, value: bool) -> Result<(), E> {
        self.value(&value)
    }

    fn visit_i64<E: Error>(self, value: i64) -> Result<(), E> {
        self.value(&value)
    }

    fn visit_u64<E: Error>(self, value: u64) -> Result<(), E> {
        self.value(&value)
    }

    fn visit_f64<E: Error>(self, value: f64) -> Result<(), E> {
        self.value(&value)
    }

    fn visit_str<E: Error>(self, value: &str) -> Result<(), E> {
        self.value(&value)
    }

    fn visit_seq<A: SeqAccess<'de>>(mut self, mut elements: A) -> Result<(), A::Error> {
        self.text("[")?;
        let mut before = "";
        // The separator is written by the element, since nothing else tells whether there is one.
        while elements.next_element_seed(self.inner(before))?.is_some() {
            before = ",";
        }
        self.text("]")
    }

    fn visit_map<A: MapAccess<'de>>(self, entries: A) -> Result<(), A::Error> {
        self.object(entries)
    }
}

impl<'de, W: Write> DeserializeSeed<'de> for CompactObject<'_, W> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_map(self)
    }
}

impl<'de, W: Write> Visitor<'de> for CompactObject<'_, W> {
    type Value = ();

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, entries: A) -> Result<(), A::Error> {
        CompactJson { before: "", writer: self.0 }.object(entries)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    fn copied(json: &str) -> serde_json::Result<String> {
        let mut copy = Vec::new();
        let mut deserializer = serde_json::Deserializer::from_str(json);
        CompactObject(&mut copy).deserialize(&mut deserializer)?;
        deserializer.end()?;
        Ok(String::from_utf8(copy).unwrap())
    }

    #[test]
    fn a_copy_is_what_a_tree_would_be_written_as() {
        for json in [
            "{}",
            " { \"a\" : [ ] , \"b\" : { } } ",
            r#"{"a": [1, -2, 0.50, 1e3, -0, 18446744073709551615, 1e300], "b": null, "c": [true, [false, {"d": []}]]}"#,
            r#"{"\u0041\n\"": "\u00e9\ud83d\ude00\u0000\\/", "": ""}"#,
        ] {
            let tree: Value = serde_json::from_str(json).unwrap();
            assert_eq!(copied(json).unwrap(), tree.to_string());
            let mut copy = Vec::new();
            CompactObject(&mut copy).deserialize(&tree).unwrap();
            assert_eq!(copy, tree.to_string().as_bytes());
        }
    }

    #[test]
    fn what_is_no_object_is_refused_as_elsewhere() {
        for json in ["null", "[]", "1", r#""a""#] {
            let error = copied(json).unwrap_err();
            assert!(error.is_data() && error.to_string().contains("expected an object"), "{error}");
        }
        for json in [r#"{"a": [1,]}"#, r#"{"a": x}"#, r#"{"a""#, r#"{"a": 1e400}"#, r#"{1: 2}"#] {
            assert!(!copied(json).unwrap_err().is_data(), "{json}");
        }
        let deep = format!("{{\"a\": {}{}}}", "[".repeat(1_000), "]".repeat(1_000));
        assert!(copied(&deep).unwrap_err().to_string().contains("recursion limit"));
        assert!(CompactObject(&mut Vec::new()).deserialize(json!([1])).is_err());
    }
}
