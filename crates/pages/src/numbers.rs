//! The numbers of a report as a page shows them.

use maud::{Markup, html};
use serde_json::Value;

/// Number of digits, and the unit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// A whole number.
    Count,
    /// Three decimals: areas under curves, scores and differences of them.
    Decimals,
    /// Three decimals with a sign.
    Signed,
    /// A share in percent.
    Percent,
    /// At most five significant digits, or a whole number: numbers of any kind.
    Significant,
    /// A p-value: four decimals, or a power of ten where it is small.
    PValue,
}

impl Format {
    /// Returns the number as it is shown.
    #[must_use]
    pub fn text(self, value: f64) -> String {
        // Adding 0 turns what rounds to a negative zero into a plain one.
        let rounded = |digits: i32| (value * 10f64.powi(digits)).round() / 10f64.powi(digits) + 0.0;
        match self {
            Self::Count => format!("{value:.0}"),
            Self::Decimals => format!("{:.3}", rounded(3)),
            Self::Signed => format!("{:+.3}", rounded(3)),
            Self::Percent => format!("{} %", Self::Significant.text(value * 100.0)),
            Self::Significant if value.fract() == 0.0 && value.abs() < 1e15 => format!("{value:.0}"),
            Self::Significant if value.abs() >= 1e-4 => {
                let digits = (4 - value.abs().log10().floor() as i32).clamp(0, 9) as usize;
                let text = format!("{value:.digits$}");
                match text.contains('.') {
                    true => text.trim_end_matches('0').trim_end_matches('.').to_owned(),
                    false => text,
                }
            }
            Self::Significant => format!("{value:.4e}"),
            Self::PValue if value != 0.0 && value < 1e-3 => format!("{value:.1e}"),
            Self::PValue => format!("{:.4}", rounded(4)),
        }
    }
}

/// A part of a report, and its place there.
#[derive(Clone, Debug)]
pub struct Part<'a> {
    pub value: &'a Value,
    /// JSON pointer from the root of the report.
    pointer: String,
}

impl<'a> Part<'a> {
    /// The whole report.
    pub fn root(value: &'a Value) -> Self {
        Self { value, pointer: String::new() }
    }

    /// The member of this name; null where there is none.
    pub fn get(&self, name: &str) -> Self {
        let escaped = name.replace('~', "~0").replace('/', "~1");
        Self { value: &self.value[name], pointer: format!("{}/{escaped}", self.pointer) }
    }

    /// The members of this path, one within the other.
    pub fn path(&self, names: &[&str]) -> Self {
        names.iter().fold(self.clone(), |part, name| part.get(name))
    }

    /// Returns the elements of a list; empty for any other value.
    pub fn elements(&self) -> Vec<Part<'a>> {
        let list = self.value.as_array().into_iter().flatten();
        list.enumerate().map(|(index, value)| Self { value, pointer: format!("{}/{index}", self.pointer) }).collect()
    }

    /// The element at a place of a list; null where there is none.
    pub fn element(&self, index: usize) -> Self {
        Self { value: &self.value[index], pointer: format!("{}/{index}", self.pointer) }
    }

    pub fn is_absent(&self) -> bool {
        self.value.is_null()
    }

    pub fn text(&self) -> &'a str {
        self.value.as_str().unwrap_or_default()
    }

    pub fn number(&self) -> Option<f64> {
        self.value.as_f64()
    }

    /// The number with its place, or a dash.
    pub fn show(&self, format: Format) -> Markup {
        match (self.value, self.number()) {
            (Value::Number(exact), Some(number)) => html! {
                data value=(exact.to_string()) data-at=(self.pointer) { (format.text(number)) }
            },
            _ => html! { "–" },
        }
    }

    /// An interval of two numbers, or a dash.
    pub fn show_interval(&self, format: Format) -> Markup {
        if self.value.is_array() {
            html! { (self.element(0).show(format)) " to " (self.element(1).show(format)) }
        } else {
            html! { "–" }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn numbers_are_shown_with_the_digits_of_their_kind() {
        let texts = [
            (Format::Count, 800.0, "800"),
            (Format::Decimals, 0.740_532, "0.741"),
            (Format::Decimals, -0.000_1, "0.000"),
            (Format::Signed, 0.252_204, "+0.252"),
            (Format::Signed, -0.000_1, "+0.000"),
            (Format::Percent, 0.01, "1 %"),
            (Format::Percent, 0.123_454_9, "12.345 %"),
            (Format::Percent, 1e-7, "1.0000e-5 %"),
            (Format::Percent, 0.0, "0 %"),
            (Format::PValue, 1e-4, "1.0e-4"),
            (Format::PValue, 0.671_641_8, "0.6716"),
            (Format::PValue, 0.0, "0.0000"),
            (Format::Significant, 85_631.0, "85631"),
            (Format::Significant, -2.222_634_7, "-2.2226"),
            (Format::Significant, 0.005, "0.005"),
            (Format::Significant, 12_340.25, "12340"),
            (Format::Significant, 99_999.6, "100000"),
            (Format::Significant, 2_500_000.5, "2500000"),
            (Format::Significant, 1e15, "1000000000000000"),
            (Format::Significant, 1.000_01, "1"),
            (Format::Significant, 0.999_999_99, "1"),
            (Format::Significant, 0.000_02, "2.0000e-5"),
        ];
        for (format, value, text) in texts {
            assert_eq!(format.text(value), text, "{format:?} {value}");
        }
    }

    #[test]
    fn a_number_names_its_place_and_keeps_its_digits() {
        let report = json!({ "a/b": [{ "auroc": 0.676_508 }, null] });
        let part = Part::root(&report).get("a/b");
        let shown = part.element(0).get("auroc").show(Format::Decimals).into_string();
        assert_eq!(shown, r#"<data value="0.676508" data-at="/a~1b/0/auroc">0.677</data>"#);
        assert_eq!(part.element(7).get("auroc").show(Format::Decimals).into_string(), "–");
        assert_eq!(report.pointer("/a~1b/0/auroc").and_then(Value::as_f64), Some(0.676_508));
    }
}
