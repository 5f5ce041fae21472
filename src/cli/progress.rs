//! Progress of the work: a bar on a terminal, and elsewhere a line from time to time.

use super::report_format::message;
use crate::pool::{ModelState, ModelStatus, Pool};
use indicatif::{HumanBytes, HumanDuration, ProgressBar, ProgressDrawTarget, ProgressStyle};
use lm::hub::DownloadProgress;
use std::io::IsTerminal;
use std::ops::Deref;
use std::pin::pin;
use std::sync::{Mutex, Once, OnceLock};
use std::time::{Duration, Instant};

/// Between two lines where there is no terminal.
const LINE_PAUSE: Duration = Duration::from_secs(10);

/// Divisor of the total: the remaining time is announced once this part of the work is done.
const FIRST_BATCHES: u64 = 50;

/// Least remaining time that is announced.
const WORTH_TELLING: Duration = Duration::from_secs(60);

/// A bar that is gone from the terminal once it is dropped, also where the work has failed.
pub struct Progress {
    bar: ProgressBar,
    /// When the last line was written; none on a terminal.
    last_line: Option<Mutex<Instant>>,
    /// The first position that was shown, and when: what came before it, such as loading a model, says nothing of the rest.
    first: OnceLock<(u64, Instant)>,
    /// Done once the time that is left was told.
    estimate: Once,
}

impl Deref for Progress {
    type Target = ProgressBar;

    fn deref(&self) -> &ProgressBar {
        &self.bar
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        self.bar.finish_and_clear();
    }
}

impl Progress {
    /// A bar over `total` steps, or a counter where the total is not known.
    pub fn new(total: Option<u64>) -> Self {
        let terminal = std::io::stderr().is_terminal();
        let target = if terminal { ProgressDrawTarget::stderr() } else { ProgressDrawTarget::hidden() };
        let bar = ProgressBar::with_draw_target(total, target);
        let template = if total.is_some() {
            "{bar:32} {percent:>3} %  {msg}  {elapsed}, {eta} left"
        } else {
            "{spinner} {msg}  {elapsed}"
        };
        // The templates are constants; were one wrong, the default style would do.
        let style = ProgressStyle::with_template(template).unwrap_or_else(|_| ProgressStyle::default_bar());
        Self {
            bar: bar.with_style(style),
            last_line: (!terminal).then(|| Mutex::new(Instant::now())),
            first: OnceLock::new(),
            estimate: Once::new(),
        }
    }

    /// Shows how far the work is; `message` says it in words.
    pub fn show(&self, position: Option<u64>, message: String) {
        if let Some(position) = position {
            self.bar.set_position(position);
        }
        self.bar.set_message(message);
        self.write_line();
        if let Some((position, total)) = position.zip(self.bar.length()) {
            self.tell_estimate(position, total);
        }
    }

    /// Tells once how long the rest takes, as the first batches show it.
    fn tell_estimate(&self, position: u64, total: u64) {
        let (first, since) = *self.first.get_or_init(|| (position, Instant::now()));
        let done = position.saturating_sub(first);
        if done == 0 || done * FIRST_BATCHES < total {
            return;
        }
        self.estimate.call_once(|| {
            let left = time_left(done, Some(total.saturating_sub(first)), since.elapsed());
            if let Some(left) = left.filter(|left| *left >= WORTH_TELLING) {
                self.tell(&format!("about {} left", HumanDuration(left)));
            }
        });
    }

    /// Writes a message that stays, above the bar.
    pub fn tell(&self, text: &str) {
        self.bar.suspend(|| eprintln!("{}", message(text)));
    }

    /// Writes a line where it is time for one.
    fn write_line(&self) {
        let Some(last) = &self.last_line else { return };
        let mut last = last.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        if last.elapsed() >= LINE_PAUSE {
            *last = Instant::now();
            eprintln!("{}", line(&self.bar.message(), self.bar.position(), self.bar.length(), self.bar.elapsed()));
        }
    }
}

/// Returns the text of a line: how far the work is, how long it has taken, and how long the rest takes at that rate.
fn line(message: &str, position: u64, total: Option<u64>, elapsed: Duration) -> String {
    let share = match total {
        Some(total) if total > 0 => format!(", {} %", position.min(total) * 100 / total),
        _ => String::new(),
    };
    let left = time_left(position, total, elapsed);
    let left = left.map_or(String::new(), |left| format!(", about {} left", HumanDuration(left)));
    format!("{message}{share}, {}{left}", HumanDuration(elapsed))
}

/// The time that the rest takes at the rate so far.
fn time_left(position: u64, total: Option<u64>, elapsed: Duration) -> Option<Duration> {
    let total = total.filter(|total| (1..*total).contains(&position))?;
    Some(elapsed.mul_f64((total - position) as f64 / position as f64))
}

/// Interval between two checks of the progress of the models.
const CHECK_PAUSE: Duration = Duration::from_millis(500);

/// Waits for `work`, and shows meanwhile which model is downloaded, opened or loaded.
pub async fn for_models<T>(pool: &Pool, work: impl Future<Output = T>) -> T {
    showing(|| pool.status().iter().find_map(step), work).await
}

/// Waits for `work`, and shows `message` meanwhile, where there is one.
pub async fn showing<T>(message: impl Fn() -> Option<String>, work: impl Future<Output = T>) -> T {
    let (progress, mut work) = (Progress::new(None), pin!(work));
    loop {
        match tokio::time::timeout(CHECK_PAUSE, &mut work).await {
            Ok(done) => return done,
            Err(_) => {
                if let Some(message) = message() {
                    progress.show(None, message);
                }
            }
        }
    }
}

/// Describes the progress of the files of a model.
pub fn opening(id: &str, progress: &DownloadProgress) -> String {
    let (done, total) = (progress.done(), progress.total());
    match done < total {
        true => format!("downloading `{id}`: {} of {}", HumanBytes(done), HumanBytes(total)),
        false => format!("opening `{id}`"),
    }
}

/// Describes what happens to a model now, if anything.
fn step(status: &ModelStatus) -> Option<String> {
    let id = &status.declaration.id;
    match &status.progress {
        Some(progress) => Some(opening(id, progress)),
        None => (status.state == ModelState::Loading).then(|| format!("loading `{id}`")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bar_ends_with_the_work_that_fails() {
        let terminal = ProgressBar::hidden();
        let progress =
            Progress { bar: terminal.clone(), last_line: None, first: OnceLock::new(), estimate: Once::new() };
        let work = || -> Result<(), ()> {
            progress.inc(1);
            drop(progress);
            Err(())
        };
        assert!(!terminal.is_finished());
        assert!(work().is_err());
        assert!(terminal.is_finished());
    }

    #[test]
    fn a_line_says_how_far_the_work_is() {
        let elapsed = Duration::from_secs(20);
        assert_eq!(line("7 texts", 3, Some(12), elapsed), "7 texts, 25 %, 20 seconds, about 60 seconds left");
        assert_eq!(line("12 texts", 12, Some(12), elapsed), "12 texts, 100 %, 20 seconds");
        assert_eq!(line("7 texts", 3, None, elapsed), "7 texts, 20 seconds");
        assert_eq!(line("7 texts", 3, Some(0), elapsed), "7 texts, 20 seconds");
    }
}
