//! The method that the verdict is about. It is settled before anything is scored, so that it cannot be picked by its result.

use mia::methods::{BaseMethod, LabelledMethod, Method, MethodName, Ref, Tokenization};
use std::sync::Arc;

/// The label of the method that the verdict is about: the one that is named, by its label or, where it is listed once without
/// weights, by the name of the method. Without a name it is `ref`, else `min_k_plus_plus(k=0.2)`, else the first method.
///
/// # Errors
/// In words, where the name is that of none or of several methods.
pub fn primary(methods: &[LabelledMethod], name: Option<&str>) -> Result<Arc<str>, String> {
    let label = |method: &LabelledMethod| Arc::clone(&method.label);
    let Some(name) = name else {
        let chosen =
            methods.iter().find(|method| is_plain(method, MethodName::Ref)).or_else(|| default_method(methods));
        return chosen.or(methods.first()).map(label).ok_or_else(|| "there are no methods".to_owned());
    };
    if let Some(method) = methods.iter().find(|method| *method.label == *name) {
        return Ok(label(method));
    }
    let named: Vec<&LabelledMethod> = methods
        .iter()
        .filter(|method| method.method.name().to_string() == name && method.method.pdr.is_none())
        .collect();
    match &*named {
        [method] => Ok(label(method)),
        [] => Err(format!("`{name}` is not among the methods; {}", listed(methods))),
        _ => Err(format!("`{name}` names {} of the methods; {}", named.len(), listed(methods))),
    }
}

/// The default methods, with `ref` before them where the control is run anyway: it costs no further forward pass, and the
/// verdict is about it.
#[must_use]
pub fn with_default_primary(defaults: Vec<LabelledMethod>, control: Option<&str>) -> Vec<LabelledMethod> {
    let reference = control.map(|id| Ref { reference: id.into(), tokenization: Tokenization::default() });
    let first = reference.map(|reference| LabelledMethod::from(Method::new(BaseMethod::from(reference))));
    first.into_iter().chain(defaults).collect()
}

fn is_plain(method: &LabelledMethod, name: MethodName) -> bool {
    let Method { truncate, pdr, .. } = &method.method;
    method.method.name() == name && truncate.is_none() && pdr.is_none()
}

fn default_method(methods: &[LabelledMethod]) -> Option<&LabelledMethod> {
    let is_default =
        |base: &BaseMethod| matches!(base, BaseMethod::MinKPlusPlus(method) if method.k.get() == DEFAULT_SHARE);
    methods.iter().find(|method| is_plain(method, MethodName::MinKPlusPlus) && is_default(&method.method.base))
}

/// The share of tokens that `min_k_plus_plus` selects where it is the default.
const DEFAULT_SHARE: f64 = 0.2;

fn listed(methods: &[LabelledMethod]) -> String {
    let labels: Vec<String> = methods.iter().take(16).map(|method| format!("`{}`", method.label)).collect();
    let more = if methods.len() > labels.len() { ", ..." } else { "" };
    format!("their labels are {}{more}", labels.join(", "))
}
