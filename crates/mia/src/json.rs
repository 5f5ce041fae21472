//! Reading of JSON values where serde's derived code accepts more than the documentation says, and of lists that are bounded
//! while they are read: 32 MiB of `"",` are 11 million elements, and more than a GB once they are kept.

use serde::de::value::MapAccessDeserializer;
use serde::de::{Error, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::fmt;
use std::marker::PhantomData;
use std::str::FromStr;
use strum::VariantNames;

/// Reads one of a few values by its name, which must be a string: derived code would take other spellings as well. The error
/// lists the names.
pub fn by_name<T: FromStr + VariantNames>(name: &str) -> Result<T, String> {
    name.parse().map_err(|_| {
        let given: String = name.chars().take(60).collect();
        let known: Vec<String> = T::VARIANTS.iter().map(|known| format!("`{known}`")).collect();
        format!("unknown variant `{given}`, expected {}", known.join(" or "))
    })
}

/// A value that must be written as an object: derived code would take a list of the fields in order as well.
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
pub fn object_or_null<'de, D: Deserializer<'de>, T: Deserialize<'de>>(deserializer: D) -> Result<Option<T>, D::Error> {
    Option::<Object<T>>::deserialize(deserializer).map(|object| object.map(|Object(value)| value))
}

/// The elements of a list; of one beyond its limit, none is kept.
pub type List<T> = Result<Vec<T>, TooMany>;

/// A list was longer than its limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the list has {count} elements; the limit is {limit}")]
pub struct TooMany {
    pub count: usize,
    pub limit: usize,
}

/// The first `MAX` elements of a list in a request, and its length. Elements beyond the limit are counted, not kept: the
/// size of a request that is going to be refused must not decide how much memory reading it takes.
#[derive(Clone, Debug, PartialEq)]
pub struct CappedList<T, const MAX: usize> {
    kept: Vec<T>,
    total: usize,
}

impl<T, const MAX: usize> CappedList<T, MAX> {
    /// The elements, at most `MAX` of them.
    pub fn kept(&self) -> &[T] {
        &self.kept
    }

    /// The length of the list in the request.
    pub fn total(&self) -> usize {
        self.total
    }
}

impl<'de, T: Deserialize<'de>, const MAX: usize> Deserialize<'de> for CappedList<T, MAX> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let (kept, total) = deserializer.deserialize_seq(ListVisitor::new(MAX))?;
        Ok(Self { kept, total })
    }
}

impl<T: Serialize, const MAX: usize> Serialize for CappedList<T, MAX> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.kept.serialize(serializer)
    }
}

/// Reads the first `limit` elements of a list, and its length.
struct ListVisitor<T> {
    limit: usize,
    element: PhantomData<T>,
}

impl<T> ListVisitor<T> {
    fn new(limit: usize) -> Self {
        Self { limit, element: PhantomData }
    }
}

impl<'de, T: Deserialize<'de>> Visitor<'de> for ListVisitor<T> {
    type Value = (Vec<T>, usize);

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("a sequence")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Self::Value, A::Error> {
        let mut kept = Vec::new();
        while kept.len() < self.limit {
            match list.next_element()? {
                Some(element) => kept.push(element),
                None => break,
            }
        }
        let mut total = kept.len();
        while list.next_element::<IgnoredAny>()?.is_some() {
            total += 1;
        }
        Ok((kept, total))
    }
}

/// Reads a list of at most `limit` elements. Elements beyond the limit are counted; only their syntax is checked.
pub fn bounded<'de, A: SeqAccess<'de>, T: Deserialize<'de>>(list: A, limit: usize) -> Result<List<T>, A::Error> {
    ListVisitor::new(limit).visit_seq(list).map(|list| within(limit, list))
}

fn within<T>(limit: usize, (kept, count): (Vec<T>, usize)) -> List<T> {
    if count > limit { Err(TooMany { count, limit }) } else { Ok(kept) }
}

/// Reads a field that is a bounded list; the caller reports that it is too long.
pub fn counted<'de, D: Deserializer<'de>, T: Deserialize<'de>, const LIMIT: usize>(
    deserializer: D,
) -> Result<List<T>, D::Error> {
    deserializer.deserialize_seq(ListVisitor::new(LIMIT)).map(|list| within(LIMIT, list))
}

/// A list of at most `LIMIT` elements; a longer one is a type error.
#[derive(Debug)]
pub struct BoundedList<T, const LIMIT: usize>(pub Vec<T>);

impl<'de, T: Deserialize<'de>, const LIMIT: usize> Deserialize<'de> for BoundedList<T, LIMIT> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let list = counted::<D, T, LIMIT>(deserializer)?;
        list.map(Self).map_err(|TooMany { count, limit }| {
            D::Error::custom(format!("the list has {count} elements; it takes at most {limit}"))
        })
    }
}

/// For a field that is null or a [`BoundedList`].
pub fn at_most<'de, D: Deserializer<'de>, T: Deserialize<'de>, const LIMIT: usize>(
    deserializer: D,
) -> Result<Option<Vec<T>>, D::Error> {
    let list = Option::<BoundedList<T, LIMIT>>::deserialize(deserializer)?;
    Ok(list.map(|BoundedList(elements)| elements))
}

#[cfg(test)]
mod tests {
    use super::*;
    use strum::EnumString;

    #[derive(Debug, PartialEq, EnumString, VariantNames)]
    #[strum(serialize_all = "snake_case")]
    enum Letter {
        A,
        LongB,
    }

    #[test]
    fn names_are_known_or_listed() {
        assert_eq!(by_name("long_b"), Ok(Letter::LongB));
        assert_eq!(by_name::<Letter>("LongB"), Err("unknown variant `LongB`, expected `a` or `long_b`".to_owned()));
    }

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
    fn elements_over_the_limit_are_counted_and_not_kept() {
        let list = |json: &str| serde_json::from_str::<CappedList<u8, 2>>(json);
        for (json, kept, total) in
            [("[]", &[][..], 0), ("[1]", &[1], 1), ("[1, 2]", &[1, 2], 2), ("[1, 2, 3, 4]", &[1, 2], 4)]
        {
            let list = list(json).unwrap();
            assert_eq!((list.kept(), list.total()), (kept, total));
        }
        assert!(list("[1, -2]").is_err() && list("7").is_err());
    }

    #[derive(Debug, Deserialize)]
    struct Lists {
        #[serde(deserialize_with = "counted::<_, _, 2>")]
        counted: List<String>,
        #[serde(default, deserialize_with = "at_most::<_, _, 2>")]
        bounded: Option<Vec<String>>,
    }

    #[test]
    fn lists_are_kept_up_to_their_limit_and_counted_beyond() {
        let read = |json: &str| serde_json::from_str::<Lists>(json);
        let lists = read(r#"{"counted": ["a", "b"], "bounded": ["c", "d"]}"#).unwrap();
        assert_eq!(lists.counted.unwrap(), ["a", "b"]);
        assert_eq!(lists.bounded.unwrap(), ["c", "d"]);
        let lists = read(r#"{"counted": ["a", "b", "c", 4, [5]]}"#).unwrap();
        assert_eq!((lists.counted, lists.bounded), (Err(TooMany { count: 5, limit: 2 }), None));
        assert!(read(r#"{"counted": [], "bounded": null}"#).unwrap().bounded.is_none());
        let error = read(r#"{"counted": [], "bounded": ["a", "b", "c"]}"#).unwrap_err().to_string();
        assert!(error.contains("has 3 elements; it takes at most 2"), "{error}");
        for bad in [r#"{"counted": ["a", 1]}"#, r#"{"counted": "a"}"#, r#"{"counted": ["a", "b", "c", ]}"#] {
            assert!(read(bad).is_err(), "{bad}");
        }
    }
}
