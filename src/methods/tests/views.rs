//! Methods that look at more than the text: worked examples, and what happens where that is missing.

use super::*;

const LPS: [f64; 10] = [-2.3, -0.7, -5.1, -0.05, -1.9, -3.4, -0.3, -6.2, -0.9, -1.1];
const REFERENCE: [f64; 10] = [-2.9, -1.0, -4.8, -0.2, -2.5, -3.9, -0.4, -5.0, -1.3, -1.2];
const LOWER: [f64; 9] = [-3.0, -1.2, -4.4, -2.1, -0.6, -3.8, -2.7, -1.5, -0.8];
const AFTER_NON_MEMBERS: [f64; 11] = [-4.1, -2.2, -0.6, -5.6, -0.1, -2.0, -3.3, -0.5, -6.0, -1.0, -1.3];
const AFTER_MEMBERS: [f64; 11] = [-3.9, -2.1, -0.5, -5.0, -0.1, -1.8, -3.1, -0.4, -5.9, -0.9, -1.2];

fn texts(text: &str) -> Texts {
    Texts::new(vec![text.to_owned()])
}

fn seen(lps: &[f64]) -> Seen {
    Ok(vec![tokens(lps).into()])
}

/// Every view of the examples.
fn views() -> Vec<(View, Seen)> {
    let neighbors = [-2.6, -2.1, -2.9].map(|lp| tokens(&[lp, lp]).into()).to_vec();
    vec![
        (View::Reference("r".into()), seen(&REFERENCE)),
        (View::OwnReference("r".into()), seen(&REFERENCE[..5])),
        (View::Lowercase, seen(&LOWER)),
        (View::Neighbors(None), Ok(neighbors)),
        (View::After(texts("n")), seen(&AFTER_NON_MEMBERS)),
        (View::After(texts("m")), seen(&AFTER_MEMBERS)),
    ]
}

fn reference(reading: Reading) -> Method {
    Base::Ref { reference: "r".into(), reading }.into()
}

fn recall(align: Align) -> Method {
    Base::Recall { prefix: texts("n"), align }.into()
}

fn con_recall() -> Method {
    Base::ConRecall { non_members: texts("n"), members: texts("m"), gamma: 0.5 }.into()
}

fn neighbor() -> Method {
    Base::Neighbor { generator: None }.into()
}

fn scored(method: &Method, views: &[(View, Seen)]) -> Result<f64, ScoreError> {
    let tokens = tokens(&LPS);
    score(method, &TextStats { views, ..text(&tokens) })
}

#[test]
fn scores_of_ten_tokens() {
    let views = views();
    let linear = |method| decayed(method, Decay::Linear, 1.0);
    for (method, expected) in [
        (reference(Reading::SameIds), 0.125),
        (linear(reference(Reading::SameIds)), 0.11),
        (decayed(reference(Reading::SameIds), Decay::Exponential, 0.02), 0.122322266505469),
        (reference(Reading::OwnIds), -2.195 + 11.4 / 5.0),
        (Base::Lowercase.into(), 1.01746393318147),
        (linear(Base::Lowercase.into()), 1.12951807228916),
        (neighbor(), 0.338333333333333),
        (recall(Align::Official), 1.10581901014703),
        (recall(Align::Shared), 1.02961275626424),
        (con_recall(), 0.590184303168358),
    ] {
        assert_close(scored(&method, &views).expect("a score"), expected);
    }
}

#[test]
fn weights_reach_every_text() {
    let views = views();
    let mean = |lps: &[f64]| {
        let n = lps.len();
        lps.iter().enumerate().map(|(i, lp)| (1.0 - i as f64 / (n - 1) as f64) * lp).sum::<f64>() / n as f64
    };
    let linear = |method| scored(&decayed(method, Decay::Linear, 1.0), &views).expect("a score");
    // Each neighbour has two tokens, the second of weight 0.
    assert_close(linear(neighbor()), mean(&LPS) + (2.6 + 2.1 + 2.9) / 6.0);
    assert_close(linear(recall(Align::Official)), mean(&AFTER_NON_MEMBERS) / mean(&LPS));
    assert_close(linear(recall(Align::Shared)), mean(&AFTER_NON_MEMBERS[1..]) / mean(&LPS));
}

#[test]
fn what_is_missing_fails_its_method_alone() {
    let long = Unseen { code: "too_long".into(), detail: "the lower-cased text has 9 tokens".to_owned() };
    let views = [(View::Lowercase, Err(long.clone())), (View::Neighbors(None), Ok(Vec::new()))];
    let lowercase: Method = Base::Lowercase.into();
    assert_eq!(scored(&lowercase, &views), Err(ScoreError::Unseen(long)));
    assert_eq!(scored(&neighbor(), &views), Err(ScoreError::ViewTooShort));
    assert_eq!(scored(&reference(Reading::SameIds), &views), Err(ScoreError::ViewTooShort));
    assert_close(scored(&loss(), &views).expect("a score"), -2.195);
}

#[test]
fn a_text_that_is_certain_divides_nothing() {
    let certain = tokens(&[0.0, 0.0]);
    let views = [(View::Lowercase, seen(&LOWER)), (View::After(texts("n")), seen(&AFTER_NON_MEMBERS))];
    for method in [Base::Lowercase.into(), recall(Align::Official)] {
        let got = score(&method, &TextStats { views: &views, ..text(&certain) });
        assert_eq!(got.expect_err("no denominator").code(), "zero_denominator");
    }
}

#[test]
fn explanations_are_of_sums_alone() {
    let (views, tokens) = (views(), tokens(&LPS));
    let text = TextStats { views: &views, ..text(&tokens) };
    for method in [reference(Reading::OwnIds), Base::Lowercase.into(), neighbor(), recall(Align::Shared), con_recall()]
    {
        assert_eq!(explain(&method, &text), Ok(None));
    }
    let method = decayed(reference(Reading::SameIds), Decay::Linear, 1.0);
    let explanation = explain(&method, &text).expect("a score").expect("a sum");
    assert_close(explanation.contributions.iter().sum(), 0.11);
    assert_eq!((explanation.weights.len(), explanation.selected.len()), (10, 0));
}
