//! Where the files of a configured model come from.

use crate::config::{self, ModelSource, Settings};
use crate::hub::{Hub, HubError, Progress, RepoId};
use crate::models::ModelError;
use crate::models::demo::{DEMO, DEMO_REFERENCE};
use crate::models::files::ModelFiles;
use crate::tokenizer::{self, Tokenizer, TokenizerError};

/// A place that files come from.
#[derive(Clone, Debug)]
pub enum Origin {
    /// They are there, as a part of the program or otherwise.
    Files(ModelFiles),
    /// As the settings say: a directory or, where there is none of that name, a repository on the Hub.
    Configured { source: ModelSource, revision: Option<String> },
}

/// The files of a model, at hand.
pub struct Found {
    pub files: ModelFiles,
    /// The commit of a repository on the Hub.
    pub commit: Option<String>,
}

/// Why a model's files cannot be opened.
#[derive(Clone, Debug, thiserror::Error)]
pub enum OpenError {
    /// The source is neither a directory nor the name of a repository.
    #[error("source `{0}` is not a directory, nor a repository as in \"EleutherAI/pythia-160m\"")]
    NoSource(String),
    /// A directory has only one revision.
    #[error("revision `{revision}`: source `{source_text}` is a directory, which has no revisions")]
    NoRevision { source_text: String, revision: String },
    /// The Hub does not give the files.
    #[error("`{repository}` (there is no such directory, so it names a repository): {error}")]
    Hub { repository: RepoId, error: HubError },
    /// The files are not a model that can be served.
    #[error(transparent)]
    Model(#[from] ModelError),
    /// No file of the tokenizer can be used.
    #[error(transparent)]
    Tokenizer(#[from] TokenizerError),
    /// The engine still has the model of before.
    #[error("its files have changed while it is loaded; unload it first")]
    Changed,
    /// Our own fault.
    #[error("opening panicked: {0}")]
    Panicked(String),
}

impl Origin {
    /// Where the settings say that a model's files come from; none where they have no such model.
    pub fn of(settings: &Settings, id: &str) -> Option<Self> {
        match id {
            config::DEMO if settings.models.is_empty() => Some(Self::Files(DEMO)),
            config::DEMO_REFERENCE if settings.models.is_empty() => Some(Self::Files(DEMO_REFERENCE)),
            _ => settings.models.iter().find(|model| model.id == id).map(Self::configured),
        }
    }

    /// Where the settings say that this model's files come from.
    pub fn configured(model: &config::ModelSettings) -> Self {
        Self::Configured { source: model.source.clone(), revision: model.revision.clone() }
    }

    /// The tokenizer alone: no weight is read, though a repository is downloaded with its weights.
    ///
    /// # Errors
    /// [`OpenError`].
    pub fn tokenizer(&self, hub: Result<&Hub, &HubError>) -> Result<Tokenizer, OpenError> {
        let files = self.find(hub, &Progress::default())?.files;
        Ok(tokenizer::from_files(|name| files.find(name).map_err(OpenError::Model))?.0)
    }

    /// The repository that the settings name, where there is no directory of that name.
    pub fn repository(&self) -> Option<RepoId> {
        match self {
            Self::Configured { source, .. } if !source.path.is_dir() => RepoId::parse(&source.text),
            Self::Files(_) | Self::Configured { .. } => None,
        }
    }

    /// Finds the files; those of a repository are downloaded, which may take long.
    ///
    /// # Errors
    /// [`OpenError`].
    pub fn find(&self, hub: Result<&Hub, &HubError>, progress: &Progress) -> Result<Found, OpenError> {
        let (source, revision) = match self {
            Self::Files(files) => return Ok(Found { files: files.clone(), commit: None }),
            Self::Configured { source, revision } => (source, revision.as_deref()),
        };
        if let Some(repository) = self.repository() {
            let snapshot = hub
                .map_err(HubError::clone)
                .and_then(|hub| hub.fetch(&repository, revision.unwrap_or("main"), progress))
                .map_err(|error| OpenError::Hub { repository, error })?;
            return Ok(Found { files: ModelFiles::Directory(snapshot.directory), commit: Some(snapshot.commit) });
        }
        if !source.path.is_dir() {
            return Err(OpenError::NoSource(source.text.clone()));
        }
        if let Some(revision) = revision.filter(|revision| *revision != "main") {
            return Err(OpenError::NoRevision { source_text: source.text.clone(), revision: revision.to_owned() });
        }
        Ok(Found { files: ModelFiles::Directory(source.path.clone()), commit: None })
    }
}
