//! What holds for every text, and the texts that have no score.

use super::*;
use proptest::prelude::*;

fn any_tokens() -> impl Strategy<Value = Vec<TokenStats>> {
    let token = (-40.0..=0.0, -10.0..=0.0, 0.0..20.0, -5.0..=0.0).prop_map(|(lp, mu, var, max_lp)| TokenStats {
        lp,
        mu,
        var,
        max_lp,
    });
    prop::collection::vec(token, 1..80)
}

fn any_base() -> impl Strategy<Value = Method> {
    let share = || (1e-3..=1.0).prop_map(fraction);
    let base = prop_oneof![
        Just(Base::Loss),
        Just(Base::Zlib),
        share().prop_map(|k| Base::MinK { k }),
        share().prop_map(|k| Base::MinKPlusPlus { k }),
    ];
    (base, prop::option::of(share())).prop_map(|(base, truncate)| Method { base, truncate, pdr: None })
}

fn any_pdr() -> impl Strategy<Value = Pdr> {
    let decay = prop::sample::select(Decay::ALL.to_vec());
    (decay, 1e-6..=1.0, any::<bool>())
        .prop_map(|(decay, alpha, normalize)| Pdr::new(decay, alpha, normalize).expect("an alpha in range"))
}

fn any_method() -> impl Strategy<Value = Method> {
    (any_base(), prop::option::of(any_pdr())).prop_map(|(base, pdr)| Method { pdr, ..base })
}

proptest! {
    #[test]
    fn alpha_zero_is_the_base_bit_for_bit(
        base in any_base(),
        tokens in any_tokens(),
        decay in prop::sample::select(vec![Decay::Linear, Decay::Exponential]),
        normalize in any::<bool>(),
    ) {
        let text = text(&tokens);
        let pdr = Pdr::new(decay, 0.0, normalize);
        let decayed = Method { pdr, ..base.clone() };
        let bits = |method| score(method, &text).map(f64::to_bits);
        prop_assert_eq!(bits(&decayed), bits(&base));
        prop_assert_eq!(decayed.baseline(), Some(base));
    }

    #[test]
    fn contributions_sum_to_the_score(method in any_method(), tokens in any_tokens()) {
        let text = text(&tokens);
        match (score(&method, &text), contributions(&method, &text)) {
            (Ok(score), Ok(contributions)) => {
                prop_assert_eq!(contributions.len(), tokens.len());
                let magnitude: f64 = contributions.iter().map(|c| c.abs()).sum();
                let error = (contributions.iter().sum::<f64>() - score).abs();
                prop_assert!(error <= 1e-12 * (1.0 + magnitude), "off by {}", error);
            }
            (score, contributions) => prop_assert_eq!(score.err(), contributions.err()),
        }
    }

    #[test]
    fn a_score_is_finite_or_an_error(
        method in any_method(),
        raw in prop::collection::vec(prop::array::uniform4(prop::num::f64::ANY), 0..20),
        zlib_bytes in 0_usize..100,
    ) {
        let tokens: Vec<TokenStats> = raw
            .into_iter()
            .map(|[lp, mu, var, max_lp]| TokenStats { lp, mu, var, max_lp })
            .collect();
        let text = TextStats { tokens: &tokens, zlib_bytes };
        if let Ok(score) = score(&method, &text) {
            prop_assert!(score.is_finite());
        }
        if let Ok(contributions) = contributions(&method, &text) {
            prop_assert!(contributions.iter().all(|c| c.is_finite()));
        }
    }

    #[test]
    fn different_methods_have_different_labels(a in any_method(), b in any_method()) {
        prop_assert_eq!(a == b, a.label() == b.label());
    }

    #[test]
    fn a_shorter_truncation_is_scoring_the_shorter_text(
        base in any_base(),
        pdr in prop::option::of(any_pdr()),
        tokens in any_tokens(),
        share in (1e-3..=1.0).prop_map(fraction),
    ) {
        let whole = Method { truncate: None, pdr, ..base };
        let cut = Method { truncate: Some(share), ..whole.clone() };
        let first = &tokens[..share.of(tokens.len())];
        prop_assert_eq!(
            score(&cut, &text(&tokens)),
            score(&whole, &text(first))
        );
    }
}

#[test]
fn contributions_of_tokens_left_out_are_zero() {
    let tokens = tokens(&[-1.0, -6.0, -2.0, -5.0, -9.0]);
    let text = text(&tokens);
    let method = decayed(truncated(min_k(0.5), 0.8), Decay::Linear, 1.0);
    let contributions = contributions(&method, &text).expect("contributions");
    assert_eq!(contributions, [0.0, -2.0, 0.0, 0.0, 0.0]);
    assert!(contributions.iter().all(|c| *c != 0.0 || c.is_sign_positive()));
}

#[test]
fn a_text_without_scored_tokens_is_too_short() {
    let text = text(&[]);
    for method in default_methods() {
        let method = truncated(method.method, 0.5);
        assert_eq!(score(&method, &text), Err(ScoreError::TooShort));
        assert_eq!(contributions(&method, &text), Err(ScoreError::TooShort));
    }
}

#[test]
fn a_single_token_weighs_one() {
    let tokens = tokens(&[-3.0]);
    let text = text(&tokens);
    for decay in Decay::ALL {
        let method = normalized(decayed(min_k(0.2), decay, 1.0));
        assert_eq!(score(&method, &text), Ok(-3.0));
    }
}

#[test]
fn selecting_only_the_last_token_can_leave_no_weight() {
    let tokens = tokens(&[-1.0, -1.0, -9.0]);
    let text = text(&tokens);
    let method = decayed(min_k(0.2), Decay::Linear, 1.0);
    assert_eq!(score(&method, &text), Ok(0.0));
    assert_eq!(score(&normalized(method), &text), Err(ScoreError::ZeroWeight));
}

#[test]
fn no_bytes_are_no_denominator() {
    let tokens = tokens(&[-1.0]);
    let text = TextStats { zlib_bytes: 0, ..text(&tokens) };
    assert_eq!(score(&zlib(), &text), Err(ScoreError::ZeroDenominator));
}

#[test]
fn a_value_that_is_not_finite_does_not_stay_unselected() {
    for bad in [f64::NAN, f64::INFINITY, f64::NEG_INFINITY] {
        let tokens = tokens(&[-1.0, -2.0, -3.0, bad]);
        let text = text(&tokens);
        for method in [loss(), zlib(), min_k(0.3), min_k_plus_plus(0.3)] {
            assert_eq!(score(&method, &text), Err(ScoreError::NonFinite));
        }
        // Truncated away, it does no harm.
        assert_eq!(score(&truncated(loss(), 0.5), &text), Ok(-1.5));
    }
}

#[test]
fn an_infinite_variance_is_no_standardisation() {
    let mut tokens = tokens(&[-1.0]);
    tokens[0].mu = -1.0;
    tokens[0].var = f64::INFINITY;
    let text = text(&tokens);
    assert_eq!(score(&min_k_plus_plus(0.2), &text), Err(ScoreError::NonFinite));
}
