//! What scoring and audits ask of a request beyond its types. All faults are gathered; none hides another.

use super::ApiState;
use super::problem::{PointedFault, Problem};
use crate::methods::{Base, LabelledMethod, MethodRequest, Scope, default_methods, resolve};
use crate::scorer::{Entry, RegistryError};
use std::collections::HashMap;
use std::sync::Arc;

/// The most faults that are listed; the rest is counted.
const MAX_LISTED: usize = 100;

/// The faults found so far.
#[derive(Default)]
pub struct Faults {
    listed: Vec<PointedFault>,
    total: usize,
}

impl Faults {
    /// Notes a fault.
    pub fn push(&mut self, pointer: impl Into<String>, detail: impl Into<String>) {
        self.keep(PointedFault { pointer: pointer.into(), detail: detail.into() });
    }

    fn keep(&mut self, fault: PointedFault) {
        self.total += 1;
        if self.listed.len() < MAX_LISTED {
            self.listed.push(fault);
        }
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.total == 0
    }

    /// Nothing, where there is no fault.
    ///
    /// # Errors
    /// All faults as one problem.
    pub fn finish(self) -> Result<(), Problem> {
        if self.total == 0 { Ok(()) } else { Err(Problem::invalid(self.listed, self.total)) }
    }
}

/// The model of a request. That it names none where it must is a fault among others, and then there is no model.
///
/// # Errors
/// Where there is no model of that name.
pub fn model(state: &ApiState, id: Option<&str>, faults: &mut Faults) -> Result<Option<Arc<Entry>>, Problem> {
    match state.scorer.registry().find(id) {
        Ok(model) => Ok(Some(model)),
        Err(error @ RegistryError::NoDefault { .. }) => {
            faults.push("/model", error.to_string());
            Ok(None)
        }
        Err(error) => Err(error.into()),
    }
}

/// The methods of a request, or the default ones.
pub fn methods(requested: Option<&[MethodRequest]>, scope: &Scope, faults: &mut Faults) -> Arc<[LabelledMethod]> {
    let Some(requested) = requested else { return default_methods().into() };
    let found = resolve(requested, scope).unwrap_or_else(|found| {
        found.into_iter().for_each(|fault| faults.keep(fault.into()));
        Vec::new()
    });
    found.into()
}

/// What the methods ask of the texts, which stand at `at` in the body: neighbours where nothing makes them, and that no
/// text that is put before others is itself to be scored.
pub fn texts<'a>(
    at: &str,
    texts: impl Iterator<Item = (&'a str, Option<&'a [String]>)> + Clone,
    methods: &[LabelledMethod],
    faults: &mut Faults,
) {
    let needs_neighbors = methods.iter().any(|m| matches!(m.method.base, Base::Neighbor { generator: None }));
    let mut places: HashMap<&str, usize> = HashMap::new();
    for (index, (text, neighbors)) in texts.enumerate() {
        places.entry(text).or_insert(index);
        match neighbors {
            Some([]) => faults.push(format!("{at}/{index}/neighbors"), "the list of neighbours is empty"),
            None if needs_neighbors => {
                let detail = "the method `neighbor` has no generator, and the text comes without neighbours";
                faults.push(format!("{at}/{index}/neighbors"), detail);
            }
            _ => {}
        }
    }
    for method in methods {
        for (field, prefix) in method.texts_before() {
            for (index, text) in prefix.as_slice().iter().enumerate() {
                if let Some(place) = places.get(text.as_str()) {
                    let detail =
                        format!("the text is also scored, as {at}/{place}: what is put before it would hold it");
                    faults.push(format!("/methods/{}/{field}/{index}", method.place), detail);
                }
            }
        }
    }
}
