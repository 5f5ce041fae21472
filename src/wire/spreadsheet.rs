//! Fields of CSV that a spreadsheet would take for formulas.

use std::borrow::Cow;

/// A text that no spreadsheet evaluates: an apostrophe comes before one that begins as a formula does, with `=`, `+`, `-`, `@`, a
/// tab or a carriage return, as OWASP advises ("CSV injection"). Numbers of our own are to be written as they are.
#[must_use]
pub fn inert(text: &str) -> Cow<'_, str> {
    if text.starts_with(['=', '+', '-', '@', '\t', '\r']) {
        Cow::Owned(format!("'{text}"))
    } else {
        Cow::Borrowed(text)
    }
}

#[cfg(test)]
mod tests {
    use super::inert;

    #[test]
    fn what_begins_a_formula_is_text() {
        for text in ["=1+1", "+1", "-1", "@SUM(A1)", "\t=1", "\r=1"] {
            assert_eq!(inert(text), format!("'{text}"));
        }
        for text in ["", "a=b", "1-1", "'=1", " =1"] {
            assert_eq!(inert(text), text);
        }
    }
}
