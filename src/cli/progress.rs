//! A progress bar on the terminal; nothing where stderr is none.

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use std::io::IsTerminal;

/// A bar over `total` steps, or a counter where the total is not known.
pub fn bar(total: Option<u64>) -> ProgressBar {
    let target =
        if std::io::stderr().is_terminal() { ProgressDrawTarget::stderr() } else { ProgressDrawTarget::hidden() };
    let bar = ProgressBar::with_draw_target(total, target);
    let template = if total.is_some() {
        "{bar:32} {percent:>3} %  {msg}  {elapsed}, {eta} left"
    } else {
        "{spinner} {msg}  {elapsed}"
    };
    // The templates are constants; were one wrong, the default style would do.
    bar.with_style(ProgressStyle::with_template(template).unwrap_or_else(|_| ProgressStyle::default_bar()))
}
