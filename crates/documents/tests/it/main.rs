//! Tests of the crate from outside: goldens, properties of the cut, folders and archives, and hostile files.

mod archives;
mod common;
mod cutting;
mod dropping;
mod epubs;
mod folders;
mod golden;
mod hostile;
mod memory;
