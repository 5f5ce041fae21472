//! Tests of the methods as a whole.

mod auxiliary_passes;
mod labels;
mod presets;
mod properties;
mod requests;
mod stored;
mod tuned;
mod values;
mod worked_examples;

use super::con_recall::ConRecall;
use super::dc_pdd::DcPdd;
use super::ez::{Ez, WithoutLosses};
use super::gap_k::GapK;
use super::loss::Loss;
use super::lowercase::Lowercase;
use super::max_k::MaxK;
use super::min_k::MinK;
use super::min_k_plus_plus::MinKPlusPlus;
use super::neighbor::Neighbor;
use super::pac::Pac;
use super::recall::{Align, Recall};
use super::surp::Surp;
use super::wbc::Wbc;
use super::zlib::Zlib;
use super::*;
use crate::TokenStats;
use serde_json::Value;

/// Log-probabilities of the ten tokens of most examples.
const LPS: [f64; 10] = [-2.3, -0.7, -5.1, -0.05, -1.9, -3.4, -0.3, -6.2, -0.9, -1.1];

/// Tokens with the given log-probabilities, and moments that no likelihood method reads.
fn tokens(lps: &[f64]) -> Vec<TokenStats> {
    lps.iter().map(|&lp| TokenStats { lp, mu: f64::NAN, var: f64::NAN, max_lp: f64::NAN }).collect()
}

/// A text of these tokens that compresses to 51 bytes, without auxiliary passes.
fn text(tokens: &[TokenStats]) -> TextStats<'_> {
    TextStats {
        tokens,
        ids: &[],
        zlib_bytes: &|| 51,
        passes: &[],
        token_counts: &[],
        context: WeightContext { text: "The quick brown fox jumps over the lazy dog.", dataset: &[] },
    }
}

fn loss() -> Method {
    Method::new(Loss)
}

fn zlib() -> Method {
    Method::new(Zlib)
}

fn min_k(k: f64) -> Method {
    Method::new(MinK { k: fraction(k) })
}

fn min_k_plus_plus(k: f64) -> Method {
    Method::new(MinKPlusPlus { k: fraction(k) })
}

fn fraction(value: f64) -> Fraction {
    Fraction::new(value).expect("a share in (0, 1]")
}

fn curve(family: Decay, alpha: f64) -> Curve {
    Curve::new(family, alpha).expect("an alpha in range")
}

fn weighted(method: Method, weighting: Weighting) -> Method {
    Method { pdr: Some(Pdr::new(weighting)), ..method }
}

fn decayed(method: Method, family: Decay, alpha: f64) -> Method {
    weighted(method, Weighting::Decay(curve(family, alpha)))
}

fn normalized(method: Method) -> Method {
    Method { pdr: method.pdr.map(|pdr| Pdr { normalize: true, ..pdr }), ..method }
}

fn before(method: Method) -> Method {
    Method { pdr: method.pdr.map(|pdr| Pdr { select: Select::Before, ..pdr }), ..method }
}

fn truncated(method: Method, share: f64) -> Method {
    Method { truncate: Some(fraction(share)), ..method }
}

#[track_caller]
fn assert_close(actual: f64, expected: f64) {
    let error = (actual - expected).abs();
    assert!(error <= 1e-9 * expected.abs().max(1.0), "{actual} is not {expected}: off by {error}");
}

fn parse(methods: Value) -> Vec<MethodRequest> {
    serde_json::from_value(methods).expect("well-typed methods")
}

fn scope() -> Scope<'static> {
    let models = vec!["small", "bert", "small:tuned"];
    Scope { models, model: Some("small"), reference: Some("small"), token_counts: vec!["c4"], ..Scope::default() }
}

fn resolved(methods: Value) -> Vec<LabelledMethod> {
    resolve(&parse(methods), &scope()).expect("valid methods")
}

/// The faults of a list of methods.
#[track_caller]
fn faults(methods: Value, scope: &Scope) -> Vec<Fault> {
    resolve(&parse(methods), scope).expect_err("faults")
}

fn pointers_of(faults: &[Fault]) -> Vec<&str> {
    faults.iter().map(|fault| &*fault.pointer).collect()
}

/// The labels of the methods.
fn labels_of(methods: &[LabelledMethod]) -> Vec<&str> {
    methods.iter().map(|method| &*method.label).collect()
}

/// Pointers of the faults, each detail checked to contain the given words.
#[track_caller]
fn assert_faults(methods: Value, expected: &[(&str, &[&str])]) {
    let faults = faults(methods, &scope());
    let expected_pointers: Vec<&str> = expected.iter().map(|(pointer, _)| *pointer).collect();
    assert_eq!(pointers_of(&faults), expected_pointers, "{faults:#?}");
    for (fault, (_, words)) in faults.iter().zip(expected) {
        for word in *words {
            assert!(fault.detail.contains(word), "{word} is not in {fault:?}");
        }
    }
}
