//! Properties of every text, and the texts that have no score.

use super::*;
use proptest::prelude::*;
use strum::VariantArray;

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
        Just(BaseMethod::from(Loss)),
        Just(Zlib.into()),
        share().prop_map(|k| MinK { k }.into()),
        share().prop_map(|k| MinKPlusPlus { k }.into()),
    ];
    (base, prop::option::of(share())).prop_map(|(base, truncate)| Method { base, truncate, pdr: None })
}

/// Methods that take no weights.
fn any_unweighted() -> impl Strategy<Value = Method> {
    let share = || (1e-3..=1.0).prop_map(fraction);
    prop_oneof![
        (share(), 1_usize..10).prop_map(|(k, window)| Method::new(GapK { k, window })),
        (share(), 0.1..10.0).prop_map(|(k, max_entropy)| Method::new(Surp { k, max_entropy })),
    ]
}

fn any_curve() -> impl Strategy<Value = Curve> {
    (prop::sample::select(Decay::VARIANTS.to_vec()), 1e-6..=1.0).prop_map(|(family, alpha)| curve(family, alpha))
}

fn any_pdr() -> impl Strategy<Value = Pdr> {
    let weighting = prop_oneof![
        any_curve().prop_map(Weighting::Decay),
        any_curve().prop_map(Weighting::Reverse),
        (any_curve(), any::<u64>()).prop_map(|(curve, seed)| Weighting::Random { curve, seed }),
        Just(Weighting::EntropySample),
        Just(Weighting::Slope),
    ];
    let select = prop::sample::select(vec![Select::After, Select::Before]);
    (weighting, select, any::<bool>()).prop_map(|(weighting, select, normalize)| Pdr { weighting, select, normalize })
}

fn any_method() -> impl Strategy<Value = Method> {
    let weighted = (any_base(), prop::option::of(any_pdr())).prop_map(|(base, pdr)| Method { pdr, ..base });
    prop_oneof![4 => weighted, 1 => any_unweighted()]
}

proptest! {
    #[test]
    fn alpha_zero_is_the_base_bit_for_bit(
        base in any_base(),
        tokens in any_tokens(),
        family in prop::sample::select(vec![Decay::Linear, Decay::Exponential]),
        select in prop::sample::select(vec![Select::After, Select::Before]),
        normalize in any::<bool>(),
    ) {
        let text = text(&tokens);
        let pdr = Pdr { select, normalize, ..Pdr::new(Weighting::Decay(curve(family, 0.0))) };
        let decayed = Method { pdr: Some(pdr), ..base.clone() };
        let bits = |method| score(method, &text).map(f64::to_bits);
        prop_assert_eq!(bits(&decayed), bits(&base));
        prop_assert_eq!(decayed.baseline(), Some(base));
    }

    #[test]
    fn contributions_sum_to_the_score(method in any_method(), tokens in any_tokens()) {
        let text = text(&tokens);
        match (score(&method, &text), explain(&method, &text)) {
            (score, Ok(None)) => prop_assert!(score.is_ok() && method.name() == MethodName::GapK),
            (Ok(score), Ok(Some(explanation))) => {
                let Explanation { contributions, selected, weights } = explanation;
                prop_assert_eq!(contributions.len(), tokens.len());
                prop_assert_eq!(selected.is_empty(), matches!(method.name(), MethodName::Loss | MethodName::Zlib));
                prop_assert_eq!(weights.is_empty(), method.pdr.is_none());
                let magnitude: f64 = contributions.iter().map(|c| c.abs()).sum();
                let error = (contributions.iter().sum::<f64>() - score).abs();
                prop_assert!(error <= 1e-12 * (1.0 + magnitude), "off by {}", error);
            }
            (score, explanation) => prop_assert_eq!(score.err(), explanation.err()),
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
        let zlib_bytes = || zlib_bytes;
        let text = TextStats { zlib_bytes: &zlib_bytes, ..text(&tokens) };
        if let Ok(score) = score(&method, &text) {
            prop_assert!(score.is_finite());
        }
        if let Ok(Some(explanation)) = explain(&method, &text) {
            prop_assert!(explanation.contributions.iter().chain(&explanation.weights).all(|c| c.is_finite()));
        }
        prop_assert!(alpha_used(&method, &text).is_none_or(f64::is_finite));
    }

    #[test]
    fn finite_input_has_a_finite_score(method in any_method(), tokens in any_tokens()) {
        let text = text(&tokens);
        let normalized = method.pdr.is_some_and(|pdr| pdr.normalize);
        match score(&method, &text) {
            Ok(score) => prop_assert!(score.is_finite()),
            // Nothing is unlikely and sure at once, or only a token of weight 0 is selected.
            Err(ScoreError::NothingSelected) => prop_assert_eq!(method.name(), MethodName::Surp),
            Err(ScoreError::ZeroWeight) => prop_assert!(normalized),
            Err(error) => prop_assert!(false, "{error}"),
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
        let first = &tokens[..share.count(tokens.len())];
        prop_assert_eq!(
            score(&cut, &text(&tokens)),
            score(&whole, &text(first))
        );
    }

    #[test]
    fn a_random_order_is_an_order_of_the_weights(curve in any_curve(), seed in any::<u64>(), tokens in any_tokens()) {
        let context = text(&tokens).context;
        let sorted = |weighting: Weighting, context: &WeightContext| {
            let mut weights = weighting.weights(&tokens, context);
            weights.sort_by(f64::total_cmp);
            weights
        };
        let random = Weighting::Random { curve, seed };
        prop_assert_eq!(sorted(random, &context), sorted(Weighting::Decay(curve), &context));
        prop_assert_eq!(random.weights(&tokens, &context), random.weights(&tokens, &context));
        // Another text has another order, as another seed has.
        if tokens.len() > 20 && curve.alpha() > 0.01 {
            let other = WeightContext { text: "another", ..context };
            prop_assert_ne!(random.weights(&tokens, &context), random.weights(&tokens, &other));
            let reseeded = Weighting::Random { curve, seed: !seed };
            prop_assert_ne!(random.weights(&tokens, &context), reseeded.weights(&tokens, &context));
        }
    }
}

#[test]
fn contributions_of_tokens_left_out_are_zero() {
    let tokens = tokens(&[-1.0, -6.0, -2.0, -5.0, -9.0]);
    let text = text(&tokens);
    let method = decayed(truncated(min_k(0.5), 0.8), Decay::Linear, 1.0);
    let contributions = explain(&method, &text).expect("a score").expect("a sum").contributions;
    assert_eq!(contributions, [0.0, -2.0, 0.0, 0.0, 0.0]);
    assert!(contributions.iter().all(|c| *c != 0.0 || c.is_sign_positive()));
}

#[test]
fn a_text_without_scored_tokens_is_too_short() {
    let text = text(&[]);
    for method in default_methods() {
        let method = truncated(method.method, 0.5);
        assert_eq!(score(&method, &text), Err(ScoreError::TooShort));
        assert_eq!(explain(&method, &text), Err(ScoreError::TooShort));
    }
}

#[test]
fn a_single_token_weighs_one() {
    let tokens = tokens(&[-3.0]);
    let text = text(&tokens);
    for &decay in Decay::VARIANTS {
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
    let text = TextStats { zlib_bytes: &|| 0, ..text(&tokens) };
    assert_eq!(score(&zlib(), &text), Err(ScoreError::ZeroDenominator("the bytes of the compressed text")));
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
