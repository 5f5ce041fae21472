//! Reading of the numbers, in words.

use super::extraction::LEAST_PROBABILITY;
use super::request::WindowShape;
use super::summary::ExtractionSummary;

/// Reading of these numbers: what they show, and what they do not.
pub fn reading(texts: &ExtractionSummary, control: Option<&ExtractionSummary>, shape: WindowShape) -> String {
    let (Some(shown), WindowShape { prefix, suffix, .. }) = (shown(texts), shape) else {
        return "No text has a window, so nothing is known of them.".to_owned();
    };
    let begin = format!("Given {prefix} tokens, the model completes {suffix} more word by word in {shown}.");
    let compared = match control.map(self::shown) {
        None => {
            "Without a control, how much of this the model would do on a text that it has not seen is not known: what is easy to \
             predict is completed as well."
                .to_owned()
        }
        Some(None) => "No text of the control has a window, so there is nothing to compare this with.".to_owned(),
        Some(Some(control)) => format!(
            "In the control, which it has not seen, it does so in {control}. Only what the texts have beyond that speaks for memorization, \
             and only if the control is like them in kind, language and style. It does not tell where the model has them from: \
             quotations and copies count as well."
        ),
    };
    let absence = "What is not completed may have been in the training data all the same: most of what a model is trained on cannot be \
                   extracted.";
    format!("{begin} {compared} {absence}")
}

/// Describes how much is completed; `None` without windows.
fn shown(summary: &ExtractionSummary) -> Option<String> {
    let ExtractionSummary { windows, greedy_windows, coverage, .. } = summary;
    let coverage = coverage.filter(|_| *windows > 0)? * 100.0;
    Some(format!(
        "{greedy_windows} of {windows} windows by greedy decoding, and {coverage:.1} % of the characters are in windows that it completes with a \
         probability of at least {LEAST_PROBABILITY}"
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_known_is_said() {
        let texts =
            ExtractionSummary { windows: 8, greedy_windows: 2, coverage: Some(0.5), ..ExtractionSummary::default() };
        let control = ExtractionSummary { greedy_windows: 0, coverage: Some(0.0), ..texts.clone() };
        let none = ExtractionSummary::default();
        let shape = WindowShape::default();
        let alone = reading(&texts, None, shape);
        assert!(alone.contains("in 2 of 8 windows by greedy decoding, and 50.0 % of the characters"), "{alone}");
        assert!(alone.contains("Without a control"), "{alone}");
        let both = reading(&texts, Some(&control), shape);
        assert!(both.contains("it does so in 0 of 8 windows") && !both.contains("Without a control"), "{both}");
        assert!(reading(&texts, Some(&none), shape).contains("No text of the control has a window"));
        assert!(reading(&none, Some(&control), shape).starts_with("No text has a window"));
    }
}
