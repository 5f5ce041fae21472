//! Parts of the state of a model.

use std::sync::Arc;

use super::model::Model;
use lm::hub::DownloadProgress;

/// State of a model.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ModelState {
    /// Its files have not been opened.
    Closed,
    /// Its files are being downloaded or read.
    Fetching,
    /// Its files are open, and no device holds it; the next request loads it.
    Opened,
    /// It is being loaded, or waits for its turn.
    Loading,
    /// At least one device holds it.
    Ready,
    /// It is being unloaded: admitted requests are finished, new ones are refused.
    Draining,
    /// The last attempt to open or to load it failed, for this reason; a later request tries again, and an eager
    /// model is tried again by itself.
    Failed(String),
}

/// Policy on retrying a recent failure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Retry {
    /// Not before its pause is over.
    AfterPause,
    Now,
}

/// Where a model stands on one of its devices.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Replica {
    /// It is not there, and nobody has asked for it.
    Absent,
    /// It is to be loaded when the device comes to it.
    Ordered,
    Loading,
    Resident,
}

/// The files of a model.
#[derive(Debug)]
pub(super) enum FilesState {
    Closed,
    /// They are being opened.
    Fetching(Fetch),
    Opened(Arc<Model>),
}

/// One attempt to open the files of a model.
#[derive(Debug, Clone)]
pub(super) struct Fetch {
    /// Progress of the download; also the identity of the attempt.
    pub(super) progress: Arc<DownloadProgress>,
    /// The model that was open before: it stays if its files have not changed.
    pub(super) previous: Option<Arc<Model>>,
}
