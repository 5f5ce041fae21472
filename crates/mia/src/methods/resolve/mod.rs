//! From what a client asked for to methods that can be scored, or to everything that is wrong with it.

mod entry;
mod preset;

use super::access::Access;
use super::fault::{Fault, Faults};
use super::grid::{Grid, MAX_METHODS};
use super::labelled::{LabelledMethod, RequestOrigin};
use super::method::Method;
use super::request::{MethodObject, MethodRequest};
use super::scope::Scope;
use super::value::ParameterValue;
use entry::RequestEntry;
use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::sync::Arc;

/// Maximum size of all prefixes of a request, in bytes: the answer repeats them with every method.
const MAX_PREFIX_BYTES: usize = 16 << 20;

/// The longest label that a client may give, in Unicode code points. One made from parameters is as long as they are.
pub const MAX_LABEL_CHARS: usize = 200;

/// The labels in use, and the place of the entry that uses each.
type Labels = HashMap<Arc<str>, usize>;

/// The methods of a request, in its order, each under its own label. A list of values for `k`, `truncate` or `alpha` makes a method
/// for each of them, a preset as many as it has.
///
/// # Errors
///
/// Every fault of every method: an unknown name, a parameter out of range, missing or on a method that takes
/// none, a label that is empty, too long or already taken; an empty list, or one of more than [`MAX_METHODS`].
pub fn resolve(requests: &[MethodRequest], scope: &Scope) -> Result<Vec<LabelledMethod>, Vec<Fault>> {
    check_count(requests)?;
    let (mut faults, mut labels, mut methods) = (Faults::default(), Labels::default(), Vec::new());
    for (place, request) in requests.iter().enumerate() {
        resolve_entry(place, request, scope, &mut methods, &mut labels, &mut faults);
    }
    check_prefixes(&methods, &mut faults);
    check_access(&methods, scope, &mut faults);
    check_tuning(&methods, scope, &mut faults);
    // A preset without its needs, or a grid of presets, may still come to more than were counted.
    if faults.is_empty() && methods.len() > MAX_METHODS {
        faults.push(too_many(methods.len()));
    }
    if faults.is_empty() { Ok(methods) } else { Err(faults.into_vec()) }
}

/// Adds the methods of one entry to those before it.
fn resolve_entry(
    place: usize,
    request: &MethodRequest,
    scope: &Scope,
    methods: &mut Vec<LabelledMethod>,
    labels: &mut Labels,
    faults: &mut Faults,
) {
    let named;
    let (object, name_alone) = match request {
        MethodRequest::Name(name) => {
            named = MethodObject { name: Some(name.clone()), ..MethodObject::default() };
            (&named, true)
        }
        MethodRequest::Object(object) => (&**object, false),
    };
    let pointer = format!("/{place}");
    let resolved = RequestEntry::new(object, &pointer, name_alone, Some(scope)).methods(faults);
    let label_pointer = if object.label.is_some() { format!("{pointer}/label") } else { pointer };
    if let Some(label) = &object.label {
        let chars = label.chars().count();
        if !(1..=MAX_LABEL_CHARS).contains(&chars) {
            let detail = format!("the label has {chars} characters, outside 1 to {MAX_LABEL_CHARS}");
            faults.push(Fault::new(label_pointer.as_str(), detail));
        }
        // Its label is taken even if there is no method: another method of that label is a fault as well.
        if resolved.is_empty() {
            faults.keep(take_label(labels, label.as_str().into(), place, &label_pointer));
        }
    }
    let origin = RequestOrigin { place, preset: object.preset.is_some() };
    for (label, method) in resolved {
        // A preset and the list around it may share methods: each is there once.
        let shared = |known: &LabelledMethod| {
            let from_preset = origin.preset || known.origin.is_some_and(|origin| origin.preset);
            from_preset && *known.label == *label && known.method == method
        };
        if !methods.iter().any(shared) {
            let label: Arc<str> = label.into();
            faults.keep(take_label(labels, Arc::clone(&label), place, &label_pointer));
            methods.push(LabelledMethod { label, method, origin: Some(origin) });
        }
    }
}

/// Takes a label for the entry at `place`; each is used once.
fn take_label(labels: &mut Labels, label: Arc<str>, place: usize, pointer: &str) -> Result<(), Fault> {
    match labels.entry(label) {
        Entry::Vacant(free) => {
            free.insert(place);
            Ok(())
        }
        Entry::Occupied(taken) => {
            let (label, first) = (taken.key(), *taken.get());
            let user =
                if first == place { "another of the grid".to_owned() } else { format!("method {first} (from 0)") };
            let detail = format!("the label `{label}` is already that of {user}: every label is used once");
            Err(Fault::new(pointer, detail))
        }
    }
}

/// Counts before any method is made: a grid may have any size.
fn check_count(requests: &[MethodRequest]) -> Result<(), Vec<Fault>> {
    if requests.is_empty() {
        return Err(vec![Fault::new("", "the list of methods is empty: it takes at least one")]);
    }
    let counts = requests.iter().map(|request| match request {
        MethodRequest::Name(_) => 1,
        MethodRequest::Object(object) => grid_size(object),
    });
    let total = counts.clone().fold(0, usize::saturating_add);
    if total <= MAX_METHODS {
        return Ok(());
    }
    let grids: Vec<Fault> = counts
        .enumerate()
        .filter(|(_, count)| *count > 1)
        .map(|(place, count)| {
            let detail = format!(
                "the grid expands to {count} methods, which makes {total} in all; a request takes at most {MAX_METHODS}"
            );
            Fault::new(format!("/{place}"), detail)
        })
        .collect();
    Err(if grids.is_empty() { vec![too_many(total)] } else { grids })
}

/// Returns the number of methods that the lists of an entry expand to.
fn grid_size(object: &MethodObject) -> usize {
    let parameters = object.parameters.values().filter_map(|value| match value {
        ParameterValue::Grid(grid) => Some(grid),
        _ => None,
    });
    let alpha = object.pdr.as_ref().and_then(|pdr| pdr.alpha.as_ref());
    // An empty list is a fault of its own, and no reason to ignore the length of another one.
    parameters.chain(&object.truncate).chain(alpha).map(|grid: &Grid| grid.len().max(1)).fold(1, usize::saturating_mul)
}

/// JSON pointer to the entry that asks for a method.
fn entry_pointer(method: &LabelledMethod) -> String {
    method.origin.map_or_else(String::new, |origin| format!("/{}", origin.place))
}

/// Refuses methods for which the model gives too little, and names the models that give enough.
fn check_access(methods: &[LabelledMethod], scope: &Scope, faults: &mut Faults) {
    let lacking: Vec<(Access, &[&str])> = scope.lacking().collect();
    for labelled in methods {
        let lacks = |(access, _): &&(Access, &[&str])| labelled.method.needs(*access);
        let Some((access, without)) = lacking.iter().find(lacks) else { continue };
        let others = scope.models.iter().filter(|id| !without.contains(id));
        let others = others.copied().collect::<Vec<_>>().join(", ");
        let others =
            if others.is_empty() { "no configured model does".to_owned() } else { format!("these do: {others}") };
        let detail = format!("`{}` needs {}, and {others}", labelled.label, scope.lacks(*access));
        faults.push(Fault::new(entry_pointer(labelled), detail));
    }
}

/// Refuses methods that tune the model where no adapter of it can be tuned.
fn check_tuning(methods: &[LabelledMethod], scope: &Scope, faults: &mut Faults) {
    let (Some(model), Some(untunable)) = (scope.model, scope.untunable) else { return };
    for labelled in methods.iter().filter(|labelled| labelled.method.split().is_some()) {
        let detail = format!("`{}` tunes model `{model}`, {untunable}", labelled.label);
        faults.push(Fault::new(entry_pointer(labelled), detail));
    }
}

fn too_many(total: usize) -> Fault {
    Fault::new("", format!("there are {total} methods; a request takes at most {MAX_METHODS}"))
}

fn check_prefixes(methods: &[LabelledMethod], faults: &mut Faults) {
    let size = |method: &Method| method.prefixes().iter().map(|(_, texts)| texts.bytes()).sum::<usize>();
    let bytes = methods.iter().map(|method| size(&method.method)).fold(0, usize::saturating_add);
    if bytes > MAX_PREFIX_BYTES {
        let detail = format!(
            "the prefixes have {bytes} bytes, counted for every method that a grid makes; the limit is {MAX_PREFIX_BYTES}"
        );
        faults.push(Fault::new("", detail));
    }
}
