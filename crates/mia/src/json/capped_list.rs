//! A list with a limited number of elements in a request.

use super::list::{count_rest, first_elements};
use serde::de::{SeqAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::fmt;
use std::marker::PhantomData;

/// The first `MAX` elements of a list, and its length. Elements beyond the limit are counted, not kept: the size of a
/// request that is going to be refused must not decide how much memory reading it takes.
#[derive(Clone, Debug, PartialEq)]
pub struct CappedList<T, const MAX: usize> {
    kept: Vec<T>,
    total: usize,
}

impl<T, const MAX: usize> CappedList<T, MAX> {
    /// The elements, at most `MAX` of them.
    #[must_use]
    pub fn kept(&self) -> &[T] {
        &self.kept
    }

    /// Returns the length of the list in the request.
    #[must_use]
    pub fn total(&self) -> usize {
        self.total
    }
}

impl<'de, T: Deserialize<'de>, const MAX: usize> Deserialize<'de> for CappedList<T, MAX> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct ListVisitor<T, const MAX: usize>(PhantomData<T>);

        impl<'de, T: Deserialize<'de>, const MAX: usize> Visitor<'de> for ListVisitor<T, MAX> {
            type Value = CappedList<T, MAX>;

            fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
                formatter.write_str("a sequence")
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Self::Value, A::Error> {
                let kept = first_elements(&mut list, MAX)?;
                let total = kept.len() + count_rest(&mut list)?;
                Ok(CappedList { kept, total })
            }
        }

        deserializer.deserialize_seq(ListVisitor(PhantomData))
    }
}

impl<T: Serialize, const MAX: usize> Serialize for CappedList<T, MAX> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.kept.serialize(serializer)
    }
}

#[cfg(test)]
mod tests {
    use super::CappedList;

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
}
