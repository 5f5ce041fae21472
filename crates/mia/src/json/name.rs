//! Values that are one of a few names, which must be strings: derived code would take other spellings as well.

use std::str::FromStr;
use strum::VariantNames;

/// Reads one of a few values by its name, which must be a string.
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
