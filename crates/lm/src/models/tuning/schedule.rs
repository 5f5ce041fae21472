//! The learning rate of a step.

use super::settings::OptimizerSettings;
use std::f64::consts::PI;

/// The learning rate of a step, counted from 0, of so many: linear from 0 over the warm-up, then half a cosine down to 0, as
/// `get_cosine_schedule_with_warmup` of transformers has it.
pub(super) fn learning_rate(settings: &OptimizerSettings, step: usize, steps: usize) -> f64 {
    let warmup = settings.warmup_steps;
    let share = if step < warmup {
        step as f64 / warmup as f64
    } else {
        let progress = (step - warmup) as f64 / steps.saturating_sub(warmup).max(1) as f64;
        (0.5 * (1.0 + (PI * progress).cos())).max(0.0)
    };
    settings.learning_rate * share
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_rate_is_that_of_transformers() {
        // The formula of `get_cosine_schedule_with_warmup`, computed in Python for 10 of 45 steps and 1e-3.
        let settings = OptimizerSettings::default();
        let rate = |step| learning_rate(&settings, step, 45);
        for (step, expected) in
            [(0, 0.0), (1, 1e-4), (9, 9e-4), (10, 1e-3), (27, 5.224324151752575e-4), (44, 2.012853002380466e-6)]
        {
            assert!((rate(step) - expected).abs() < 1e-15, "{step}: {}", rate(step));
        }
        // Fewer steps than the warm-up has.
        assert_eq!(learning_rate(&settings, 5, 6), 5e-4);
    }
}
