//! Faults of a request's methods.

use serde::{Deserialize, Serialize};
use std::fmt::Display;
use utoipa::ToSchema;

/// Maximum length of an unknown name that a fault repeats, in Unicode code points.
const MAX_QUOTED_CHARS: usize = 60;

/// The least likeness of a name that is suggested, from 0 to 1.
const LEAST_LIKENESS: f64 = 0.84;

/// The least number of characters of a part of a name that stands for it.
const LEAST_PART: usize = 4;

/// One fault of a request, and where it is.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Fault {
    /// JSON pointer (RFC 6901), relative to the list of methods: `/0/pdr/alpha`. Empty: the list itself.
    pub pointer: String,
    /// The fault, the value given and the values accepted.
    pub detail: String,
}

impl Fault {
    pub fn new(pointer: impl Into<String>, detail: impl Into<String>) -> Fault {
        Fault { pointer: pointer.into(), detail: detail.into() }
    }

    /// A name that is none of the known ones. A long name is not repeated in full.
    pub(super) fn unknown<T: Display>(
        kind: &str,
        name: &str,
        known: impl IntoIterator<Item = T>,
        pointer: impl Into<String>,
    ) -> Fault {
        let mut quoted: String = name.chars().take(MAX_QUOTED_CHARS).collect();
        if quoted.len() < name.len() {
            quoted.push_str("...");
        }
        let known: Vec<String> = known.into_iter().map(|name| name.to_string()).collect();
        let meant = similar(name, &known).map_or(String::new(), |meant| format!(" (did you mean `{meant}`?)"));
        Fault::new(pointer, format!("unknown {kind} `{quoted}`{meant}, known are {}", known.join(", ")))
    }
}

/// The name among the known ones that is most like another one, if any is. Case and signs do not count, and `++` is what
/// papers write for `plus_plus`.
fn similar<'k>(name: &str, known: &'k [String]) -> Option<&'k str> {
    let plain = |name: &str| -> String {
        let spelt = name.to_lowercase().replace('+', "plus");
        spelt.chars().filter(|character| character.is_alphanumeric()).take(MAX_QUOTED_CHARS).collect()
    };
    // The parameters of a label are no part of the name.
    let name = plain(name.split('(').next().unwrap_or(name));
    let likeness = |known: &'k String| {
        let spelt = plain(known);
        let is_part = name.len() >= LEAST_PART && spelt.contains(&name);
        let likeness = strsim::jaro_winkler(&name, &spelt);
        (if is_part { likeness.max(LEAST_LIKENESS) } else { likeness }, known.as_str())
    };
    let best = known.iter().map(likeness).max_by(|one, other| one.0.total_cmp(&other.0));
    best.filter(|(likeness, _)| *likeness >= LEAST_LIKENESS).map(|(_, known)| known)
}

/// The faults of a request so far.
#[derive(Debug, Default)]
pub struct Faults(Vec<Fault>);

impl Faults {
    /// Keeps a fault, unless it is known: each method of a sweep has the same ones.
    pub fn push(&mut self, fault: Fault) {
        if !self.0.contains(&fault) {
            self.0.push(fault);
        }
    }

    /// Returns the checked value; if it is at fault, keeps the fault and returns `None`.
    pub fn keep<T>(&mut self, checked: Result<T, Fault>) -> Option<T> {
        checked.map_err(|fault| self.push(fault)).ok()
    }

    pub fn len(&self) -> usize {
        self.0.len()
    }

    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub fn into_vec(self) -> Vec<Fault> {
        self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::methods::registry::MethodName;
    use strum::VariantArray;

    #[test]
    fn a_similar_name_is_suggested() {
        for (name, meant) in [
            ("mink++", Some("min_k_plus_plus")),
            ("Min-K%++", Some("min_k_plus_plus")),
            ("mink++(k=0.1)", Some("min_k_plus_plus")),
            ("min-k", Some("min_k")),
            ("MIN_K%", Some("min_k")),
            ("Loss", Some("loss")),
            ("neighbour", Some("neighbor")),
            ("ReCaLL", Some("recall")),
            ("con-recall", Some("con_recall")),
            ("dcpdd", Some("dc_pdd")),
            ("reference", Some("ref")),
            ("case", Some("lowercase")),
            ("lower", Some("lowercase")),
            ("nope", None),
            ("", None),
            ("++", Some("min_k_plus_plus")),
        ] {
            let known: Vec<String> = MethodName::VARIANTS.iter().map(ToString::to_string).collect();
            assert_eq!(similar(name, &known), meant, "{name}");
            let fault = MethodName::named(name).unwrap_err();
            let suggestion = meant.map(|meant| format!(" (did you mean `{meant}`?), known are loss, "));
            assert!(fault.detail.contains(&suggestion.unwrap_or("`, known are loss, ".to_owned())), "{}", fault.detail);
        }
    }
}
