//! The jobs that routes submit and show.

use crate::audits::{Audits, Calibrations, Trials};
use crate::finetunes::Finetunes;
use crate::memorization::Memorizations;
use crate::store::{Owner, Store};

/// The jobs of every kind; cheap to clone.
#[derive(Clone)]
pub struct RoutedJobs {
    pub audits: Audits,
    pub calibrations: Calibrations,
    pub trials: Trials,
    pub finetunes: Finetunes,
    pub memorizations: Memorizations,
}

impl RoutedJobs {
    /// The store that all of them are in.
    #[must_use]
    pub fn store(&self) -> &Store {
        self.audits.store()
    }

    /// The client that submits jobs through these handles.
    #[must_use]
    pub fn client(&self) -> &Owner {
        self.audits.client()
    }

    /// The same jobs as a client sees them.
    #[must_use]
    pub fn seen_by(&self, client: &Owner) -> Self {
        Self {
            audits: self.audits.seen_by(client.clone()),
            calibrations: self.calibrations.seen_by(client.clone()),
            trials: self.trials.seen_by(client.clone()),
            finetunes: self.finetunes.seen_by(client.clone()),
            memorizations: self.memorizations.seen_by(client.clone()),
        }
    }

    /// Takes no more jobs, and waits until those that run here have stopped.
    pub async fn shutdown(&self) {
        let Self { audits, calibrations, trials, finetunes, memorizations } = self;
        tokio::join!(
            audits.shutdown(),
            calibrations.shutdown(),
            trials.shutdown(),
            finetunes.shutdown(),
            memorizations.shutdown()
        );
    }
}
