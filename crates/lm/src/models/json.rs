//! JSON as Python writes it: with infinities and NaN, which the standard does not have.

use std::borrow::Cow;

/// Tokens that Python's `json` writes for the numbers that JSON lacks; a token that contains another precedes it.
const TOKENS: [&str; 3] = ["-Infinity", "Infinity", "NaN"];

/// Replaces every bare `Infinity`, `-Infinity` and `NaN` by `{"__float__": "Infinity"}` and so on, which is how
/// transformers 5 writes them in standard JSON. Strings are unchanged, and invalid JSON stays invalid.
pub fn standard_json(text: &[u8]) -> Cow<'_, [u8]> {
    let (mut rewritten, mut copied) = (Vec::new(), 0);
    let (mut position, mut in_string) = (0, false);
    while position < text.len() {
        let token = TOKENS.iter().find(|token| !in_string && text[position..].starts_with(token.as_bytes()));
        if let Some(token) = token {
            rewritten.extend_from_slice(&text[copied..position]);
            rewritten.extend_from_slice(format!(r#"{{"__float__":"{token}"}}"#).as_bytes());
            copied = position + token.len();
        }
        in_string ^= text[position] == b'"';
        // In a string, a backslash escapes the next byte, which may be a quotation mark.
        let escape = in_string && text[position] == b'\\';
        position += token.map_or(1 + usize::from(escape), |token| token.len());
    }
    if copied == 0 {
        return Cow::Borrowed(text);
    }
    rewritten.extend_from_slice(&text[copied..]);
    Cow::Owned(rewritten)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rewritten(text: &str) -> String {
        String::from_utf8(standard_json(text.as_bytes()).into_owned()).unwrap()
    }

    #[test]
    fn the_three_numbers_are_rewritten_wherever_a_value_may_stand() {
        let infinity = r#"{"__float__":"Infinity"}"#;
        assert_eq!(rewritten("Infinity"), infinity);
        assert_eq!(rewritten(r#"{"limit": [0.0, Infinity]}"#), format!(r#"{{"limit": [0.0, {infinity}]}}"#));
        assert_eq!(rewritten("[-Infinity,NaN]"), r#"[{"__float__":"-Infinity"},{"__float__":"NaN"}]"#);
        let value: serde_json::Value = serde_json::from_str(&rewritten(r#"{"a":NaN,"b":[-1,-Infinity]}"#)).unwrap();
        assert_eq!(value, serde_json::json!({"a": {"__float__": "NaN"}, "b": [-1, {"__float__": "-Infinity"}]}));
    }

    #[test]
    fn strings_are_left_alone() {
        for text in [
            r#"{"NaN": "Infinity", "a": "-Infinity and NaN"}"#,
            r#"["a \" Infinity", "b"]"#,
            r#"["ends with a backslash \\", "NaN"]"#,
            r#"["\\\" NaN"]"#,
            r#"{"__float__": "Infinity"}"#,
            r#"["é NaN ü"]"#,
            "",
        ] {
            assert!(matches!(standard_json(text.as_bytes()), Cow::Borrowed(same) if same == text.as_bytes()), "{text}");
        }
        assert_eq!(rewritten(r#"["a\\", NaN, "NaN"]"#), r#"["a\\", {"__float__":"NaN"}, "NaN"]"#);
        assert_eq!(rewritten(r#"["\"", NaN]"#), r#"["\"", {"__float__":"NaN"}]"#);
    }

    #[test]
    fn text_that_ends_anywhere_is_no_trouble() {
        let text = br#"{"a\"": [-Infinity, "NaN\\"]}"#;
        for end in 0..text.len() {
            standard_json(&text[..end]);
        }
        assert_eq!(rewritten("-Infinit"), "-Infinit");
    }
}
