//! Scores as probabilities of membership, which only a stated prior makes of them.

use mia::statistics::{LabelledScore, folds, out_of_fold_posteriors};

/// Computes the probability that each text is a member, by its score and the share `prior` of members among texts like these.
/// `None` for a text without a score, and for all if the other folds lack a class.
#[must_use]
pub fn posteriors(labels: &[bool], clusters: &[usize], scores: &[Option<f64>], prior: f64) -> Vec<Option<f64>> {
    let places: Vec<usize> = (0..labels.len()).filter(|&place| scores[place].is_some()).collect();
    let folds = folds(labels, clusters);
    let sample = |&place: &usize| Some(LabelledScore { score: scores[place]?, member: labels[place] });
    let samples: Vec<LabelledScore> = places.iter().filter_map(sample).collect();
    let folds: Vec<usize> = places.iter().map(|&place| folds[place]).collect();
    let mut posteriors = vec![None; labels.len()];
    let computed = out_of_fold_posteriors(&samples, &folds, prior).unwrap_or_default();
    for (place, posterior) in places.into_iter().zip(computed) {
        posteriors[place] = Some(posterior);
    }
    posteriors
}

#[cfg(test)]
mod tests {
    use super::posteriors;

    #[test]
    fn a_text_without_a_score_has_none_and_the_others_have_a_probability() {
        let labels: Vec<bool> = (0..40).map(|place| place % 2 == 0).collect();
        let clusters: Vec<usize> = (0..40).collect();
        let score = |place: usize| {
            (place > 0).then_some((place * 7919 % 101) as f64 + if place.is_multiple_of(2) { 50.0 } else { 0.0 })
        };
        let scores: Vec<Option<f64>> = (0..40).map(score).collect();
        let posteriors = posteriors(&labels, &clusters, &scores, 0.1);
        assert_eq!(posteriors[0], None);
        let known: Vec<f64> = posteriors.iter().flatten().copied().collect();
        assert_eq!(known.len(), 39);
        assert!(known.iter().all(|value| (0.0..=1.0).contains(value)), "{known:?}");
        let highest = scores.iter().zip(&posteriors).max_by(|a, b| a.0.partial_cmp(b.0).unwrap()).unwrap().1;
        assert!(*highest > Some(0.1), "{highest:?}");
    }
}
