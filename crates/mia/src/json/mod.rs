//! Reading of JSON values where serde's derived code accepts more than the documentation says.

mod capped_list;
mod list;
mod object;

pub use capped_list::CappedList;
pub use list::{BoundedList, List, ListSeed, TooMany, at_most, counted};
pub use object::{Object, object_or_null};

use std::str::FromStr;
use strum::VariantNames;

/// Reads one of a few values by its name, which must be a string: derived code would take other spellings as well.
///
/// # Errors
/// Where there is no value of that name, listing those there are.
pub fn by_name<T: FromStr + VariantNames>(name: &str) -> Result<T, String> {
    name.parse().map_err(|_| {
        let given: String = name.chars().take(60).collect();
        let known: Vec<String> = T::VARIANTS.iter().map(|known| format!("`{known}`")).collect();
        format!("unknown variant `{given}`, expected {}", known.join(" or "))
    })
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
}
