//! A method under the label that its scores are reported by.

use super::auxiliary_pass::AuxiliaryPass;
use super::method::Method;
use super::pdr::{Pdr, PdrRequest};
use super::range::Fraction;
use super::registry::{BaseMethod, MethodName};
use super::schema::Parameters;
use super::scope::Scope;
use super::{
    gap_k::GapK, loss::Loss, lowercase::Lowercase, max_k::MaxK, min_k::MinK, min_k_plus_plus::MinKPlusPlus, zlib::Zlib,
};
use serde::{Serialize, Serializer};
use std::sync::Arc;
use utoipa::openapi::{RefOr, Schema};
use utoipa::{PartialSchema, ToSchema};

/// A method and its label, unique within a request.
///
/// Serialises as a request for it: every parameter, defaults included, with what a reader must know of it. Read back, it is
/// the same method, checked as a request is.
#[derive(Clone, Debug)]
pub struct LabelledMethod {
    /// The key of this method's scores.
    pub label: Arc<str>,
    pub method: Method,
    /// Where a request asks for it; `None` for a default method and for one that was stored. No part of what it is: it is
    /// neither stored nor compared.
    pub origin: Option<RequestOrigin>,
}

/// The entry of a request's list of methods that asks for a method.
#[derive(Clone, Copy, Debug)]
pub struct RequestOrigin {
    /// Place in the list, from 0.
    pub place: usize,
    pub preset: bool,
}

impl PartialEq for LabelledMethod {
    fn eq(&self, other: &LabelledMethod) -> bool {
        self.label == other.label && self.method == other.method
    }
}

impl LabelledMethod {
    /// JSON pointer, relative to the list of methods, to a field of the entry that asks for it; of a preset, to its name.
    /// Without such an entry it is the whole list.
    pub fn pointer(&self, field: &str) -> String {
        match self.origin {
            Some(RequestOrigin { place, preset: true }) => format!("/{place}/preset"),
            Some(RequestOrigin { place, preset: false }) => format!("/{place}/{field}"),
            None => String::new(),
        }
    }
}

impl From<Method> for LabelledMethod {
    /// Under the label made from name and parameters.
    fn from(method: Method) -> LabelledMethod {
        LabelledMethod { label: method.label().into(), method, origin: None }
    }
}

/// Returns the methods of a request that names none: the four that need nothing but the text, plain and then with
/// linear decay.
pub fn default_methods() -> Vec<LabelledMethod> {
    let k = Fraction::FIFTH;
    let bases: [BaseMethod; 4] = [Loss.into(), Zlib.into(), MinK { k }.into(), MinKPlusPlus { k }.into()];
    let with = |pdr: Option<Pdr>| bases.clone().map(|base| Method { pdr, ..Method::new(base) });
    with(None).into_iter().chain(with(Some(Pdr::LINEAR))).map(LabelledMethod::from).collect()
}

/// Those of [`default_methods`] that the model that is asked about gives enough for.
pub fn possible_default_methods(scope: &Scope) -> Vec<LabelledMethod> {
    let is_possible = |labelled: &LabelledMethod| scope.has_full_logits() || !labelled.method.needs_full_logits();
    default_methods().into_iter().filter(is_possible).collect()
}

/// The methods that dataset inference combines where a request names none: those that take the text, or its lower-cased form, and no
/// other model, as far as the model that is asked about gives enough for them. `surp` has no score of many texts, and `pac` takes five
/// further passes.
#[must_use]
pub fn inference_methods(scope: &Scope) -> Vec<LabelledMethod> {
    let shares = [Fraction::TENTH, Fraction::FIFTH, Fraction::TWO_FIFTHS];
    let selecting = shares
        .into_iter()
        .flat_map(|k| -> [BaseMethod; 3] { [MinK { k }.into(), MaxK { k }.into(), MinKPlusPlus { k }.into()] });
    let others: [BaseMethod; 4] =
        [Loss.into(), Zlib.into(), Lowercase.into(), GapK { k: Fraction::FIFTH, window: GapK::WINDOW }.into()];
    let methods = others.into_iter().chain(selecting).map(|base| LabelledMethod::from(Method::new(base)));
    methods.filter(|labelled| scope.has_full_logits() || !labelled.method.needs_full_logits()).collect()
}

/// The scores of a control model by which two lists of texts are compared, in the order of `TextFacts::control`.
#[must_use]
pub fn control_measures() -> [LabelledMethod; 4] {
    let k = Fraction::FIFTH;
    let bases: [BaseMethod; 4] =
        [Loss.into(), MinKPlusPlus { k }.into(), MinK { k: Fraction::TWENTIETH }.into(), MinK { k }.into()];
    bases.map(|base| LabelledMethod::from(Method::new(base)))
}

/// A method as it was understood: every parameter, defaults included.
#[derive(Serialize, ToSchema)]
struct Echo<'a> {
    /// The key of this method's scores.
    label: &'a str,
    /// Name of the method.
    name: MethodName,
    /// The parameters of this method.
    #[serde(flatten)]
    #[schema(value_type = Parameters)]
    parameters: &'a BaseMethod,
    /// First share of the scored tokens, if the rest is left out.
    #[serde(skip_serializing_if = "Option::is_none")]
    truncate: Option<Fraction>,
    /// Weights, if there are any.
    #[serde(skip_serializing_if = "Option::is_none")]
    pdr: Option<PdrRequest>,
    /// `true` where the combination goes beyond the PDR paper, else absent.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    #[schema(required = false)]
    extension: bool,
    /// Notes that a reader of the scores must know.
    #[serde(skip_serializing_if = "Option::is_none")]
    note: Option<&'static str>,
}

impl Serialize for LabelledMethod {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        Echo {
            label: &self.label,
            name: self.method.name(),
            parameters: &self.method.base,
            truncate: self.method.truncate,
            pdr: self.method.pdr.map(|pdr| pdr.to_request(self.method.selects())),
            extension: self.method.extension(),
            note: self.method.base.note(),
        }
        .serialize(serializer)
    }
}

impl PartialSchema for LabelledMethod {
    fn schema() -> RefOr<Schema> {
        Echo::schema()
    }
}

impl ToSchema for LabelledMethod {
    fn schemas(schemas: &mut Vec<(String, RefOr<Schema>)>) {
        Echo::schemas(schemas);
    }
}
/// Returns the passes that methods need beside the one over the text itself, each once.
#[must_use]
pub fn auxiliary_passes(methods: &[LabelledMethod]) -> Vec<AuxiliaryPass> {
    let mut passes = Vec::new();
    for (_, pass) in methods.iter().flat_map(|method| method.method.base.passes()) {
        if !passes.contains(&pass) {
            passes.push(pass);
        }
    }
    passes
}
