//! Values whose faults of type are noted, so that they hide no fault of what stands beside them.

use serde::de::DeserializeOwned;
use serde::{Deserialize, Deserializer};
use serde_json::value::RawValue;
use serde_path_to_error::{Path, Segment, Track};

/// A value, or what is wrong with its type. Only JSON that is malformed ends the reading.
#[derive(Debug)]
pub struct Shaped<T>(pub Result<T, ShapeFault>);

/// A fault of type.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ShapeFault {
    /// JSON pointer (RFC 6901) into the value.
    pub pointer: String,
    /// The value given and the values accepted.
    pub detail: String,
}

impl<'de, T: DeserializeOwned> Deserialize<'de> for Shaped<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        // The text, and not a tree of it: what bounds lists while they are read has to see them.
        let text = Box::<RawValue>::deserialize(deserializer)?;
        let mut json = serde_json::Deserializer::from_str(text.get());
        let mut track = Track::new();
        let value = T::deserialize(serde_path_to_error::Deserializer::new(&mut json, &mut track));
        Ok(Self(value.map_err(|cause| ShapeFault { pointer: pointer(&track.path()), detail: without_place(&cause) })))
    }
}

/// The error without line and column, which are those within the value.
#[must_use]
pub fn without_place(cause: &serde_json::Error) -> String {
    let detail = cause.to_string();
    let place = format!(" at line {} column {}", cause.line(), cause.column());
    in_words(detail.strip_suffix(&place).unwrap_or(&detail))
}

/// The error with the names of types that those who write JSON know.
#[must_use]
pub fn in_words(detail: &str) -> String {
    const EXPECTED: &str = "expected ";
    let Some((before, types)) = detail.rsplit_once(EXPECTED) else { return detail.to_owned() };
    let end = types.find(|character: char| !character.is_ascii_alphanumeric()).unwrap_or(types.len());
    let words = match &types[..end] {
        "f32" | "f64" => "a number",
        "u8" | "u16" | "u32" | "u64" | "usize" => "a whole number that is not negative",
        "i8" | "i16" | "i32" | "i64" | "isize" => "a whole number",
        _ => return detail.to_owned(),
    };
    format!("{before}{EXPECTED}{words}{}", &types[end..])
}

/// The path as a JSON pointer (RFC 6901).
#[must_use]
pub fn pointer(path: &Path) -> String {
    let segment = |segment: &Segment| match segment {
        Segment::Seq { index } => format!("/{index}"),
        Segment::Map { key } => format!("/{}", key.replace('~', "~0").replace('/', "~1")),
        Segment::Enum { .. } | Segment::Unknown => String::new(),
    };
    path.iter().map(segment).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use mia::json::BoundedList;

    #[derive(Debug, Deserialize)]
    #[serde(deny_unknown_fields)]
    struct Pair {
        #[serde(default)]
        first: Option<Shaped<BoundedList<u8, 2>>>,
        second: Shaped<Vec<Shaped<u8>>>,
    }

    #[test]
    fn faults_of_type_do_not_hide_each_other() {
        let json = r#"{"first": [1, "x"], "second": [1, "y", 3, -1]}"#;
        // Read as requests are, with the path tracked.
        let mut track = Track::new();
        let mut deserializer = serde_json::Deserializer::from_str(json);
        let pair = Pair::deserialize(serde_path_to_error::Deserializer::new(&mut deserializer, &mut track)).unwrap();
        let fault = pair.first.unwrap().0.unwrap_err();
        assert_eq!(fault.pointer, "/1");
        assert_eq!(fault.detail, "invalid type: string \"x\", expected a whole number that is not negative");
        let second = pair.second.0.unwrap();
        let faults: Vec<bool> = second.iter().map(|Shaped(value)| value.is_err()).collect();
        assert_eq!(faults, [false, true, false, true]);
    }

    #[test]
    fn what_is_no_json_is_still_refused() {
        for json in [r#"{"second": [1,]}"#, r#"{"second": [1, x]}"#, r#"{"second": "#] {
            assert!(!serde_json::from_str::<Pair>(json).unwrap_err().is_data(), "{json}");
        }
        assert!(serde_json::from_str::<Pair>(r#"{"first": null, "second": []}"#).unwrap().first.is_none());
        let long = serde_json::from_str::<Pair>(r#"{"first": [1, 2, 3], "second": []}"#).unwrap();
        assert!(long.first.unwrap().0.unwrap_err().detail.contains("at most 2"));
    }
}
