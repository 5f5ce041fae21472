//! Which panics end a run.

use std::panic::{set_hook, take_hook};

/// Lets the code under test catch panics of these libraries, which would end the run before anybody can. One that is not caught still
/// ends it.
pub fn allow_panics_of(libraries: &'static [&'static str]) {
    let end = take_hook();
    set_hook(Box::new(move |panic| {
        let is_allowed = |file: &str| libraries.iter().any(|library| file.contains(&format!("/{library}-")));
        if !panic.location().is_some_and(|location| is_allowed(location.file())) {
            end(panic);
        }
    }));
}
