//! Validation of requests for scoring and audits beyond their types. All faults are collected; none hides another.

use super::problem::{PointedFault, Problem};
use super::state::ApiState;
use crate::pool::{Declaration, FindError};
use crate::wire::Shaped;
use mia::json::BoundedList;
use mia::methods::{Fault, LabelledMethod, MAX_METHODS, MethodRequest, Scope, possible_default_methods, resolve};
use std::sync::Arc;

/// The methods of a request as they are read: a fault of type in one hides none of the others.
pub type MethodRequests = Shaped<BoundedList<Shaped<MethodRequest>, MAX_METHODS>>;

/// Maximum number of characters in a job's name.
const MAX_NAME: usize = 200;

/// Maximum number of faults listed; the rest are only counted.
const MAX_LISTED: usize = 100;

/// The faults noted so far.
#[derive(Default)]
pub struct RequestFaults {
    listed: Vec<PointedFault>,
    total: usize,
}

impl RequestFaults {
    pub fn push(&mut self, pointer: impl Into<String>, detail: impl Into<String>) {
        self.keep(PointedFault::new(pointer, detail));
    }

    pub fn keep(&mut self, fault: PointedFault) {
        self.total += 1;
        if self.listed.len() < MAX_LISTED {
            self.listed.push(fault);
        }
    }

    /// Adds faults that were found elsewhere, whose pointers are below `list`.
    pub fn extend_below(&mut self, list: &str, found: Vec<Fault>) {
        found.into_iter().for_each(|fault| self.push(format!("{list}{}", fault.pointer), fault.detail));
    }

    pub fn is_empty(&self) -> bool {
        self.total == 0
    }

    /// All faults as one problem, if there are any.
    pub fn finish(self) -> Result<(), Problem> {
        if self.total == 0 { Ok(()) } else { Err(Problem::invalid(self.listed, self.total)) }
    }
}

/// Returns the model of a request. Naming none where one is required is noted as a fault, and the result is `None`.
pub fn model(
    state: &ApiState,
    id: Option<&str>,
    faults: &mut RequestFaults,
) -> Result<Option<Arc<Declaration>>, Problem> {
    match state.scorer.pool().find(id) {
        Ok(model) => Ok(Some(model)),
        Err(error @ FindError::NoDefault { .. }) => {
            faults.push("/model", error.to_string());
            Ok(None)
        }
        Err(error) => Err(error.into()),
    }
}

/// Returns the value of the field at `at` in the body, or `None` if it is absent or a fault of its type was noted.
pub fn shaped<T>(at: &str, value: Option<Shaped<T>>, faults: &mut RequestFaults) -> Option<T> {
    let Shaped(value) = value?;
    value.map_err(|fault| faults.push(format!("{at}{}", fault.pointer), fault.detail)).ok()
}

pub fn job_name(name: Option<Shaped<String>>, faults: &mut RequestFaults) -> Option<String> {
    let name = shaped("/name", name, faults);
    let characters = name.as_ref().map(|name| name.chars().count());
    if let Some(count) = characters.filter(|count| !(1..=MAX_NAME).contains(count)) {
        faults.push("/name", format!("the name has {count} characters, outside 1 to {MAX_NAME}"));
    }
    name
}

/// The methods of a request, or the default ones.
pub fn methods(requested: Option<MethodRequests>, scope: &Scope, faults: &mut RequestFaults) -> Arc<[LabelledMethod]> {
    if requested.is_none() {
        return possible_default_methods(scope).into();
    }
    // Where the list itself is none, its fault is noted and there is nothing to resolve.
    let Some(BoundedList(requested)) = shaped("/methods", requested, faults) else { return Arc::new([]) };
    let mut malformed = Vec::new();
    let read = requested.into_iter().enumerate().map(|(place, request)| {
        shaped(&format!("/methods/{place}"), Some(request), faults).unwrap_or_else(|| {
            malformed.push(format!("/{place}"));
            // Keeps the places of the others.
            MethodRequest::Name(String::new())
        })
    });
    let requests: Vec<MethodRequest> = read.collect();
    let resolved = resolve(&requests, scope).unwrap_or_else(|resolved| {
        let new = resolved.into_iter().filter(|fault| !malformed.contains(&fault.pointer));
        new.for_each(|fault| faults.keep(fault.into()));
        Vec::new()
    });
    resolved.into()
}
