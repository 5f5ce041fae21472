//! Declaration of a model: its id, where its files come from, and what else is known before they are opened.

use super::error::OpenError;
use crate::config::{self, Dtype, LayersChoice, ModelSource, ServedSettings, Settings};
use crate::served::ServedSource;
use lm::chat::{ChatError, ChatTemplate};
use lm::hub::{DownloadProgress, Hub, HubError, HubSnapshot, RepoFile, RepoId};
use lm::models::ModelError;
use lm::models::demo::{DEMO, DEMO_REFERENCE};
use lm::models::files::{GgufFiles, ModelFiles};
use lm::tokenizer::{self, Tokenizer};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// The branch of repositories for which the settings name none.
const MAIN: &str = "main";

/// A model as the settings, or whoever adds it, declare it.
#[derive(Clone, Debug)]
pub struct Declaration {
    /// The id by which requests name it.
    pub id: String,
    pub origin: Origin,
    /// The type that it is to compute in.
    pub dtype: Dtype,
    pub layers: LayersChoice,
    /// The id of its default reference model.
    pub reference: Option<String>,
    /// The id of the model that it was tuned from, or that it is an adapter of.
    pub base: Option<String>,
    /// True if it is loaded as soon as its files are open, and readiness waits for it; otherwise the first request loads it. An
    /// eager model is never evicted.
    pub eager: bool,
    /// True if it is never evicted once it is loaded.
    pub pinned: bool,
    /// The devices that may hold it, as indexes into those of the engine. Several hold replicas that share one queue.
    pub devices: Vec<usize>,
}

impl Declaration {
    /// Returns true if it stays in memory when another model needs room.
    pub fn stays(&self) -> bool {
        self.eager || self.pinned
    }
}

/// Separator between the id of a model and the name of its adapter.
const SEPARATOR: char = ':';

pub fn base_id(id: &str) -> &str {
    split(id).0
}

pub fn adapted_id(base: &str, adapter: &str) -> String {
    format!("{base}{SEPARATOR}{adapter}")
}

pub(super) fn split(id: &str) -> (&str, Option<&str>) {
    id.split_once(SEPARATOR).map_or((id, None), |(base, adapter)| (base, Some(adapter)))
}

#[derive(Clone, Debug)]
pub enum Origin {
    Files(ModelFiles),
    /// The source in the settings: a directory, a repository on the Hub if there is no such directory, or a file in GGUF.
    Configured {
        source: ModelSource,
        revision: Option<String>,
        /// Where the tokenizer comes from, if not from there.
        tokenizer: Option<ModelSource>,
    },
    /// Servers elsewhere run the model.
    Served(Box<ServedOrigin>),
}

/// Where a model that is served elsewhere comes from.
#[derive(Clone, Debug)]
pub struct ServedOrigin {
    pub source: ServedSource,
    /// Where the files of its tokenizer come from, as those of a model.
    pub tokenizer: ModelSource,
    pub revision: Option<String>,
}

pub struct LocatedFiles {
    pub files: ModelFiles,
    pub commit: Option<String>,
}

impl Origin {
    /// Returns the origin of a model's files by the settings; `None` if they have no such model.
    pub fn from_settings(settings: &Settings, id: &str) -> Result<Option<Self>, OpenError> {
        Ok(match id {
            config::DEMO if settings.models.is_empty() => Some(Self::Files(DEMO)),
            config::DEMO_REFERENCE if settings.models.is_empty() => Some(Self::Files(DEMO_REFERENCE)),
            _ => settings.models.iter().find(|model| model.id == id).map(Self::configured).transpose()?,
        })
    }

    /// Where the files of this model come from.
    pub fn configured(model: &config::ModelSettings) -> Result<Self, OpenError> {
        let (source, revision) = (model.source.clone(), model.revision.clone());
        let tokenizer = model.tokenizer.clone();
        let Some(served) = &model.served else { return Ok(Self::Configured { source, revision, tokenizer }) };
        let key = key(served)?;
        let source = ServedSource::new(&source.text, served, key.as_deref())?;
        let tokenizer = tokenizer.unwrap_or_default();
        Ok(Self::Served(Box::new(ServedOrigin { source, tokenizer, revision })))
    }

    /// The tokenizer alone: no weight is read, though a repository is downloaded with its weights.
    pub fn tokenizer(&self, hub: Result<&Hub, &HubError>, progress: &DownloadProgress) -> Result<Tokenizer, OpenError> {
        let files = self.locate_tokenizer(hub, progress)?;
        Ok(tokenizer::from_files(|name| files.find(name).map_err(OpenError::Model))?.0)
    }

    /// The chat template alone, or why there is none.
    pub fn chat_template(
        &self,
        hub: Result<&Hub, &HubError>,
        progress: &DownloadProgress,
    ) -> Result<Result<Arc<ChatTemplate>, ChatError>, OpenError> {
        Ok(open_chat_template(&self.locate_tokenizer(hub, progress)?))
    }

    fn locate_tokenizer(
        &self,
        hub: Result<&Hub, &HubError>,
        progress: &DownloadProgress,
    ) -> Result<ModelFiles, OpenError> {
        let located = match self {
            Self::Served(served) => served.locate_tokenizer(hub, progress)?,
            Self::Files(_) | Self::Configured { .. } => self.locate(hub, progress)?,
        };
        Ok(located.files)
    }

    /// Returns true if the model gives its whole distribution at each token.
    pub fn gives_logits(&self) -> bool {
        !matches!(self, Self::Served(served) if !served.source.gives_moments)
    }

    /// Returns true if the model gives the log-probability of its first choice at each token.
    pub fn gives_first_choice(&self) -> bool {
        !matches!(self, Self::Served(served) if !served.source.gives_first_choice)
    }

    /// Returns true if another process runs the model.
    pub fn is_served(&self) -> bool {
        matches!(self, Self::Served(_))
    }

    /// Returns the price of a million tokens of a prompt, where one is stated.
    pub fn price(&self) -> Option<f64> {
        match self {
            Self::Served(served) => served.source.price,
            Self::Files(_) | Self::Configured { .. } => None,
        }
    }

    /// Returns true if the model is one file in GGUF.
    pub fn is_gguf(&self) -> bool {
        match self {
            Self::Files(files) => matches!(files, ModelFiles::Gguf(_)),
            Self::Configured { source, .. } => source.is_gguf() && !source.path.is_dir(),
            Self::Served(_) => false,
        }
    }

    pub fn repository(&self) -> Option<RepoId> {
        match self {
            Self::Configured { source, .. } => repository(source),
            Self::Served(served) => repository(&served.tokenizer),
            Self::Files(_) => None,
        }
    }

    /// Finds the files; those of a repository are downloaded, which may take long.
    pub fn locate(&self, hub: Result<&Hub, &HubError>, progress: &DownloadProgress) -> Result<LocatedFiles, OpenError> {
        match self {
            Self::Files(files) => Ok(LocatedFiles { files: files.clone(), commit: None }),
            Self::Configured { source, revision, tokenizer } => {
                let fetch = |repo: &RepoId, revision: &str| fetch(hub, |hub| hub.fetch(repo, revision, progress));
                let mut located = locate(source, revision.as_deref(), hub, progress, fetch)?;
                if let (ModelFiles::Gguf(gguf), Some(tokenizer)) = (&mut located.files, tokenizer) {
                    gguf.tokenizer = Some(locate_tokenizer(tokenizer, None, hub, progress)?.files);
                }
                Ok(located)
            }
            Self::Served(_) => Err(ModelError::NoWeights.into()),
        }
    }
}

impl ServedOrigin {
    /// Finds the files of the tokenizer; those of a repository are downloaded, without its weights.
    pub fn locate_tokenizer(
        &self,
        hub: Result<&Hub, &HubError>,
        progress: &DownloadProgress,
    ) -> Result<LocatedFiles, OpenError> {
        locate_tokenizer(&self.tokenizer, self.revision.as_deref(), hub, progress)
    }
}

/// The chat template of the tokenizer. One that cannot be used is no fault of a model that scores texts.
pub(super) fn open_chat_template(files: &ModelFiles) -> Result<Arc<ChatTemplate>, ChatError> {
    ChatTemplate::from_files(|name| files.find(name)).map(Arc::new)
}

fn key(served: &ServedSettings) -> Result<Option<String>, OpenError> {
    let Some(variable) = &served.api_key_env else { return Ok(None) };
    let key =
        std::env::var(variable).ok().filter(|key| !key.is_empty() && key.bytes().all(|byte| byte.is_ascii_graphic()));
    key.map(Some).ok_or_else(|| OpenError::NoKey(variable.clone()))
}

/// The meaning of a source in the settings.
enum Place {
    Directory,
    /// A file in GGUF.
    File,
    Repository(RepoId),
    /// A file in GGUF of a repository.
    RepositoryFile(RepoFile),
}

impl Place {
    fn find(source: &ModelSource) -> Option<Self> {
        if source.path.is_dir() {
            return Some(Self::Directory);
        }
        if !source.is_gguf() {
            return RepoId::parse(&source.text).map(Self::Repository);
        }
        let file = || source.path.is_file().then_some(Self::File);
        RepoFile::parse(&source.text).map(Self::RepositoryFile).or_else(file)
    }
}

/// The repository that a source names, where there is no directory of that name.
fn repository(source: &ModelSource) -> Option<RepoId> {
    match Place::find(source)? {
        Place::Repository(repo) | Place::RepositoryFile(RepoFile { repo, .. }) => Some(repo),
        Place::Directory | Place::File => None,
    }
}

/// Finds the files of a source; `fetch` downloads those of a repository at a revision.
fn locate(
    source: &ModelSource,
    revision: Option<&str>,
    hub: Result<&Hub, &HubError>,
    progress: &DownloadProgress,
    fetch_repository: impl FnOnce(&RepoId, &str) -> Result<HubSnapshot, HubError>,
) -> Result<LocatedFiles, OpenError> {
    let place = Place::find(source).ok_or_else(|| OpenError::NoSource(source.text.clone()))?;
    let on_disk = |files| match revision.filter(|revision| *revision != MAIN) {
        None => Ok(LocatedFiles { files, commit: None }),
        Some(revision) => {
            Err(OpenError::NoRevision { source_text: source.text.clone(), revision: revision.to_owned() })
        }
    };
    let revision = revision.unwrap_or(MAIN);
    match place {
        Place::Directory => on_disk(ModelFiles::Directory(source.path.clone())),
        Place::File => {
            let name = source.path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
            let directory = source.path.parent().filter(|directory| !directory.as_os_str().is_empty());
            on_disk(gguf(directory.unwrap_or(Path::new(".")).to_owned(), name))
        }
        Place::Repository(repo) => {
            let named = || format!("`{repo}` (there is no such directory, so it names a repository)");
            let snapshot =
                fetch_repository(&repo, revision).map_err(|error| OpenError::Hub { named: named(), error })?;
            Ok(LocatedFiles { files: ModelFiles::Directory(snapshot.directory), commit: Some(snapshot.commit) })
        }
        Place::RepositoryFile(RepoFile { repo, name }) => {
            let fetched = fetch(hub, |hub| hub.fetch_file(&repo, &name, revision, progress));
            let snapshot = fetched.map_err(|error| OpenError::Hub { named: format!("`{}`", source.text), error })?;
            Ok(LocatedFiles { files: gguf(snapshot.directory, name), commit: Some(snapshot.commit) })
        }
    }
}

/// Finds the files of a tokenizer; those of a repository are downloaded without its weights.
fn locate_tokenizer(
    source: &ModelSource,
    revision: Option<&str>,
    hub: Result<&Hub, &HubError>,
    progress: &DownloadProgress,
) -> Result<LocatedFiles, OpenError> {
    let repository = |repo: &RepoId, revision: &str| fetch(hub, |hub| hub.fetch_tokenizer(repo, revision, progress));
    locate(source, revision, hub, progress, repository)
}

/// Fetches from the Hub, unless its settings are at fault.
fn fetch(
    hub: Result<&Hub, &HubError>,
    fetch: impl FnOnce(&Hub) -> Result<HubSnapshot, HubError>,
) -> Result<HubSnapshot, HubError> {
    hub.map_err(HubError::clone).and_then(fetch)
}

/// The model of a file in GGUF, with the tokenizer that is in it.
fn gguf(directory: PathBuf, name: String) -> ModelFiles {
    ModelFiles::Gguf(Box::new(GgufFiles { among: ModelFiles::Directory(directory), name, tokenizer: None }))
}
