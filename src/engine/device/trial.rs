//! Which token budget of a batch suits a model on a device, by trial. Pure: it is handed a way to run a pass, and all it
//! knows of time is what passes took.
//!
//! A larger batch reads the weights once for more tokens, so it is faster, up to a point; beyond it only makes others wait,
//! and leaves the processor's caches. Where the point lies depends on the model and the machine. The rules:
//!
//! - A pass of one text warms up and does not count: the first one on a GPU compiles kernels, which may take longer than the
//!   whole trial. Another one tells how fast a lone text is. Then the budgets of the ladder run in turn until the time is
//!   over, and where some is left each once more, for what else the machine does can only slow a pass down.
//! - The smallest budget wins that is within [`TOLERANCE`] of the fastest.
//! - Where time or memory ends the ladder while the speed still rises, or before anything could be compared, nobody knows what
//!   larger budgets would bring: the default stands in for them, but for no pass longer than [`LONGEST_PASS`].
//! - A pass that fails ends the trial, and nothing above what ran before it is chosen.
//! - What time ended before any budget ran is not kept.

use std::time::Duration;

/// What the chosen budget may lack to the fastest: not worth the longer wait, and hardly to be told from noise.
const TOLERANCE: f64 = 0.03;

/// How long a pass may take of a budget that was not tried, by the speed of those that were.
const LONGEST_PASS: Duration = Duration::from_secs(2);

/// What is tried.
#[derive(Debug, Clone, Copy)]
pub(in crate::engine) struct Trial<'a> {
    /// The budgets, rising.
    pub(in crate::engine) ladder: &'a [usize],
    /// The largest for which there is memory.
    pub(in crate::engine) reach: usize,
    /// What is taken where nothing is known.
    pub(in crate::engine) default: usize,
    /// After this time no further pass begins.
    pub(in crate::engine) time: Duration,
}

/// A pass that ran.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::engine) struct TimedPass {
    pub(in crate::engine) tokens: usize,
    pub(in crate::engine) took: Duration,
}

/// What came of a trial.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::engine) struct BudgetChoice {
    pub(in crate::engine) tokens: usize,
    /// The largest reach of a trial that would find out no more; 0 where another might.
    pub(in crate::engine) holds_to: usize,
}

impl BudgetChoice {
    /// Whether it holds however much memory there is.
    pub(in crate::engine) fn lasts(self) -> bool {
        self.holds_to == usize::MAX
    }
}

/// A budget with its fastest pass.
#[derive(Debug, Clone, Copy)]
struct Reading {
    budget: usize,
    pass: TimedPass,
}

/// What ended the ladder.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum End {
    Top,
    Time,
    Memory,
    Failure,
}

impl Trial<'_> {
    /// Tries budgets. `pass` runs texts of about so many tokens, one text at least; it gives nothing where that fails.
    pub(in crate::engine) fn run(&self, mut pass: impl FnMut(usize) -> Option<TimedPass>) -> BudgetChoice {
        let Some(lone) = pass(1).and_then(|_| pass(1)) else {
            return BudgetChoice { tokens: self.default, holds_to: 0 };
        };
        let (mut spent, mut readings) = (lone.took, Vec::new());
        let end = match self.climb(&mut pass, &mut spent, &mut readings) {
            End::Failure => End::Failure,
            end => self.repeat(&mut pass, &mut spent, &mut readings).map_or(End::Failure, |()| end),
        };

        let fastest = readings.iter().map(|reading| reading.pass.speed()).fold(0.0, f64::max);
        let best = readings.iter().find(|reading| reading.pass.speed() >= fastest * (1.0 - TOLERANCE));
        let (best, top) = (best.map_or(0, |best| best.budget), readings.last());
        let levelled_off = top.is_some_and(|top| best < top.budget);
        let is_known = levelled_off || end == End::Top || (end == End::Failure && best > 0);
        let speed = top.map_or(lone, |top| top.pass).speed();
        let tokens = match end {
            _ if is_known => best,
            End::Failure => lone.tokens,
            End::Top | End::Time | End::Memory => self.guess(speed, best),
        };
        let holds_to = match end {
            End::Failure => 0,
            // Nothing was measured, so nothing is kept.
            End::Top | End::Time if readings.is_empty() => 0,
            End::Memory if !is_known => self.reach,
            End::Top | End::Time | End::Memory => usize::MAX,
        };
        BudgetChoice { tokens, holds_to }
    }

    /// Runs the budgets in turn.
    fn climb(
        &self,
        pass: &mut impl FnMut(usize) -> Option<TimedPass>,
        spent: &mut Duration,
        readings: &mut Vec<Reading>,
    ) -> End {
        for &budget in self.ladder {
            if *spent >= self.time {
                return End::Time;
            }
            if budget > self.reach {
                return End::Memory;
            }
            let Some(pass) = pass(budget) else { return End::Failure };
            *spent = spent.saturating_add(pass.took);
            readings.push(Reading { budget, pass });
        }
        End::Top
    }

    /// Runs again what there is time for; none where a pass fails.
    fn repeat(
        &self,
        pass: &mut impl FnMut(usize) -> Option<TimedPass>,
        spent: &mut Duration,
        readings: &mut [Reading],
    ) -> Option<()> {
        for reading in readings {
            if spent.saturating_add(reading.pass.took) > self.time {
                break;
            }
            let again = pass(reading.budget)?;
            *spent = spent.saturating_add(again.took);
            if again.speed() > reading.pass.speed() {
                reading.pass = again;
            }
        }
        Some(())
    }

    /// A budget of the ladder: the default, or less where that would take too long at this speed, but no less than `least`.
    fn guess(&self, speed: f64, least: usize) -> usize {
        let most = (speed * LONGEST_PASS.as_secs_f64()) as usize;
        let most = most.min(self.default).max(least);
        let fitting = self.ladder.iter().rfind(|budget| **budget <= most);
        fitting.or(self.ladder.first()).copied().unwrap_or(self.default)
    }
}

impl TimedPass {
    /// Tokens per second. Clocks may be coarse, so no time counts as a very short one.
    fn speed(&self) -> f64 {
        self.tokens as f64 / self.took.as_secs_f64().max(1e-9)
    }
}
