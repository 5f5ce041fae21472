//! Where samples come from: a file, standard input, or a split of a dataset on the Hub.

use crate::app;
use crate::samples::{FileRecords, ReadError, ReadOptions, records_of_documents, records_of_files};
use anyhow::{Context, Result, bail};
use lm::hub::{DatasetSplit, DownloadProgress};
use sha2::{Digest, Sha256};
use std::ffi::OsStr;
use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};

/// The extensions of files that hold samples; other files are plain text.
pub const SAMPLES: [&str; 6] = ["jsonl", "ndjson", "json", "csv", "tsv", "parquet"];

/// Prefix of the name of a split on the Hub.
const HUB: &str = "hub:";

/// The files of samples that an argument names.
#[derive(Clone, Debug)]
pub struct SampleSource {
    files: Vec<PathBuf>,
    size: Option<u64>,
    /// True for a folder, or several files.
    are_documents: bool,
}

impl SampleSource {
    /// Returns true if the name is that of a dataset on the Hub.
    pub fn is_on_hub(name: &Path) -> bool {
        name.to_str().is_some_and(|name| name.starts_with(HUB))
    }

    /// Finds the files that a name stands for. Those of a split on the Hub are downloaded, which may take long.
    ///
    /// # Errors
    /// Where there is no such file or split, or the download fails.
    pub fn open(name: &Path, more: &[PathBuf]) -> Result<Self> {
        if !more.is_empty() || name.is_dir() {
            let files: Vec<PathBuf> = std::iter::once(name.to_owned()).chain(more.iter().cloned()).collect();
            let is_of_samples = |file: &&PathBuf| {
                file.extension().and_then(OsStr::to_str).is_some_and(|extension| SAMPLES.contains(&extension))
            };
            if let Some(file) = files.iter().find(is_of_samples) {
                bail!("{} is a file of samples, which is read alone; several files are documents", file.display());
            }
            return Ok(Self { files, size: None, are_documents: true });
        }
        let files = match name.to_str().and_then(|name| name.strip_prefix(HUB)) {
            Some(name) => {
                let (split, revision) = name.rsplit_once('@').map_or((name, None), |(split, rev)| (split, Some(rev)));
                let split = DatasetSplit::parse(split).context(
                    "expected hub:OWNER/NAME:SPLIT or hub:OWNER/NAME/CONFIG:SPLIT, perhaps followed by @REVISION",
                )?;
                app::hub()?.fetch_split(&split, revision, &DownloadProgress::default())?
            }
            None => vec![name.to_owned()],
        };
        let mut size = Some(0u64);
        for file in &files {
            // A pipe has no size, and is read only once.
            let bytes = match file == Path::new("-") {
                true => None,
                false => Some(std::fs::metadata(file)?).filter(std::fs::Metadata::is_file).map(|data| data.len()),
            };
            size = size.zip(bytes).map(|(sum, bytes)| sum.saturating_add(bytes));
        }
        Ok(Self { files, size, are_documents: false })
    }

    /// Returns the number of bytes of all files, compressed or not; `None` if it is not known.
    pub fn size(&self) -> Option<u64> {
        self.size
    }

    /// The records of the files one after another, or the passages of the documents.
    ///
    /// # Errors
    /// Where the first file, or any document that was named, cannot be read.
    pub fn records(&self, options: &ReadOptions) -> Result<FileRecords, ReadError> {
        match self.are_documents {
            true => records_of_documents(&self.files, options),
            false => records_of_files(self.files.clone(), options),
        }
    }

    /// SHA-256 of the content of the files, or of the passages of the documents, in hexadecimal digits.
    pub fn digest(&self) -> Result<String> {
        let (mut hash, mut buffer) = (Sha256::new(), vec![0; 1 << 20]);
        if self.are_documents {
            for record in records_of_documents(&self.files, &ReadOptions::default())? {
                hash.update(serde_json::to_vec(&record?.fields)?);
            }
        }
        for file in self.files.iter().filter(|_| !self.are_documents) {
            let mut file = File::open(file)?;
            loop {
                match file.read(&mut buffer)? {
                    0 => break,
                    read => hash.update(&buffer[..read]),
                }
            }
        }
        Ok(hash.finalize().iter().map(|byte| format!("{byte:02x}")).collect())
    }
}
