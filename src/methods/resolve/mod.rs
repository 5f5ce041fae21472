//! From what a client asked for to methods that can be scored, or to everything that is wrong with it.

mod base;
mod pdr;
mod preset;

use super::fault::Fault;
use super::grid::Grid;
use super::labelled::LabelledMethod;
use super::method::Method;
use super::name::MethodName;
use super::parameters;
use super::presets::PresetName;
use super::range::{Fraction, Range, short};
use super::request::{MethodObject, MethodRequest};
use super::scope::Scope;
use std::collections::HashMap;
use std::fmt::Display;

/// The longest label, in Unicode code points.
pub const MAX_LABEL_CHARS: usize = 200;

/// The most methods of a request, sweeps and presets expanded.
pub const MAX_METHODS: usize = 256;

/// The most bytes of the texts that methods put before those to score: the answer repeats them with every method.
const MAX_BYTES_BEFORE: usize = 16 << 20;

/// How much of an unknown name a fault repeats, in Unicode code points.
const MAX_QUOTED_CHARS: usize = 60;

/// The methods of a request, in its order, each under its own label. A list of values for `k` or `alpha` makes a method
/// for each of them, a preset as many as it has.
///
/// # Errors
///
/// Every fault of every method: an unknown name, a parameter out of range, missing or on a method that takes
/// none, a label that is empty, too long or already taken; an empty list, or one of more than [`MAX_METHODS`].
pub fn resolve(requests: &[MethodRequest], scope: &Scope) -> Result<Vec<LabelledMethod>, Vec<Fault>> {
    check_count(requests)?;
    let mut faults = Faults(Vec::new());
    let mut methods = Vec::with_capacity(requests.len());
    let mut taken = HashMap::new();
    for (place, request) in requests.iter().enumerate() {
        let at = format!("/{place}");
        let named;
        let (object, name_at) = match request {
            MethodRequest::Name(name) => {
                named = MethodObject { name: Some(name.clone()), ..MethodObject::default() };
                (&named, at.clone())
            }
            MethodRequest::Object(object) => (&**object, format!("{at}/name")),
        };
        let place_of_label = if object.label.is_some() { format!("{at}/label") } else { at.clone() };
        let made = One { object, at: &at, name_at: &name_at, scope }.methods(&mut faults);
        if let Some(label) = &object.label {
            faults.keep(check_length(label, &place_of_label));
        }
        if made.is_empty()
            && let Some(label) = &object.label
        {
            faults.keep(take_label(label, place, &place_of_label, &mut taken));
        }
        let of_preset = object.preset.is_some();
        for (label, method) in made {
            // A preset and the list around it may share methods: each is there once.
            let shared = |known: &LabelledMethod| {
                (of_preset || known.of_preset) && *known.label == *label && known.method == method
            };
            if methods.iter().any(shared) {
                continue;
            }
            faults.keep(take_label(&label, place, &place_of_label, &mut taken));
            methods.push(LabelledMethod { label: label.into(), method, place, of_preset });
        }
    }
    let repeated = |m: &LabelledMethod| m.texts_before().iter().map(|(_, texts)| texts.bytes()).sum::<usize>();
    let bytes = methods.iter().map(repeated).fold(0, usize::saturating_add);
    if bytes > MAX_BYTES_BEFORE {
        let detail = format!(
            "the texts before those to score have {bytes} bytes, counted for every method that a grid makes; the limit is \
             {MAX_BYTES_BEFORE}"
        );
        faults.0.push(Fault::new("", detail));
    }
    // A preset without its needs, or a grid of presets, may still come to more than were counted.
    if faults.0.is_empty() && methods.len() > MAX_METHODS {
        faults.0.push(too_many("", methods.len()));
    }
    if faults.0.is_empty() { Ok(methods) } else { Err(faults.0) }
}

/// Counts before anything is made: a grid may have any size.
fn check_count(requests: &[MethodRequest]) -> Result<(), Vec<Fault>> {
    if requests.is_empty() {
        return Err(vec![Fault::new("", "the list of methods is empty: it takes at least one")]);
    }
    let counts = requests.iter().map(|request| match request {
        MethodRequest::Name(_) => 1,
        MethodRequest::Object(object) => {
            // An empty list is a fault of its own, and no reason to look at the other one whole.
            let of = |grid: Option<&Grid>| grid.map_or(1, |grid| grid.len().max(1));
            of(object.k.as_ref()).saturating_mul(of(object.pdr.as_ref().and_then(|pdr| pdr.alpha.as_ref())))
        }
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
    Err(if grids.is_empty() { vec![too_many("", total)] } else { grids })
}

fn too_many(at: &str, total: usize) -> Fault {
    Fault::new(at, format!("there are {total} methods; a request takes at most {MAX_METHODS}"))
}

/// The faults found so far.
struct Faults(Vec<Fault>);

impl Faults {
    /// What was checked, or `None` and its fault kept.
    fn keep<T>(&mut self, checked: Result<T, Fault>) -> Option<T> {
        checked.map_err(|fault| self.0.push(fault)).ok()
    }
}

/// One entry of the list, and where it is.
struct One<'a> {
    object: &'a MethodObject,
    /// Pointer to the entry.
    at: &'a str,
    /// Pointer to its name.
    name_at: &'a str,
    scope: &'a Scope<'a>,
}

impl One<'_> {
    /// Its methods with their labels; none where there is a fault.
    fn methods(&self, faults: &mut Faults) -> Vec<(String, Method)> {
        if self.object.preset.is_some() {
            let methods = self.preset(faults).unwrap_or_default();
            return methods.into_iter().map(|method| (method.label(), method)).collect();
        }
        self.swept(faults).unwrap_or_default()
    }

    /// Everything is checked before the first `?`, so that no fault hides another.
    fn swept(&self, faults: &mut Faults) -> Option<Vec<(String, Method)>> {
        let object = self.object;
        if object.length.is_some() {
            faults.keep::<()>(Err(self.fault("length", "`length` belongs to a preset")));
        }
        let name = faults.keep(self.name());
        let bases = name.and_then(|name| self.bases(name, faults));
        let truncate = object.truncate.map(|share| self.fraction("truncate", "", share)).transpose();
        let truncate = faults.keep(truncate);
        let weights = self.weights(name, faults);
        let (bases, truncate, weights) = (bases?, truncate?, weights?);
        let swept = |count: usize, part: String| if count > 1 { Some(part) } else { None };
        let mut methods = Vec::with_capacity(bases.len() * weights.len());
        for base in &bases {
            for &pdr in &weights {
                let method = Method { base: base.clone(), truncate, pdr };
                let label = match &object.label {
                    None => method.label(),
                    Some(label) => {
                        let k = base.k().and_then(|k| swept(bases.len(), format!("k={k}")));
                        let curve = pdr.and_then(|pdr| pdr.weighting.curve());
                        let alpha =
                            curve.and_then(|curve| swept(weights.len(), format!("alpha={}", short(curve.alpha()))));
                        with_parts(label, k.into_iter().chain(alpha).collect())
                    }
                };
                methods.push((label, method));
            }
        }
        Some(methods)
    }

    fn name(&self) -> Result<MethodName, Fault> {
        let Some(name) = &self.object.name else {
            return Err(Fault::new(self.at, "missing field `name`, or `preset`"));
        };
        if PresetName::from_name(name).is_some() {
            let detail = format!("`{name}` is a preset, which is asked for as {{ \"preset\": \"{name}\", ... }}");
            return Err(Fault::new(self.name_at, detail));
        }
        MethodName::from_name(name).ok_or_else(|| unknown("method", name, &MethodName::ALL, self.name_at))
    }

    fn fault(&self, field: &str, detail: impl Into<String>) -> Fault {
        // What a plain name lacks is no field of it.
        let at = if self.at == self.name_at { self.at.to_owned() } else { format!("{}/{field}", self.at) };
        Fault::new(at, detail)
    }

    /// A share at the pointer of the field and what follows it.
    fn fraction(&self, field: &str, behind: &str, value: f64) -> Result<Fraction, Fault> {
        Fraction::new(value).ok_or_else(|| self.outside(field, behind, value, Fraction::RANGE))
    }

    fn outside(&self, field: &str, behind: &str, value: impl std::fmt::Debug, range: Range) -> Fault {
        let name = field.rsplit('/').next().unwrap_or(field);
        Fault::new(format!("{}/{field}{behind}", self.at), format!("{name} is {value:?}, outside {range}"))
    }

    /// A number that must lie in a range, or its default.
    fn number(&self, field: &str, value: Option<f64>, number: parameters::Number) -> Result<f64, Fault> {
        let value = value.unwrap_or(number.default);
        if number.range.contains(value) { Ok(value) } else { Err(self.outside(field, "", value, number.range)) }
    }

    /// A whole number that must lie in a range, or its default.
    fn count(&self, field: &str, value: Option<usize>, number: parameters::Number) -> Result<usize, Fault> {
        let value = value.unwrap_or(number.default as usize);
        if number.range.contains(value as f64) { Ok(value) } else { Err(self.outside(field, "", value, number.range)) }
    }

    /// The id of a model, which must be one of those there are.
    fn model(&self, field: &str, id: &str) -> Result<std::sync::Arc<str>, Fault> {
        if self.scope.models.contains(&id) {
            Ok(id.into())
        } else {
            Err(unknown("model", id, &self.scope.models, &format!("{}/{field}", self.at)))
        }
    }
}

/// A label that a client gave to several methods, with what tells them apart.
fn with_parts(label: &str, parts: Vec<String>) -> String {
    if parts.is_empty() { label.to_owned() } else { format!("{label}({})", parts.join(",")) }
}

/// For labels that a client gave: one made from parameters is as long as they are.
fn check_length(label: &str, at: &str) -> Result<(), Fault> {
    let chars = label.chars().count();
    if (1..=MAX_LABEL_CHARS).contains(&chars) {
        return Ok(());
    }
    Err(Fault::new(at, format!("the label has {chars} characters, outside 1 to {MAX_LABEL_CHARS}")))
}

fn take_label(label: &str, place: usize, at: &str, taken: &mut HashMap<String, usize>) -> Result<(), Fault> {
    if let Some(&first) = taken.get(label) {
        let whose = if first == place { "another of the grid".to_owned() } else { format!("method {first} (from 0)") };
        return Err(Fault::new(
            at,
            format!("the label `{label}` is already that of {whose}: every label is used once"),
        ));
    }
    taken.insert(label.to_owned(), place);
    Ok(())
}

fn unknown<T: Display>(kind: &str, given: &str, known: &[T], at: &str) -> Fault {
    let mut quoted: String = given.chars().take(MAX_QUOTED_CHARS).collect();
    if quoted.len() < given.len() {
        quoted.push_str("...");
    }
    let known: Vec<String> = known.iter().map(T::to_string).collect();
    Fault::new(at, format!("unknown {kind} `{quoted}`, known are {}", known.join(", ")))
}
