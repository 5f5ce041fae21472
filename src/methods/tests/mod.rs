//! Tests of the methods as a whole.

mod properties;
mod requests;
mod worked_examples;

use super::*;
use crate::token_stats::TokenStats;

/// Tokens with the given log-probabilities, and moments that no likelihood method reads.
fn tokens(lps: &[f64]) -> Vec<TokenStats> {
    lps.iter().map(|&lp| TokenStats { lp, mu: f64::NAN, var: f64::NAN, max_lp: f64::NAN }).collect()
}

/// A text of these tokens that compresses to 51 bytes.
fn text(tokens: &[TokenStats]) -> TextStats<'_> {
    TextStats { tokens, zlib_bytes: 51 }
}

fn loss() -> Method {
    Method::plain(MethodName::Loss)
}

fn zlib() -> Method {
    Method::plain(MethodName::Zlib)
}

fn min_k(k: f64) -> Method {
    Method { base: Base::MinK { k: fraction(k) }, ..loss() }
}

fn min_k_plus_plus(k: f64) -> Method {
    Method { base: Base::MinKPlusPlus { k: fraction(k) }, ..loss() }
}

fn fraction(value: f64) -> Fraction {
    Fraction::new(value).expect("a share in (0, 1]")
}

fn decayed(method: Method, decay: Decay, alpha: f64) -> Method {
    let pdr = Pdr::new(decay, alpha, false).expect("an alpha in range");
    Method { pdr: Some(pdr), ..method }
}

fn normalized(method: Method) -> Method {
    Method { pdr: method.pdr.and_then(|pdr| Pdr::new(pdr.decay(), pdr.alpha(), true)), ..method }
}

fn truncated(method: Method, share: f64) -> Method {
    Method { truncate: Some(fraction(share)), ..method }
}

#[track_caller]
fn assert_close(actual: f64, expected: f64) {
    let error = (actual - expected).abs();
    assert!(error <= 1e-9 * expected.abs().max(1.0), "{actual} is not {expected}: off by {error}");
}
