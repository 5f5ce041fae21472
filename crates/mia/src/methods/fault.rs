//! Faults of a request's methods.

use serde::{Deserialize, Serialize};
use std::fmt::Display;
use utoipa::ToSchema;

/// Maximum length of an unknown name that a fault repeats, in Unicode code points.
const MAX_QUOTED_CHARS: usize = 60;

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
        Fault::new(pointer, format!("unknown {kind} `{quoted}`, known are {}", known.join(", ")))
    }
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
