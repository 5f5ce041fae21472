//! The same tests on every kind of store.

mod adapters;
mod datasets;
mod jobs;
mod places;

use places::TestStore;
