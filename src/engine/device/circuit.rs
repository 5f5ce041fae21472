//! When a device that did not answer is asked again.

use std::time::Duration;

/// The pause after the first failure; each further one doubles it.
const FIRST_PAUSE: Duration = Duration::from_millis(250);
/// The longest pause, and the longest that a device may ask for.
const LONGEST_PAUSE: Duration = Duration::from_secs(30);

/// The failures of a device since it last answered. Pure: chance is handed to it.
#[derive(Debug, Default)]
pub(in crate::engine) struct Circuit {
    failures: u32,
}

impl Circuit {
    /// Notes a failure; gives the pause after it, at least the one that the device asks for. By `chance`, from 0 to 1, it is half as
    /// long to one and a half times as long, so that several do not ask again at once.
    pub(in crate::engine) fn fail(&mut self, asked: Option<Duration>, chance: f64) -> Duration {
        let doubled = FIRST_PAUSE.saturating_mul(1 << self.failures.min(16)).min(LONGEST_PAUSE);
        self.failures = self.failures.saturating_add(1);
        doubled.mul_f64(0.5 + chance).max(asked.unwrap_or_default()).min(LONGEST_PAUSE)
    }

    /// Notes an answer.
    pub(in crate::engine) fn close(&mut self) {
        self.failures = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_double_up_to_the_longest_and_begin_anew_after_an_answer() {
        let mut circuit = Circuit::default();
        let pauses: Vec<u128> = (0..10).map(|_| circuit.fail(None, 0.5).as_millis()).collect();
        assert_eq!(pauses, [250, 500, 1_000, 2_000, 4_000, 8_000, 16_000, 30_000, 30_000, 30_000]);
        circuit.close();
        assert_eq!(circuit.fail(None, 0.0), FIRST_PAUSE / 2);
        assert_eq!(circuit.fail(None, 1.0), FIRST_PAUSE * 3);
        assert_eq!((0..10).map(|_| circuit.fail(None, 1.0)).max(), Some(LONGEST_PAUSE));
    }

    #[test]
    fn a_device_may_ask_for_a_longer_pause() {
        let second = Duration::from_secs(1);
        assert_eq!(Circuit::default().fail(Some(7 * second), 0.5), 7 * second);
        assert_eq!(Circuit::default().fail(Some(second / 100), 0.5), FIRST_PAUSE);
        assert_eq!(Circuit::default().fail(Some(3_600 * second), 0.5), LONGEST_PAUSE);
    }
}
