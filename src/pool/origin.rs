//! Where the files of a configured model come from.

use super::error::OpenError;
use crate::config::{self, ModelSource, Settings};
use crate::hub::{DownloadProgress, Hub, HubError, RepoId};
use crate::models::demo::{DEMO, DEMO_REFERENCE};
use crate::models::files::ModelFiles;
use crate::tokenizer::{self, Tokenizer};

/// A place that files come from.
#[derive(Clone, Debug)]
pub enum Origin {
    /// They are there, as a part of the program or otherwise.
    Files(ModelFiles),
    /// As the settings say: a directory or, where there is none of that name, a repository on the Hub.
    Configured { source: ModelSource, revision: Option<String> },
}

/// The files of a model, at hand.
pub struct LocatedFiles {
    pub files: ModelFiles,
    /// The commit of a repository on the Hub.
    pub commit: Option<String>,
}

impl Origin {
    /// Where the files of a model come from by the settings; none where they have no such model.
    pub fn from_settings(settings: &Settings, id: &str) -> Option<Self> {
        match id {
            config::DEMO if settings.models.is_empty() => Some(Self::Files(DEMO)),
            config::DEMO_REFERENCE if settings.models.is_empty() => Some(Self::Files(DEMO_REFERENCE)),
            _ => settings.models.iter().find(|model| model.id == id).map(Self::configured),
        }
    }

    /// Where the files of this model come from.
    pub fn configured(model: &config::ModelSettings) -> Self {
        Self::Configured { source: model.source.clone(), revision: model.revision.clone() }
    }

    /// The tokenizer alone: no weight is read, though a repository is downloaded with its weights.
    ///
    /// # Errors
    /// [`OpenError`].
    pub fn tokenizer(&self, hub: Result<&Hub, &HubError>, progress: &DownloadProgress) -> Result<Tokenizer, OpenError> {
        let files = self.locate(hub, progress)?.files;
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
    pub fn locate(&self, hub: Result<&Hub, &HubError>, progress: &DownloadProgress) -> Result<LocatedFiles, OpenError> {
        let (source, revision) = match self {
            Self::Files(files) => return Ok(LocatedFiles { files: files.clone(), commit: None }),
            Self::Configured { source, revision } => (source, revision.as_deref()),
        };
        if let Some(repository) = self.repository() {
            let snapshot = hub
                .map_err(HubError::clone)
                .and_then(|hub| hub.fetch(&repository, revision.unwrap_or("main"), progress))
                .map_err(|error| OpenError::Hub { repository, error })?;
            return Ok(LocatedFiles {
                files: ModelFiles::Directory(snapshot.directory),
                commit: Some(snapshot.commit),
            });
        }
        if !source.path.is_dir() {
            return Err(OpenError::NoSource(source.text.clone()));
        }
        if let Some(revision) = revision.filter(|revision| *revision != "main") {
            return Err(OpenError::NoRevision { source_text: source.text.clone(), revision: revision.to_owned() });
        }
        Ok(LocatedFiles { files: ModelFiles::Directory(source.path.clone()), commit: None })
    }
}
