//! When a device that did not answer is asked again.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// The pause after the first failure; each further one doubles it.
const FIRST_PAUSE: Duration = Duration::from_millis(250);
/// The longest pause, and the longest that a device may ask for.
const LONGEST_PAUSE: Duration = Duration::from_secs(30);

/// The failures since an answer: those of a device or, of devices that are connections to one server, those of that server.
#[derive(Debug, Default)]
pub struct Circuit(Mutex<Failures>);

#[derive(Debug, Default)]
struct Failures {
    count: u32,
    last: Option<DevicePause>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct DevicePause {
    pub(super) until: Instant,
    pub(super) reason: String,
}

impl Circuit {
    /// Notes a failure and returns the end of the pause after it, which is at least as long as the device asks for. `chance`, from 0
    /// to 1, makes it half as long to one and a half times as long, so that several do not ask again at once. A failure during a
    /// pause is the same one, found by another connection.
    pub(super) fn fail(&self, now: Instant, reason: &str, asked: Option<Duration>, chance: f64) -> Instant {
        let mut failures = self.lock();
        if let Some(pause) = failures.last.as_ref().filter(|pause| now < pause.until) {
            return pause.until;
        }
        let doubled = FIRST_PAUSE.saturating_mul(1 << failures.count.min(16)).min(LONGEST_PAUSE);
        let pause = doubled.mul_f64(0.5 + chance).max(asked.unwrap_or_default()).min(LONGEST_PAUSE);
        let until = now + pause;
        *failures = Failures {
            count: failures.count.saturating_add(1),
            last: Some(DevicePause { until, reason: reason.to_owned() }),
        };
        until
    }

    pub(super) fn pause(&self, now: Instant) -> Option<DevicePause> {
        self.lock().last.clone().filter(|pause| now < pause.until)
    }

    pub(super) fn close(&self) {
        self.lock().count = 0;
    }

    fn lock(&self) -> MutexGuard<'_, Failures> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The pause after a failure at the end of the one before.
    fn next(circuit: &Circuit, now: &mut Instant, asked: Option<Duration>, chance: f64) -> Duration {
        let until = circuit.fail(*now, "gone", asked, chance);
        until - std::mem::replace(now, until)
    }

    #[test]
    fn pauses_double_up_to_the_longest_and_begin_anew_after_an_answer() {
        let (circuit, mut now) = (Circuit::default(), Instant::now());
        let pauses: Vec<u128> = (0..10).map(|_| next(&circuit, &mut now, None, 0.5).as_millis()).collect();
        assert_eq!(pauses, [250, 500, 1_000, 2_000, 4_000, 8_000, 16_000, 30_000, 30_000, 30_000]);
        circuit.close();
        assert_eq!(next(&circuit, &mut now, None, 0.0), FIRST_PAUSE / 2);
        assert_eq!(next(&circuit, &mut now, None, 1.0), FIRST_PAUSE * 3);
        assert_eq!((0..10).map(|_| next(&circuit, &mut now, None, 1.0)).max(), Some(LONGEST_PAUSE));
    }

    #[test]
    fn a_device_may_ask_for_a_longer_pause() {
        let second = Duration::from_secs(1);
        let pause = |asked| next(&Circuit::default(), &mut Instant::now(), Some(asked), 0.5);
        assert_eq!(pause(7 * second), 7 * second);
        assert_eq!(pause(second / 100), FIRST_PAUSE);
        assert_eq!(pause(3_600 * second), LONGEST_PAUSE);
    }

    #[test]
    fn failures_of_several_connections_during_a_pause_are_one() {
        let (circuit, now) = (Circuit::default(), Instant::now());
        assert_eq!(circuit.pause(now), None);
        let until = circuit.fail(now, "gone", None, 0.5);
        let later = now + FIRST_PAUSE / 2;
        assert_eq!(circuit.fail(later, "gone as well", None, 0.5), until);
        assert_eq!(circuit.pause(later), Some(DevicePause { until, reason: "gone".to_owned() }));
        assert_eq!(circuit.pause(until), None);
        assert_eq!(circuit.fail(until, "gone", None, 0.5), until + FIRST_PAUSE * 2);
    }
}
