//! Other columns of a sample, kept as text: a tree of small JSON values takes some 16 times the memory of its text.

use super::DatasetError;
use crate::wire::CompactObject;
use indexmap::{IndexMap, IndexSet};
use serde::de::{DeserializeSeed, Error, IgnoredAny};
use serde::ser::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::value::RawValue;
use serde_json::{Map, Value};
use std::io::{self, Write};
use std::string::FromUtf8Error;

/// Maximum size of the other columns of a sample, in bytes of JSON.
const MAX_COLUMN_BYTES: usize = 64 << 10;

/// Other columns of a sample, by name.
pub type ExtraColumns = Map<String, Value>;

/// [`ExtraColumns`] as compact JSON. An object that is longer than the limit is counted and not kept; the caller reports it.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ColumnText {
    /// The object; empty where nothing came along or too much.
    json: String,
    /// Size of the object in bytes.
    bytes: usize,
}

impl ColumnText {
    /// The text of these columns.
    ///
    /// # Errors
    /// [`DatasetError::Internal`] where they cannot be written as JSON.
    pub fn new(columns: &ExtraColumns) -> Result<Self, DatasetError> {
        let mut text = BoundedText::default();
        serde_json::to_writer(&mut text, columns).map_err(|error| DatasetError::Internal(error.to_string()))?;
        text.finish().map_err(|error| DatasetError::Internal(error.to_string()))
    }

    /// Returns the columns as a tree, which takes much more memory.
    ///
    /// # Errors
    /// An error of JSON if the text is damaged.
    pub fn tree(&self) -> serde_json::Result<ExtraColumns> {
        if self.json.is_empty() { Ok(ExtraColumns::new()) } else { serde_json::from_str(&self.json) }
    }

    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.bytes == 0
    }

    /// Returns the size of the columns as JSON, in bytes.
    #[must_use]
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// Returns the fault, in words; `None` if there is none.
    #[must_use]
    pub fn fault(&self) -> Option<String> {
        let bytes = self.bytes;
        (bytes > MAX_COLUMN_BYTES)
            .then(|| format!("the other columns take {bytes} bytes as JSON; the limit is {MAX_COLUMN_BYTES}"))
    }

    /// Returns the names of the columns; empty if the columns were too long.
    ///
    /// # Errors
    /// [`DatasetError::Internal`] where the text is damaged.
    pub fn names(&self) -> Result<IndexSet<String>, DatasetError> {
        if self.json.is_empty() {
            return Ok(IndexSet::new());
        }
        let columns: IndexMap<String, IgnoredAny> =
            serde_json::from_str(&self.json).map_err(|error| DatasetError::Internal(error.to_string()))?;
        Ok(columns.into_keys().collect())
    }
}

impl<'de> Deserialize<'de> for ColumnText {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let mut text = BoundedText::default();
        CompactObject(&mut text).deserialize(deserializer)?;
        text.finish().map_err(D::Error::custom)
    }
}

impl Serialize for ColumnText {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        if let Some(fault) = self.fault() {
            return Err(S::Error::custom(fault));
        }
        let json = if self.json.is_empty() { "{}" } else { &self.json };
        serde_json::from_str::<&RawValue>(json).map_err(S::Error::custom)?.serialize(serializer)
    }
}

/// Counts the bytes that are written to it, and keeps them up to the limit.
#[derive(Debug, Default)]
struct BoundedText {
    kept: Vec<u8>,
    bytes: usize,
}

impl BoundedText {
    fn finish(self) -> Result<ColumnText, FromUtf8Error> {
        let json = String::from_utf8(self.kept)?;
        Ok(if json == "{}" { ColumnText::default() } else { ColumnText { json, bytes: self.bytes } })
    }
}

impl Write for BoundedText {
    fn write(&mut self, json: &[u8]) -> io::Result<usize> {
        self.bytes += json.len();
        if self.bytes <= MAX_COLUMN_BYTES {
            self.kept.extend_from_slice(json);
        } else {
            self.kept = Vec::new();
        }
        Ok(json.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    /// The columns `{"a":[0,0,..]}` of `bytes` bytes, an odd number.
    fn zeros(bytes: usize) -> String {
        format!("{{\"a\":[0{}]}}", ",0".repeat((bytes - 9) / 2))
    }

    #[test]
    fn columns_are_kept_as_text_up_to_the_limit_and_counted_beyond() {
        let read = |json: &str| serde_json::from_str::<ColumnText>(json).unwrap();
        let longest = zeros(MAX_COLUMN_BYTES - 1);
        for json in [longest.clone(), longest.replace(',', " , ")] {
            let columns = read(&json);
            assert_eq!((columns.fault(), &columns.json), (None, &longest));
        }
        let columns = read(&zeros(MAX_COLUMN_BYTES + 1));
        assert_eq!(columns.fault().unwrap(), "the other columns take 65537 bytes as JSON; the limit is 65536");
        assert!(serde_json::to_string(&columns).unwrap_err().to_string().contains("65537 bytes"));
        // A tree of these numbers would take 512 MiB.
        let columns = read(&zeros((32 << 20) + 1));
        assert_eq!((columns.json.capacity(), columns.bytes), (0, (32 << 20) + 1));
        assert!(!columns.is_empty() && columns.names().unwrap().is_empty());
    }

    #[test]
    fn columns_are_the_same_from_text_and_tree_and_survive_being_stored() {
        let json = r#"{"page":7,"source":{"book":["a",null,0.5]}}"#;
        let tree: ExtraColumns = serde_json::from_str(json).unwrap();
        let columns = ColumnText::new(&tree).unwrap();
        assert_eq!(columns, serde_json::from_str(json).unwrap());
        assert_eq!(columns, serde_json::from_value(Value::Object(tree.clone())).unwrap());
        assert_eq!(serde_json::to_string(&columns).unwrap(), json);
        assert_eq!(serde_json::to_value(&columns).unwrap(), Value::Object(tree));
        assert!(columns.names().unwrap().iter().eq(["page", "source"]));
    }

    #[test]
    fn an_empty_object_is_as_if_nothing_came_along() {
        let columns = ColumnText::new(&ExtraColumns::new()).unwrap();
        assert!(columns.is_empty() && columns == serde_json::from_str("{ }").unwrap());
        assert_eq!(serde_json::to_value(&columns).unwrap(), json!({}));
        assert!(columns.names().unwrap().is_empty());
    }

    #[test]
    fn a_name_that_is_repeated_is_listed_once() {
        let columns: ColumnText = serde_json::from_str(r#"{"b": 1, "a": 2, "b": 3}"#).unwrap();
        assert!(columns.names().unwrap().iter().eq(["b", "a"]));
    }
}
