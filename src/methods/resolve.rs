//! From what a client asked for to methods that can be scored, or to everything that is wrong with it.

use super::fault::Fault;
use super::labelled::LabelledMethod;
use super::method::{Base, Method, MethodName};
use super::range::Fraction;
use super::request::{MethodObject, MethodRequest, PdrRequest};
use super::weights::{Decay, Pdr};
use std::collections::HashMap;
use std::fmt::Display;

/// The longest label, in Unicode code points.
pub const MAX_LABEL_CHARS: usize = 200;

/// How much of an unknown name a fault repeats, in Unicode code points.
const MAX_QUOTED_CHARS: usize = 60;

/// The methods of a request, in its order, each under its own label.
///
/// # Errors
///
/// Every fault of every method: an unknown name, a parameter out of range, missing or on a method that takes
/// none, a label that is empty, too long or already taken; or an empty list.
pub fn resolve(requests: &[MethodRequest]) -> Result<Vec<LabelledMethod>, Vec<Fault>> {
    if requests.is_empty() {
        return Err(vec![Fault::new("", "the list of methods is empty: it takes at least one")]);
    }
    let mut faults = Faults(Vec::new());
    let mut methods = Vec::with_capacity(requests.len());
    let mut taken = HashMap::new();
    for (index, request) in requests.iter().enumerate() {
        let at = format!("/{index}");
        let (method, given_label) = match request {
            MethodRequest::Name(name) => (faults.keep(known_method(name, &at)), None),
            MethodRequest::Object(object) => {
                let method = with_parameters(object, &at, &mut faults);
                (method, object.label.as_deref())
            }
        };
        let label_at = match given_label {
            Some(_) => format!("{at}/label"),
            None => at,
        };
        // A method at fault that was given no label has none to check.
        let generated = || method.as_ref().map(Method::label);
        let Some(label) = given_label.map(str::to_owned).or_else(generated) else {
            continue;
        };
        if given_label.is_some() {
            faults.keep(check_length(&label, &label_at));
        }
        faults.keep(take_label(&label, index, &label_at, &mut taken));
        methods.extend(method.map(|method| LabelledMethod { label: label.into(), method }));
    }
    if faults.0.is_empty() { Ok(methods) } else { Err(faults.0) }
}

/// The faults found so far.
struct Faults(Vec<Fault>);

impl Faults {
    /// What was checked, or `None` and its fault kept.
    fn keep<T>(&mut self, checked: Result<T, Fault>) -> Option<T> {
        checked.map_err(|fault| self.0.push(fault)).ok()
    }
}

fn with_parameters(object: &MethodObject, at: &str, faults: &mut Faults) -> Option<Method> {
    // Everything is checked before the first `?`, so that no fault hides another.
    let plain = faults.keep(known_method(&object.name, &format!("{at}/name")));
    let base = plain.and_then(|plain| faults.keep(with_k(plain.base, object.k, at)));
    let truncate = object.truncate.map(|share| fraction("truncate", share, at)).transpose();
    let truncate = faults.keep(truncate);
    let pdr = match &object.pdr {
        Some(pdr) => decay(pdr, &format!("{at}/pdr"), faults).map(Some),
        None => Some(None),
    };
    Some(Method { base: base?, truncate: truncate?, pdr: pdr? })
}

fn known_method(name: &str, at: &str) -> Result<Method, Fault> {
    MethodName::from_name(name).map(Method::plain).ok_or_else(|| unknown("method", name, &MethodName::ALL, at))
}

fn with_k(mut base: Base, k: Option<f64>, at: &str) -> Result<Base, Fault> {
    let Some(k) = k else { return Ok(base) };
    let name = base.name();
    let chosen = base.k_mut().ok_or_else(|| {
        Fault::new(format!("{at}/k"), format!("k is {k:?}, but `{name}` uses every token and takes none"))
    })?;
    *chosen = fraction("k", k, at)?;
    Ok(base)
}

fn fraction(field: &str, value: f64, at: &str) -> Result<Fraction, Fault> {
    Fraction::new(value).ok_or_else(|| {
        Fault::new(format!("{at}/{field}"), format!("{field} is {value:?}, outside {}", Fraction::RANGE))
    })
}

fn decay(request: &PdrRequest, at: &str, faults: &mut Faults) -> Option<Pdr> {
    let decay = faults.keep(
        Decay::from_name(&request.decay)
            .ok_or_else(|| unknown("decay", &request.decay, &Decay::ALL, &format!("{at}/decay"))),
    );
    let alpha = faults.keep(request.alpha.ok_or_else(|| {
        let range = decay.map_or(String::new(), |decay| format!(" in {}", decay.alpha_range()));
        Fault::new(format!("{at}/alpha"), format!("alpha is missing: every decay takes a number{range}"))
    }));
    let (decay, alpha) = (decay?, alpha?);
    faults.keep(Pdr::new(decay, alpha, request.normalize).ok_or_else(|| {
        Fault::new(
            format!("{at}/alpha"),
            format!("alpha is {alpha:?}, outside {} for {decay} decay", decay.alpha_range()),
        )
    }))
}

/// For labels that a client gave: one made from parameters is as long as they are.
fn check_length(label: &str, at: &str) -> Result<(), Fault> {
    let chars = label.chars().count();
    if (1..=MAX_LABEL_CHARS).contains(&chars) {
        return Ok(());
    }
    Err(Fault::new(at, format!("the label has {chars} characters, outside 1 to {MAX_LABEL_CHARS}")))
}

fn take_label(label: &str, index: usize, at: &str, taken: &mut HashMap<String, usize>) -> Result<(), Fault> {
    if let Some(first) = taken.get(label) {
        return Err(Fault::new(
            at,
            format!("the label `{label}` is already that of /{first}: every label is used once"),
        ));
    }
    taken.insert(label.to_owned(), index);
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
