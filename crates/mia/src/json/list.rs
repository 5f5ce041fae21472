//! Lists that are bounded while they are read: 32 MiB of `"",` are 11 million elements, and more than a GB once they are kept.

use serde::de::{DeserializeSeed, Error, IgnoredAny, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer};
use std::fmt;
use std::marker::PhantomData;

/// The elements of a list, or how many there are where that is more than the limit; then none of them is kept.
pub type List<T> = Result<Vec<T>, TooMany>;

/// A list was longer than its limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the list has {count} elements; the limit is {limit}")]
pub struct TooMany {
    /// Number of elements.
    pub count: usize,
    /// Maximum number of elements.
    pub limit: usize,
}

/// Reads a list of at most `limit` elements. Elements beyond the limit are counted; only their syntax is checked.
#[derive(Debug)]
pub struct ListSeed<T> {
    limit: usize,
    element: PhantomData<T>,
}

impl<T> ListSeed<T> {
    /// For lists of at most `limit` elements.
    #[must_use]
    pub const fn new(limit: usize) -> Self {
        Self { limit, element: PhantomData }
    }
}

impl<'de, T: Deserialize<'de>> DeserializeSeed<'de> for ListSeed<T> {
    type Value = List<T>;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<List<T>, D::Error> {
        deserializer.deserialize_seq(self)
    }
}

impl<'de, T: Deserialize<'de>> Visitor<'de> for ListSeed<T> {
    type Value = List<T>;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("a sequence")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<List<T>, A::Error> {
        let elements = first_elements(&mut list, self.limit)?;
        if list.next_element::<IgnoredAny>()?.is_none() {
            return Ok(Ok(elements));
        }
        drop(elements);
        let count = self.limit + 1 + count_rest(&mut list)?;
        Ok(Err(TooMany { count, limit: self.limit }))
    }
}

/// Returns the first elements of a list, at most `limit` of them.
pub(super) fn first_elements<'de, T: Deserialize<'de>, A: SeqAccess<'de>>(
    list: &mut A,
    limit: usize,
) -> Result<Vec<T>, A::Error> {
    let mut elements = Vec::new();
    while elements.len() < limit {
        match list.next_element()? {
            Some(element) => elements.push(element),
            None => break,
        }
    }
    Ok(elements)
}

/// Counts the remaining elements of a list; only their syntax is checked.
pub(super) fn count_rest<'de, A: SeqAccess<'de>>(list: &mut A) -> Result<usize, A::Error> {
    let mut count = 0;
    while list.next_element::<IgnoredAny>()?.is_some() {
        count += 1;
    }
    Ok(count)
}

/// Reads a field that is a bounded list; the caller reports that it is too long.
///
/// # Errors
/// Where it is no list, and those of its elements.
pub fn counted<'de, D: Deserializer<'de>, T: Deserialize<'de>, const LIMIT: usize>(
    deserializer: D,
) -> Result<List<T>, D::Error> {
    ListSeed::new(LIMIT).deserialize(deserializer)
}

/// A list of at most `LIMIT` elements; a longer one is a type error.
#[derive(Debug)]
pub struct BoundedList<T, const LIMIT: usize>(pub Vec<T>);

impl<'de, T: Deserialize<'de>, const LIMIT: usize> Deserialize<'de> for BoundedList<T, LIMIT> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let list = ListSeed::new(LIMIT).deserialize(deserializer)?;
        list.map(Self).map_err(|TooMany { count, limit }| {
            D::Error::custom(format!("the list has {count} elements; it takes at most {limit}"))
        })
    }
}

/// For a field that is null or a [`BoundedList`].
///
/// # Errors
/// Where it is anything else or too long, and those of its elements.
pub fn at_most<'de, D: Deserializer<'de>, T: Deserialize<'de>, const LIMIT: usize>(
    deserializer: D,
) -> Result<Option<Vec<T>>, D::Error> {
    let list = Option::<BoundedList<T, LIMIT>>::deserialize(deserializer)?;
    Ok(list.map(|BoundedList(elements)| elements))
}

#[cfg(test)]
mod tests {
    use super::*;

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
