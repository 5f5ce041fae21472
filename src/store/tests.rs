//! The same tests on every kind of store.

mod adapters;
mod backups;
mod damage;
mod datasets;
mod deletions;
mod full_disk;
mod jobs;
mod lists;
mod owners;
mod places;
mod plans;

use places::TestStore;
