//! Statistics of prompts from the log-probabilities that servers report for their tokens.
//!
//! Every number is checked where it is read: a missing value is a fault and never 0.

use super::model::ROUNDING;
use mia::TokenStats;

/// The number that stands for minus infinity, which JSON does not have.
const MINUS_INFINITY: f64 = -9999.0;
/// Deviation of a sum of probabilities from 1 that rounding explains: log-probabilities that are computed in bf16 are off by up to
/// 2^-8 of their value, and those that matter in the sum are near 0.
const SUM_ROUNDING: f64 = 0.01;

/// What a server reports for a token behind others.
pub struct Reported<'a> {
    /// The log-probability of the token.
    pub lp: Option<f64>,
    /// The log-probabilities of the most probable tokens, in any order; `None` if they are not to be had.
    pub best: Option<&'a [f64]>,
    /// True if the token is one of those.
    pub is_listed: bool,
}

impl Reported<'_> {
    /// The statistics without the moments of the distribution, which are NaN.
    pub fn stats(&self) -> Result<TokenStats, String> {
        let lp = self.lp.ok_or("it has no log-probability")?;
        let best = self.best.unwrap_or_default();
        if let Some(wrong) = best.iter().chain([&lp]).find(|number| number.is_nan() || **number > 0.0) {
            return Err(format!("{wrong} is no log-probability"));
        }
        let max_lp = match self.best {
            None => f64::NAN,
            Some(best) => {
                let first = best.iter().copied().reduce(f64::max).ok_or("it lacks the most probable token")?;
                if lp > first + ROUNDING {
                    return Err("the token is more probable than the most probable one".to_owned());
                }
                finite_or_infinite(first.max(lp))
            }
        };
        let alone = (!self.is_listed).then_some(&lp);
        let sum: f64 = best.iter().chain(alone).map(|number| number.exp()).sum();
        if sum > 1.0 + SUM_ROUNDING {
            return Err(format!(
                "the probabilities of different tokens add up to {sum:.3}, so these are no natural logarithms of probabilities"
            ));
        }
        Ok(TokenStats { lp: finite_or_infinite(lp), mu: f64::NAN, var: f64::NAN, max_lp })
    }
}

/// The log-probability that a number stands for.
fn finite_or_infinite(lp: f64) -> f64 {
    if lp <= MINUS_INFINITY { f64::NEG_INFINITY } else { lp }
}

/// Checks that a prompt has one entry for each of its ids, of which the first has no log-probability, and gives the others to `read`
/// with their ids, by position.
pub fn by_position<T>(
    entries: &[T],
    ids: &[u32],
    is_empty: impl Fn(&T) -> bool,
    read: impl Fn(&T, u32) -> Result<TokenStats, String>,
) -> Result<Vec<TokenStats>, String> {
    if entries.len() != ids.len() {
        return Err(format!("{} positions for {} token ids", entries.len(), ids.len()));
    }
    if entries.first().is_some_and(|first| !is_empty(first)) {
        return Err("the first token has a log-probability, though none is before it".to_owned());
    }
    let rest = entries.iter().zip(ids).enumerate().skip(1);
    rest.map(|(position, (entry, &id))| read(entry, id).map_err(|reason| format!("position {position}: {reason}")))
        .collect()
}

/// Reads the choices of an answer of OpenAI's kind in the order of the prompts, each with its index and its prompt.
pub fn by_index<C, P, T>(
    mut choices: Vec<C>,
    prompts: &[P],
    index: impl Fn(&C) -> usize,
    read: impl Fn(C, &P) -> Result<T, String>,
) -> Result<Vec<T>, String> {
    if choices.len() != prompts.len() {
        return Err(format!("{} choices for {} prompts", choices.len(), prompts.len()));
    }
    choices.sort_by_key(&index);
    let indexed = choices.into_iter().zip(prompts).enumerate();
    indexed
        .map(|(place, (choice, prompt))| match index(&choice) == place {
            true => read(choice, prompt).map_err(|reason| format!("choice {place}: {reason}")),
            false => Err(format!("there is no choice {place}")),
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_of_no_distribution_are_refused() {
        let stats =
            |lp: f64, best: &[f64], is_listed: bool| Reported { lp: Some(lp), best: Some(best), is_listed }.stats();
        let got = stats(-2.5, &[-0.25], false).unwrap();
        assert_eq!((got.lp, got.max_lp), (-2.5, -0.25));
        assert!(got.mu.is_nan() && got.var.is_nan());
        assert_eq!(stats(-9999.0, &[-0.5], false).unwrap().lp, f64::NEG_INFINITY);
        assert_eq!(stats(-0.25, &[-0.25, -3.0], true).unwrap().max_lp, -0.25);
        for (lp, best, listed, reason) in [
            (0.5, &[-0.25][..], false, "0.5 is no log-probability"),
            (-0.5, &[0.25], false, "0.25 is no log-probability"),
            (f64::NAN, &[-0.25], false, "is no log-probability"),
            (-0.1, &[-1.0], false, "more probable than the most"),
            (-0.1, &[], false, "lacks the most probable"),
            // 0.6 and 0.3 of decimal logarithms.
            (0.3_f64.log10(), &[0.6_f64.log10()], false, "add up to 1.39"),
        ] {
            let said = stats(lp, best, listed).unwrap_err();
            assert!(said.contains(reason), "{said}, not {reason}");
        }
    }

    #[test]
    fn without_the_most_probable_tokens_the_first_choice_is_unknown() {
        let got = Reported { lp: Some(-1.0), best: None, is_listed: false }.stats().unwrap();
        assert!(got.lp == -1.0 && got.max_lp.is_nan());
        Reported { lp: None, best: None, is_listed: false }.stats().unwrap_err();
    }
}
