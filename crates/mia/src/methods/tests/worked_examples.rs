//! Examples worked by hand in double precision.

use super::*;

#[track_caller]
fn assert_score(method: Method, lps: &[f64], expected: f64) {
    let tokens = tokens(lps);
    assert_close(score(&method, &text(&tokens)).expect("a score"), expected);
}

fn weights(family: Decay, alpha: f64, n: usize) -> Vec<f64> {
    let curve = curve(family, alpha);
    (1..=n).map(|t| curve.weight(t, n)).collect()
}

#[test]
fn weights_of_five_tokens() {
    #[rustfmt::skip]
    #[expect(clippy::approx_constant, reason = "one of the weights happens to be 1/sqrt(2)")]
    let expected = [
        (Decay::Linear, 1.0, [1.0, 0.75, 0.5, 0.25, 0.0]),
        (Decay::Linear, 0.5, [1.0, 0.875, 0.75, 0.625, 0.5]),
        (Decay::Exponential, 0.02, [1.0, 0.980198673306755, 0.960789439152323, 0.941764533584249, 0.923116346386636]),
        (Decay::Exponential, 0.5, [1.0, 0.606530659712633, 0.367879441171442, 0.22313016014843, 0.135335283236613]),
        (Decay::Polynomial, 2.0, [1.0, 0.5625, 0.25, 0.0625, 0.0]),
        (Decay::Polynomial, 0.5, [1.0, 0.866025403784439, 0.707106781186548, 0.5, 0.0]),
        (Decay::Polynomial, 0.1, [1.0, 0.971641657863073, 0.933032991536807, 0.870550563296124, 0.0]),
    ];
    for (decay, alpha, expected) in expected {
        for (actual, expected) in weights(decay, alpha, 5).into_iter().zip(expected) {
            assert_close(actual, expected);
        }
    }
}

#[test]
fn weights_that_coincide() {
    for n in 1..200 {
        let linear = weights(Decay::Linear, 1.0, n);
        assert_eq!(weights(Decay::Polynomial, 1.0, n), linear, "n = {n}");
        if n > 1 {
            assert_close(linear.iter().sum::<f64>() / n as f64, 0.5);
        }
    }
    for (decay, alpha) in [(Decay::Linear, 1.0), (Decay::Exponential, 3.0), (Decay::Polynomial, 2.0)] {
        assert_eq!(weights(decay, alpha, 1), [1.0]);
    }
}

#[test]
fn scores_of_ten_tokens() {
    use Decay::{Exponential, Linear, Polynomial};
    let check = |method, expected| assert_score(method, &LPS, expected);
    check(loss(), -2.195);
    check(decayed(loss(), Linear, 1.0), -1.10666666666667);
    check(decayed(loss(), Linear, 0.5), -1.65083333333333);
    check(decayed(loss(), Exponential, 0.02), -2.01054455502374);
    check(decayed(loss(), Exponential, 0.002), -2.1755291127794);
    check(decayed(loss(), Polynomial, 2.0), -0.756913580246914);
    check(decayed(loss(), Polynomial, 0.1), -1.92654187919572);
    check(normalized(decayed(loss(), Linear, 1.0)), -2.21333333333333);
    check(min_k(0.2), -5.65);
    check(min_k(0.3), -4.9);
    check(decayed(min_k(0.2), Linear, 1.0), -2.67222222222222);
    check(decayed(min_k(0.2), Exponential, 0.02), -5.14502359957472);
    check(decayed(min_k(0.2), Polynomial, 2.0), -1.69567901234568);
    check(truncated(loss(), 0.6), -2.24166666666667);
    check(truncated(min_k(0.2), 0.6), -5.1);
    check(zlib(), -0.0430392156862745);
    check(decayed(zlib(), Linear, 1.0), -0.0216993464052288);
    check(weighted(loss(), Weighting::Reverse(Curve::LINEAR)), -1.08833333333333);
    check(before(decayed(min_k(0.2), Linear, 1.0)), -3.13333333333333);
    check(weighted(loss(), Weighting::Slope), -2.20588333333333);
}

#[test]
fn selection_before_and_after_weights() {
    let tokens = tokens(&LPS);
    let selected = |method: Method| {
        let explanation = explain(&method, &text(&tokens)).expect("a score").expect("a sum");
        explanation.selected.iter().enumerate().filter(|(_, taken)| **taken).map(|(i, _)| i + 1).collect::<Vec<_>>()
    };
    assert_eq!(selected(min_k(0.2)), [3, 8]);
    assert_eq!(selected(min_k(0.3)), [3, 6, 8]);
    assert_eq!(selected(decayed(min_k(0.2), Decay::Linear, 1.0)), [3, 8]);
    assert_eq!(selected(before(decayed(min_k(0.2), Decay::Linear, 1.0))), [1, 3]);
    assert_eq!(selected(truncated(min_k(0.2), 0.6)), [3]);
    assert!(selected(loss()).is_empty());
}

#[test]
fn weights_from_entropies() {
    let entropies = [4.0, 3.2, 2.8, 0.4, 2.5, 2.9, 0.9, 1.8, 1.6, 1.5];
    let with = |entropies: &[f64]| -> Vec<TokenStats> {
        tokens(&LPS).into_iter().zip(entropies).map(|(token, entropy)| TokenStats { mu: -entropy, ..token }).collect()
    };
    let tokens = with(&entropies);
    let sample = weighted(loss(), Weighting::EntropySample);
    assert_close(score(&sample, &text(&tokens)).expect("a score"), -1.37175);
    // Where the model is sure everywhere, no position is more telling than another.
    assert_close(score(&sample, &text(&with(&[0.0; 10]))).expect("a score"), -2.195);
    // The weights of a dataset of this one text are those of the text; one position more changes nothing before it.
    let longer = [&entropies[..], &[0.1]].concat();
    for dataset in [&entropies[..], &longer] {
        let weights = dataset_weights(dataset.to_vec());
        let context = WeightContext { dataset: &weights, ..text(&tokens).context };
        let dataset = weighted(loss(), Weighting::EntropyDataset);
        let got = score(&dataset, &TextStats { context, ..text(&tokens) }).expect("a score");
        assert_close(got, -1.37175);
    }
}

#[test]
fn the_slope_of_the_losses() {
    let tokens = tokens(&LPS);
    let method = weighted(loss(), Weighting::Slope);
    assert_close(alpha_used(&method, &text(&tokens)).expect("an alpha"), -0.01);
    assert_eq!(alpha_used(&loss(), &text(&tokens)), None);
    assert_eq!(alpha_used(&method, &text(&tokens[..1])), Some(0.0));
    assert_close(score(&method, &text(&tokens[..1])).expect("a score"), LPS[0]);
}

#[test]
fn reversed_and_straight_weights_add_up() {
    for n in 2..50 {
        for alpha in [0.1, 0.5, 1.0] {
            let linear = curve(Decay::Linear, alpha);
            let tokens = tokens(&vec![-1.0; n]);
            let context = text(&tokens).context;
            let straight = Weighting::Decay(linear).weights(&tokens, &context);
            let reversed = Weighting::Reverse(linear).weights(&tokens, &context);
            for (straight, reversed) in straight.iter().zip(reversed) {
                assert_close(straight + reversed, 2.0 - alpha);
            }
        }
    }
}

#[test]
fn decay_and_truncation_share_the_truncated_length() {
    let method = decayed(truncated(loss(), 0.6), Decay::Linear, 1.0);
    assert_score(method, &LPS, {
        let weights = [1.0, 0.8, 0.6, 0.4, 0.2, 0.0];
        let sum: f64 = weights.iter().zip(LPS).map(|(w, lp)| w * lp).sum();
        sum / 6.0
    });
}

#[test]
fn of_equal_values_the_earlier_is_weighted() {
    let lps = [-5.0, -1.0, -5.0, -5.0, -0.1];
    assert_score(decayed(min_k(0.4), Decay::Linear, 1.0), &lps, -3.75);
}

#[test]
fn late_outliers_raise_a_decayed_score() {
    let mut early = [-0.5; 10];
    early[..2].copy_from_slice(&[-6.0, -5.0]);
    let mut late = early;
    late.reverse();
    for lps in [&early, &late] {
        assert_score(loss(), lps, -1.5);
        assert_score(min_k(0.2), lps, -5.5);
    }
    let linear = |method| decayed(method, Decay::Linear, 1.0);
    assert_score(linear(loss()), &early, -1.2);
    assert_score(linear(loss()), &late, -0.3);
    assert_score(linear(min_k(0.2)), &early, -5.22222222222222);
    assert_score(linear(min_k(0.2)), &late, -0.277777777777778);
}

#[test]
fn the_most_likely_tokens() {
    // Powers of two and their sums, so that the scores by hand are exact.
    const LPS: [f64; 5] = [-1.0, -0.5, -4.0, -0.25, -2.0];
    let max_k = |k| Method::new(MaxK { k: fraction(k) });
    let linear = |method| decayed(method, Decay::Linear, 1.0);
    for (method, lps, expected, selected) in [
        // int(5 * 0.4) = 2 tokens: (-0.5 - 0.25) / 2.
        (max_k(0.4), LPS, -0.375, [false, true, false, true, false]),
        // max(1, int(5 * 0.1)) = 1 token.
        (max_k(0.1), LPS, -0.25, [false, false, false, true, false]),
        (max_k(1.0), LPS, -1.55, [true; 5]),
        // The weights are 1, 0.75, 0.5, 0.25, 0: (-0.5 * 0.75 - 0.25 * 0.25) / 2.
        (linear(max_k(0.4)), LPS, -0.21875, [false, true, false, true, false]),
        // The highest weighted values are -0.25 * 0.25 and -2 * 0.
        (before(linear(max_k(0.4))), LPS, -0.03125, [false, false, false, true, true]),
        // Of equal values the earlier is taken.
        (max_k(0.4), [-1.0, -0.5, -0.5, -0.5, -3.0], -0.5, [false, true, true, false, false]),
    ] {
        let tokens = tokens(&lps);
        let explanation = explain(&method, &text(&tokens)).expect("a score").expect("a sum");
        assert_eq!((score(&method, &text(&tokens)), &explanation.selected[..]), (Ok(expected), &selected[..]));
    }
    assert!(!max_k(0.2).extension() && linear(max_k(0.2)).extension());
}

/// The four numbers of one position, from its logits.
fn reduce(logits: [f64; 4], target: usize) -> TokenStats {
    let normalizer = logits.iter().map(|x| x.exp()).sum::<f64>().ln();
    let lps = logits.map(|x| x - normalizer);
    let mean = |value: &dyn Fn(f64) -> f64| lps.iter().map(|&lp| lp.exp() * value(lp)).sum::<f64>();
    let mu = mean(&|lp| lp);
    TokenStats {
        lp: lps[target],
        mu,
        var: mean(&|lp| (lp - mu).powi(2)),
        max_lp: lps.into_iter().fold(f64::NEG_INFINITY, f64::max),
    }
}

#[test]
fn methods_from_logits() {
    #[rustfmt::skip]
    let rows = [
        ([2.0, 1.0, 0.0, -1.0], 1),
        ([0.5, 0.5, 0.5, 0.5], 2),
        ([3.0, 0.0, 0.0, -2.0], 0),
        ([1.0, 2.0, -1.0, 0.0], 3),
        ([0.0, 4.0, 1.0, -3.0], 2),
    ];
    let tokens = rows.map(|(logits, target)| reduce(logits, target));
    #[rustfmt::skip]
    let expected = [
        // lp, mu, var, z
        [-1.4401896985612, -0.947536963975426, 0.616586274855508, -0.627399215343928],
        [-1.38629436111989, -1.38629436111989, 0.0, 0.0],
        [-0.10103203665551, -0.401500729070418, 0.872029219576052, 0.321761226236503],
        [-2.4401896985612, -0.947536963975425, 0.616586274855508, -1.90091130874874],
        [-3.06673727949155, -0.280959738872618, 0.689193236990867, -3.35564437731],
    ];
    for (token, expected) in tokens.iter().zip(expected) {
        let actual = [token.lp, token.mu, token.var, token.z()];
        for (actual, expected) in actual.into_iter().zip(expected) {
            assert_close(actual, expected);
        }
    }
    let text = text(&tokens);
    let check = |method, expected| assert_close(score(&method, &text).expect("a score"), expected);
    let method = || min_k_plus_plus(0.4);
    check(method(), -2.62827784302937);
    check(decayed(method(), Decay::Linear, 1.0), -0.237613913593592);
    check(decayed(method(), Decay::Exponential, 0.02), -2.44393051471202);
    check(decayed(method(), Decay::Polynomial, 2.0), -0.059403478398398);
    check(before(decayed(method(), Decay::Linear, 1.0)), -0.551313521265556);
    let gap_k = |k| Method::new(GapK { k: fraction(k), window: 3 });
    check(gap_k(0.4), -2.05357099968391);
    check(gap_k(0.2), -2.05357099968391);
    // Of fewer tokens than a window has, each stands for itself.
    let two = TextStats { tokens: &tokens[..2], ..text };
    assert_close(score(&gap_k(0.2), &two).expect("a score"), -1.27351209340481);
    check(Method::new(Surp { k: fraction(0.6), max_entropy: 1.0 }), -2.31570555887131);
    let nothing = Method::new(Surp { k: fraction(0.6), max_entropy: 0.1 });
    assert_eq!(score(&nothing, &text), Err(ScoreError::NothingSelected));
    let table = std::sync::Arc::new(TokenCounts::new(vec![50, 30, 15, 5]).expect("counts"));
    let token_counts = [NamedCounts { id: "c".into(), table }];
    let dc_pdd = |a| Method::new(DcPdd { counts: "c".into(), a });
    // Without its counts it has no score, not another one.
    let bare = TextStats { ids: &rows.map(|(_, target)| target as u32), ..text };
    assert!(matches!(score(&dc_pdd(0.01), &bare), Err(ScoreError::Internal(_))));
    let ids = rows.map(|(_, target)| target as u32);
    let text = TextStats { ids: &ids, token_counts: &token_counts, ..text };
    assert_close(score(&dc_pdd(0.01), &text).expect("a score"), 0.01);
    assert_close(score(&dc_pdd(1.0), &text).expect("a score"), 0.411838913146167);
}

#[test]
fn the_share_is_cut_off_in_double_precision() {
    // As Python's max(1, int(n * ratio)); in single precision 0.7 and 0.9 come out otherwise.
    for (n, ratio, count) in [
        (90, 0.7, 62),
        (10, 0.9, 9),
        (100, 0.9, 90),
        (10, 0.7, 7),
        (20, 0.7, 14),
        (4, 0.2, 1),
        (9, 0.2, 1),
        (10, 0.2, 2),
        (1, 1e-300, 1),
        (7, 1.0, 7),
    ] {
        assert_eq!(fraction(ratio).count(n), count, "n = {n}, ratio = {ratio}");
    }
}
