//! Values that are one of a few names, which must be strings: derived code would take other spellings as well.

/// Reads one of a few values by its name, which must be a string.
///
/// # Errors
/// Where there is no value of that name, listing those there are.
pub fn by_name<T: Copy>(name: &str, known: &[(&str, T)]) -> Result<T, String> {
    let value = known.iter().find(|(known, _)| *known == name).map(|(_, value)| *value);
    value.ok_or_else(|| {
        let given: String = name.chars().take(60).collect();
        let known: Vec<String> = known.iter().map(|(known, _)| format!("`{known}`")).collect();
        format!("unknown variant `{given}`, expected {}", known.join(" or "))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_known_or_listed() {
        assert_eq!(by_name("b", &[("a", 1), ("b", 2)]), Ok(2));
        assert_eq!(by_name("c", &[("a", 1), ("b", 2)]), Err("unknown variant `c`, expected `a` or `b`".to_owned()));
    }
}
