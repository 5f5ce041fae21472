//! The scores of a control model by which two lists of texts are compared.

use super::labelled::LabelledMethod;
use super::method::Method;
use super::range::Fraction;
use super::registry::BaseMethod;
use super::{loss::Loss, min_k::MinK, min_k_plus_plus::MinKPlusPlus};

/// In the order of `TextFacts::control`.
#[must_use]
pub fn control_measures() -> [LabelledMethod; 4] {
    let k = Fraction::FIFTH;
    let bases: [BaseMethod; 4] =
        [Loss.into(), MinKPlusPlus { k }.into(), MinK { k: Fraction::TWENTIETH }.into(), MinK { k }.into()];
    bases.map(|base| LabelledMethod::from(Method::new(base)))
}
