//! A progress bar on the terminal; nothing where stderr is none.

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use std::io::IsTerminal;
use std::ops::Deref;

/// A bar that is gone from the terminal once it is dropped, also where the work has failed.
pub struct Bar(ProgressBar);

impl Deref for Bar {
    type Target = ProgressBar;

    fn deref(&self) -> &ProgressBar {
        &self.0
    }
}

impl Drop for Bar {
    fn drop(&mut self) {
        self.0.finish_and_clear();
    }
}

/// A bar over `total` steps, or a counter where the total is not known.
pub fn bar(total: Option<u64>) -> Bar {
    let target =
        if std::io::stderr().is_terminal() { ProgressDrawTarget::stderr() } else { ProgressDrawTarget::hidden() };
    let bar = ProgressBar::with_draw_target(total, target);
    let template = if total.is_some() {
        "{bar:32} {percent:>3} %  {msg}  {elapsed}, {eta} left"
    } else {
        "{spinner} {msg}  {elapsed}"
    };
    // The templates are constants; were one wrong, the default style would do.
    Bar(bar.with_style(ProgressStyle::with_template(template).unwrap_or_else(|_| ProgressStyle::default_bar())))
}

#[cfg(test)]
mod tests {
    use super::Bar;
    use indicatif::ProgressBar;

    #[test]
    fn a_bar_ends_with_the_work_that_fails() {
        let terminal = ProgressBar::hidden();
        let bar = Bar(terminal.clone());
        let work = || -> Result<(), ()> {
            let bar = bar;
            bar.inc(1);
            Err(())
        };
        assert!(!terminal.is_finished());
        assert!(work().is_err());
        assert!(terminal.is_finished());
    }
}
