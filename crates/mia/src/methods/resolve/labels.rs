//! The labels of a request's methods: each is used once.

use crate::methods::fault::Fault;
use std::collections::HashMap;

/// The longest label, in Unicode code points.
pub const MAX_LABEL_CHARS: usize = 200;

/// The labels in use, and the place of the entry that uses each.
#[derive(Default)]
pub struct Labels(HashMap<String, usize>);

impl Labels {
    /// Takes a label for the entry at `place`.
    ///
    /// # Errors
    /// Where the label is in use.
    pub fn take(&mut self, label: &str, place: usize, pointer: &str) -> Result<(), Fault> {
        match self.0.insert(label.to_owned(), place) {
            None => Ok(()),
            Some(first) => {
                self.0.insert(label.to_owned(), first);
                let user =
                    if first == place { "another of the grid".to_owned() } else { format!("method {first} (from 0)") };
                let detail = format!("the label `{label}` is already that of {user}: every label is used once");
                Err(Fault::new(pointer, detail))
            }
        }
    }
}

/// For labels that a client gave: one made from parameters is as long as they are.
///
/// # Errors
/// Where the label is empty or too long.
pub fn check_length(label: &str, pointer: &str) -> Result<(), Fault> {
    let chars = label.chars().count();
    if (1..=MAX_LABEL_CHARS).contains(&chars) {
        return Ok(());
    }
    Err(Fault::new(pointer, format!("the label has {chars} characters, outside 1 to {MAX_LABEL_CHARS}")))
}
