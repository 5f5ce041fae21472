//! JSON as Python writes it: with infinities and NaN, for which the standard has no word.

use std::borrow::Cow;

/// What Python's `json` writes for the numbers that JSON lacks, each before its own suffixes.
const TOKENS: [&str; 3] = ["-Infinity", "Infinity", "NaN"];

/// The text with every bare `Infinity`, `-Infinity` and `NaN` as `{"__float__": "Infinity"}` and so on, which is how
/// transformers 5 writes them in standard JSON. Strings stay as they are. Text that is no JSON stays no JSON.
pub fn standard_json(text: &[u8]) -> Cow<'_, [u8]> {
    let (mut rewritten, mut copied) = (Vec::new(), 0);
    let (mut at, mut in_string) = (0, false);
    while at < text.len() {
        let token = TOKENS.iter().find(|token| !in_string && text[at..].starts_with(token.as_bytes()));
        if let Some(token) = token {
            rewritten.extend_from_slice(&text[copied..at]);
            rewritten.extend_from_slice(format!(r#"{{"__float__":"{token}"}}"#).as_bytes());
            copied = at + token.len();
        }
        in_string ^= text[at] == b'"';
        // Inside a string a backslash takes the next byte with it: that may be a quotation mark.
        let escape = in_string && text[at] == b'\\';
        at += token.map_or(1 + usize::from(escape), |token| token.len());
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
