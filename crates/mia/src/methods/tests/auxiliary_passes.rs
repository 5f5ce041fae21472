//! Methods that compare the text with others: worked examples, and what happens where a pass is missing.

use super::*;

const REFERENCE: [f64; 10] = [-2.9, -1.0, -4.8, -0.2, -2.5, -3.9, -0.4, -5.0, -1.3, -1.2];
const LOWER: [f64; 9] = [-3.0, -1.2, -4.4, -2.1, -0.6, -3.8, -2.7, -1.5, -0.8];
const AFTER_NON_MEMBERS: [f64; 11] = [-4.1, -2.2, -0.6, -5.6, -0.1, -2.0, -3.3, -0.5, -6.0, -1.0, -1.3];
const AFTER_MEMBERS: [f64; 11] = [-3.9, -2.1, -0.5, -5.0, -0.1, -1.8, -3.1, -0.4, -5.9, -0.9, -1.2];

fn texts(text: &str) -> Texts {
    Texts::from(vec![text.to_owned()])
}

fn stats(lps: &[f64]) -> AuxiliaryStats {
    Ok(vec![tokens(lps).into()])
}

/// Every auxiliary pass of the examples.
fn passes() -> Vec<(AuxiliaryPass, AuxiliaryStats)> {
    let neighbors = [-2.6, -2.1, -2.9].map(|lp| tokens(&[lp, lp]).into()).to_vec();
    vec![
        (AuxiliaryPass::Reference("r".into()), stats(&REFERENCE)),
        (AuxiliaryPass::ReferenceTokenization("r".into()), stats(&REFERENCE[..5])),
        (AuxiliaryPass::Lowercase, stats(&LOWER)),
        (AuxiliaryPass::Neighbors(None), Ok(neighbors)),
        (AuxiliaryPass::Swapped(SWAPS), Ok(vec![tokens(&REFERENCE).into(), tokens(&LOWER).into()])),
        (AuxiliaryPass::Prefixed(texts("n")), stats(&AFTER_NON_MEMBERS)),
        (AuxiliaryPass::Prefixed(texts("m")), stats(&AFTER_MEMBERS)),
    ]
}

fn reference(tokenization: Tokenization) -> Method {
    Method::new(Ref { reference: "r".into(), tokenization })
}

fn recall(align: Align) -> Method {
    Method::new(Recall { prefix: texts("n"), align })
}

fn con_recall() -> Method {
    Method::new(ConRecall { non_members: texts("n"), members: texts("m"), gamma: 0.5 })
}

const SWAPS: WordSwaps = WordSwaps { share: Fraction::FIFTH, copies: 2, seed: 7 };

fn pac() -> Method {
    let WordSwaps { share, copies, seed } = SWAPS;
    Method::new(Pac { low: fraction(0.3), high: fraction(0.25), swaps: share, copies, seed })
}

fn neighbor() -> Method {
    Method::new(Neighbor { generator: None })
}

fn scored(method: &Method, passes: &[(AuxiliaryPass, AuxiliaryStats)]) -> Result<f64, ScoreError> {
    let tokens = tokens(&LPS);
    score(method, &TextStats { passes, ..text(&tokens) })
}

#[test]
fn scores_of_ten_tokens() {
    let passes = passes();
    let linear = |method| decayed(method, Decay::Linear, 1.0);
    for (method, expected) in [
        (reference(Tokenization::Shared), 0.125),
        (linear(reference(Tokenization::Shared)), 0.11),
        (decayed(reference(Tokenization::Shared), Decay::Exponential, 0.02), 0.122322266505469),
        (reference(Tokenization::Separate), -2.195 + 11.4 / 5.0),
        (Method::new(Lowercase), 1.01746393318147),
        (linear(Method::new(Lowercase)), 1.12951807228916),
        (neighbor(), 0.338333333333333),
        (recall(Align::Official), 1.10581901014703),
        (recall(Align::Shared), 1.02961275626424),
        (con_recall(), 0.590184303168358),
        // Distances 4.725 of the text, 4.2667 and 3.4 of its copies.
        (pac(), (4.266666666666667 + 3.4) / 2.0 - 4.725),
    ] {
        assert_close(scored(&method, &passes).expect("a score"), expected);
    }
}

#[test]
fn weights_reach_every_text() {
    let passes = passes();
    let mean = |lps: &[f64]| {
        let n = lps.len();
        lps.iter().enumerate().map(|(i, lp)| (1.0 - i as f64 / (n - 1) as f64) * lp).sum::<f64>() / n as f64
    };
    let linear = |method| scored(&decayed(method, Decay::Linear, 1.0), &passes).expect("a score");
    // Each neighbour has two tokens, the second of weight 0.
    assert_close(linear(neighbor()), mean(&LPS) + (2.6 + 2.1 + 2.9) / 6.0);
    assert_close(linear(recall(Align::Official)), mean(&AFTER_NON_MEMBERS) / mean(&LPS));
    assert_close(linear(recall(Align::Shared)), mean(&AFTER_NON_MEMBERS[1..]) / mean(&LPS));
}

#[test]
fn what_is_missing_fails_its_method_alone() {
    let long = AuxiliaryPassError { code: "too_long".into(), detail: "the lower-cased text has 9 tokens".to_owned() };
    let passes = [(AuxiliaryPass::Lowercase, Err(long.clone())), (AuxiliaryPass::Neighbors(None), Ok(Vec::new()))];
    let lowercase: Method = Method::new(Lowercase);
    assert_eq!(scored(&lowercase, &passes), Err(ScoreError::AuxiliaryPass(long)));
    assert_eq!(scored(&neighbor(), &passes), Err(ScoreError::AuxiliaryTooShort));
    // A pass that was not planned is a fault of the service, not of the text.
    assert!(matches!(scored(&reference(Tokenization::Shared), &passes), Err(ScoreError::Internal(_))));
    assert_close(scored(&loss(), &passes).expect("a score"), -2.195);
}

#[test]
fn a_text_that_is_certain_divides_nothing() {
    let certain = tokens(&[0.0, 0.0]);
    let passes =
        [(AuxiliaryPass::Lowercase, stats(&LOWER)), (AuxiliaryPass::Prefixed(texts("n")), stats(&AFTER_NON_MEMBERS))];
    for method in [Method::new(Lowercase), recall(Align::Official)] {
        let got = score(&method, &TextStats { passes: &passes, ..text(&certain) });
        assert_eq!(got.expect_err("no denominator").code(), "zero_denominator");
    }
}

#[test]
fn explanations_are_of_sums_alone() {
    let (passes, tokens) = (passes(), tokens(&LPS));
    let text = TextStats { passes: &passes, ..text(&tokens) };
    for method in
        [reference(Tokenization::Separate), Method::new(Lowercase), neighbor(), recall(Align::Shared), con_recall()]
    {
        assert_eq!(explain(&method, &text), Ok(None));
    }
    let method = decayed(reference(Tokenization::Shared), Decay::Linear, 1.0);
    let explanation = explain(&method, &text).expect("a score").expect("a sum");
    assert_close(explanation.contributions.iter().sum(), 0.11);
    assert_eq!((explanation.weights.len(), explanation.selected.len()), (10, 0));
}

/// Six tokens: log-probability, that under the reference model, and that of the model's first choice (worked example 17).
const SIX: [[f64; 3]; 6] = [
    [-2.0, -2.5, -1.0],
    [-0.5, -0.4, -0.5],
    [-3.0, -3.5, -0.7],
    [-1.0, -1.2, -0.9],
    [-0.2, -0.1, -0.2],
    [-4.1, -3.0, -0.3],
];

/// A score of tokens with these log-probabilities, reference and first choice.
fn compared(method: &Method, tokens: &[[f64; 3]]) -> Result<f64, ScoreError> {
    let token = |&[lp, _, max_lp]: &[f64; 3]| TokenStats { lp, mu: -2.0, var: 1.0, max_lp };
    let stats: Vec<TokenStats> = tokens.iter().map(token).collect();
    let reference: Vec<f64> = tokens.iter().map(|[_, reference, _]| *reference).collect();
    score(
        method,
        &TextStats { passes: &[(AuxiliaryPass::Reference("r".into()), self::stats(&reference))], ..text(&stats) },
    )
}

fn ez(without_losses: WithoutLosses) -> Method {
    Method::new(Ez { reference: "r".into(), without_losses })
}

#[test]
fn windows_and_errors_against_a_reference_model() {
    let wbc = Method::new(Wbc { reference: "r".into() });
    // Windows that gain: 4 of the 5 of 2 tokens, 3 of the 4 of 3, 2 of the 3 of 4, and not the one of 6.
    assert_close(compared(&wbc, &SIX).expect("a score"), 0.22166666666666668);
    assert_close(compared(&wbc, &SIX[..1]).expect("a score"), 1.0);
    // Gained 0.5, 0.5 and 0.2, lost 1.1, where the first choice is another token.
    assert_close(compared(&ez(WithoutLosses::Error), &SIX).expect("a score"), 1.0909090909090913);
    // The first three tokens lose nothing where the model errs.
    let lossless = compared(&ez(WithoutLosses::Error), &SIX[..3]).expect_err("no denominator");
    assert_eq!(lossless.code(), "zero_denominator");
    assert_close(compared(&ez(WithoutLosses::Zero), &SIX[..3]).expect("a score"), 0.0);
    // Equal models win no window.
    assert_close(compared(&wbc, &SIX.map(|[lp, _, max_lp]| [lp, lp, max_lp])).expect("a score"), 0.0);
    let broken = SIX.map(|[lp, reference, _]| [lp, reference, f64::NAN]);
    assert_eq!(compared(&ez(WithoutLosses::Error), &broken), Err(ScoreError::NonFinite));
}
