//! The files of a model, in a directory or compiled into the program, and their digests.

use super::error::ModelError;
use super::gguf::{GgufError, GgufFile};
use super::positioned::{Sector, open_past_cache, read_exact_at, read_window};
use super::stamp::Stamp;
use memmap2::{Mmap, MmapOptions};
use mia::texts::hexadecimal;
use rayon::prelude::*;
use serde_json::Value;
use sha2::{Digest, Sha256};
use std::fs::File;
use std::io::{self, Read};
use std::ops::{Deref, Range};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Bytes of a file that are hashed at a time.
const BLOCK: usize = 1 << 20;

/// Bytes of a file per read: several threads each read a part of a tensor.
const READ: usize = 4 << 20;

/// Error for a file that has changed since the files were opened, whether a service or a command reads it.
const CHANGED_SINCE: &str = "it has changed since the files were opened; a service opens them anew when the model is loaded by \
                             request or, if it is eager, at the next retry, and a command when it is run again";

/// Error for a file that changed while it was read.
const CHANGED: &str = "it changed while it was read, so nothing of it is used";

/// The location of a model's files.
#[derive(Clone, Debug)]
pub enum ModelFiles {
    /// A directory as saved by transformers.
    Directory(PathBuf),
    /// Names and contents of files that are part of the program.
    Embedded(&'static [(&'static str, &'static [u8])]),
    /// Names and contents of files in memory.
    Memory(Arc<[(String, Vec<u8>)]>),
    /// One GGUF file in place of all.
    Gguf(Box<GgufFiles>),
}

/// A GGUF file, read as the files that transformers would have for the same model.
#[derive(Clone, Debug)]
pub struct GgufFiles {
    /// The files that it is one of.
    pub among: ModelFiles,
    pub name: String,
    /// The files of the tokenizer, where the file's own is not used.
    pub tokenizer: Option<ModelFiles>,
}

impl GgufFiles {
    /// The content of a file that is made from the GGUF file; `None` if that stands for no such file.
    fn find(&self, name: &str) -> Result<Option<FileBytes>, ModelError> {
        let make: fn(&GgufFile) -> Result<Value, GgufError> = match (name, &self.tokenizer) {
            ("config.json", _) => |file| file.config().map(Value::Object),
            ("generation_config.json", _) => return Ok(None),
            (_, Some(tokenizer)) => return tokenizer.find(name),
            ("tokenizer.json", None) => |file| file.tokenizer(),
            ("tokenizer_config.json", None) => |file| file.tokenizer_config(),
            _ => return Ok(None),
        };
        let bytes = self.among.open_weights(&self.name)?;
        let document = GgufFile::read(&bytes).and_then(|file| make(&file));
        let document = document.map_err(|reason| self.among.error(&self.name, reason))?;
        Ok(Some(FileBytes::Loaded(document.to_string().into_bytes())))
    }

    /// The paths of what is read.
    fn paths(&self) -> Vec<PathBuf> {
        let file = match &self.among {
            ModelFiles::Directory(directory) => vec![directory.join(&self.name)],
            other => other.paths(),
        };
        file.into_iter().chain(self.tokenizer.iter().flat_map(ModelFiles::paths)).collect()
    }
}

/// The content of one file.
pub enum FileBytes {
    /// Weights on disk.
    Mapped(MappedFile),
    /// Any other file on disk, read once: what is parsed and what is hashed are the same bytes.
    Loaded(Vec<u8>),
    Embedded(&'static [u8]),
    /// That of the file of this index.
    Memory(Arc<[(String, Vec<u8>)]>, usize),
}

/// An open file of weights. Its header is parsed through the map, and its tensors are read at their positions: a file that is
/// truncated meanwhile, or a disk that fails, then ends in an error and not in a signal. The map is private, but what other
/// programs write to the file may still show in it, so what is read of the file counts only under
/// [`ModelFiles::read_unchanged`].
pub struct MappedFile {
    map: Mmap,
    file: File,
    /// The file once more, if its windows are read past the page cache.
    past_cache: Option<File>,
    path: PathBuf,
}

impl MappedFile {
    fn read_at(&self, start: usize, out: &mut [u8]) -> Result<(), ModelError> {
        let parts = out.par_chunks_mut(READ).enumerate();
        let read = |(index, part): (usize, &mut [u8])| read_exact_at(&self.file, part, (start + index * READ) as u64);
        parts.try_for_each(read).map_err(|why| self.error(why))
    }

    fn error(&self, reason: impl ToString) -> ModelError {
        ModelError::File { path: self.path.display().to_string(), reason: reason.to_string() }
    }
}

impl FileBytes {
    /// Reads the bytes from position `start` on, as many as `out` has.
    ///
    /// # Errors
    /// [`ModelError::File`] if the file on disk cannot be read or ends before.
    pub fn read_at(&self, start: usize, out: &mut [u8]) -> Result<(), ModelError> {
        if let Self::Mapped(mapped) = self {
            return mapped.read_at(start, out);
        }
        let part = start.checked_add(out.len()).and_then(|end| self.get(start..end));
        out.copy_from_slice(part.ok_or_else(ends_before)?);
        Ok(())
    }

    /// The bytes of a range, for which `sectors` has room: those of a file on disk are read.
    ///
    /// # Errors
    /// [`ModelError`] if the file cannot be read or ends before the range does.
    pub fn window<'a>(&'a self, range: Range<usize>, sectors: &'a mut [Sector]) -> Result<&'a [u8], ModelError> {
        if let Self::Mapped(mapped) = self {
            let file = mapped.past_cache.as_ref().unwrap_or(&mapped.file);
            return read_window(file, range, sectors).map_err(|why| mapped.error(why));
        }
        self.get(range).ok_or_else(ends_before)
    }

    /// Has windows of a file on disk read past the page cache from now on, where the system does so.
    pub fn bypass_cache(&mut self) {
        if let Self::Mapped(mapped) = self {
            mapped.past_cache = open_past_cache(&mapped.path);
        }
    }

    /// SHA-256 as `sha256:<hex>`.
    pub fn digest(&self) -> Result<String, ModelError> {
        Ok(format!("sha256:{}", self.sha256()?))
    }

    /// SHA-256 in hexadecimal. A mapped file is hashed by reading it, so that one that is truncated meanwhile ends in an error
    /// and not in a signal.
    fn sha256(&self) -> Result<String, ModelError> {
        let Self::Mapped(mapped) = self else { return Ok(sha256_hex(self)) };
        let length = mapped.map.len() as u64;
        match hash_file(&mapped.path, length) {
            Ok((digest, hashed)) if hashed == length => Ok(digest),
            Ok(_) => Err(mapped.error(CHANGED)),
            Err(why) => Err(mapped.error(why)),
        }
    }
}

impl Deref for FileBytes {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        match self {
            Self::Mapped(mapped) => &mapped.map,
            Self::Loaded(bytes) => bytes,
            Self::Embedded(bytes) => bytes,
            Self::Memory(files, index) => &files[*index].1,
        }
    }
}

fn ends_before() -> ModelError {
    ModelError::Forward("a tensor ends beyond its file".to_owned())
}

impl ModelFiles {
    /// The content of a file that must exist.
    pub fn open(&self, name: &str) -> Result<FileBytes, ModelError> {
        self.find(name)?.ok_or_else(|| self.missing(name))
    }

    /// As [`ModelFiles::open`], for a file of weights: one on disk is memory-mapped.
    pub fn open_weights(&self, name: &str) -> Result<FileBytes, ModelError> {
        self.find_weights(name)?.ok_or_else(|| self.missing(name))
    }

    fn missing(&self, name: &str) -> ModelError {
        self.error(name, format!("no such file{}", self.listing()))
    }

    /// Describes the content of the directory in words.
    fn listing(&self) -> String {
        const MOST: usize = 10;
        let Self::Directory(directory) = self else { return String::new() };
        let entries = std::fs::read_dir(directory).into_iter().flatten().flatten();
        let mut names: Vec<String> = entries.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect();
        names.sort_unstable();
        let more = names.len().saturating_sub(MOST);
        names.truncate(MOST);
        let names = if names.is_empty() { "nothing".to_owned() } else { names.join(", ") };
        let more = if more > 0 { format!(" and {more} more") } else { String::new() };
        format!("; is this the right directory? found: {names}{more}")
    }

    /// The content of a file, or `None` if it does not exist.
    pub fn find(&self, name: &str) -> Result<Option<FileBytes>, ModelError> {
        if let Self::Gguf(gguf) = self {
            return gguf.find(name);
        }
        self.find_with(name, |path| {
            let mut bytes = Vec::new();
            open_regular(path)?.read_to_end(&mut bytes)?;
            Ok(FileBytes::Loaded(bytes))
        })
    }

    /// As [`ModelFiles::find`], for a file of weights: one on disk is memory-mapped.
    pub fn find_weights(&self, name: &str) -> Result<Option<FileBytes>, ModelError> {
        self.find_with(name, |path| {
            let file = open_regular(path)?;
            // SAFETY: the map is private and only read. Where another program writes to the file meanwhile, any bytes may be
            // read, which `read_unchanged` discards; where it truncates the file, the system ends the process.
            let map = unsafe { MmapOptions::new().map_copy_read_only(&file) }?;
            Ok(FileBytes::Mapped(MappedFile { map, file, past_cache: None, path: path.to_owned() }))
        })
    }

    fn find_with(
        &self,
        name: &str,
        open: impl FnOnce(&Path) -> io::Result<FileBytes>,
    ) -> Result<Option<FileBytes>, ModelError> {
        match self {
            Self::Embedded(files) => {
                Ok(files.iter().find(|(n, _)| *n == name).map(|(_, bytes)| FileBytes::Embedded(bytes)))
            }
            Self::Memory(files) => {
                let index = files.iter().position(|(n, _)| n == name);
                Ok(index.map(|index| FileBytes::Memory(Arc::clone(files), index)))
            }
            Self::Gguf(gguf) => gguf.among.find_with(name, open),
            Self::Directory(directory) => match open(&directory.join(name)) {
                Err(e) if e.kind() == io::ErrorKind::NotFound => Ok(None),
                Err(e) => Err(self.error(name, e)),
                Ok(bytes) => Ok(Some(bytes)),
            },
        }
    }

    /// The state of the files, to detect later changes.
    pub fn stamp(&self) -> Result<Stamp, ModelError> {
        Stamp::take(&self.paths())
    }

    /// The directories and files on disk that are read.
    fn paths(&self) -> Vec<PathBuf> {
        match self {
            Self::Directory(directory) => vec![directory.clone()],
            Self::Embedded(_) | Self::Memory(_) => Vec::new(),
            Self::Gguf(gguf) => gguf.paths(),
        }
    }

    /// Returns the result of `read`, provided that the files match the stamp before and after it: then each of its parts
    /// comes from the same files.
    ///
    /// # Errors
    /// [`ModelError::File`] naming a file that has changed, whatever `read` gave; otherwise the error of `read`.
    pub fn read_unchanged<T, E: From<ModelError>>(
        &self,
        stamp: &Stamp,
        read: impl FnOnce() -> Result<T, E>,
    ) -> Result<T, E> {
        self.refuse_changes(stamp, CHANGED_SINCE)?;
        let result = read();
        // First of all: an error of reading may come from the change.
        self.refuse_changes(stamp, CHANGED)?;
        result
    }

    fn refuse_changes(&self, since: &Stamp, reason: &str) -> Result<(), ModelError> {
        match since.difference(&Stamp::now(&self.paths())?) {
            None => Ok(()),
            Some(path) => Err(ModelError::File { path: path.display().to_string(), reason: reason.to_owned() }),
        }
    }

    pub fn error(&self, name: &str, reason: impl ToString) -> ModelError {
        let path = match self {
            Self::Directory(directory) => directory.join(name).display().to_string(),
            Self::Embedded(_) => format!("(embedded) {name}"),
            Self::Memory(_) => name.to_owned(),
            Self::Gguf(gguf) => return gguf.among.error(&gguf.name, reason),
        };
        ModelError::File { path, reason: reason.to_string() }
    }
}

/// Opens a file that is one. A pipe would be waited for, perhaps for ever, and what a device gives has no end.
fn open_regular(path: &Path) -> io::Result<File> {
    let kind = std::fs::metadata(path)?.file_type();
    if kind.is_file() {
        return File::open(path);
    }
    let what = if kind.is_dir() { "it is a directory" } else { "it is no regular file" };
    Err(io::Error::new(io::ErrorKind::InvalidInput, what))
}

/// SHA-256 of a file as `sha256:<hex>`.
pub fn digest(bytes: &[u8]) -> String {
    format!("sha256:{}", sha256_hex(bytes))
}

fn sha256_hex(bytes: &[u8]) -> String {
    hexadecimal(&Sha256::digest(bytes))
}

/// SHA-256 of a file in hexadecimal, and the bytes that were hashed: at most one beyond `length`.
fn hash_file(path: &Path, length: u64) -> io::Result<(String, u64)> {
    let mut file = open_regular(path)?.take(length.saturating_add(1));
    let (mut hasher, mut hashed, mut block) = (Sha256::new(), 0, vec![0; BLOCK]);
    loop {
        match file.read(&mut block) {
            Ok(0) => return Ok((hexadecimal(&hasher.finalize()), hashed)),
            Ok(count) => {
                hasher.update(&block[..count]);
                hashed += count as u64;
            }
            Err(why) if why.kind() == io::ErrorKind::Interrupted => {}
            Err(why) => return Err(why),
        }
    }
}

/// SHA-256 over the lines `<hex>  <name>` of the files in the order of their names: what `sha256sum FILES | sha256sum`
/// prints for the files in that order.
pub fn joint_digest(files: &mut [(&str, &[u8])]) -> String {
    files.sort_unstable_by_key(|(name, _)| *name);
    let lines: Vec<String> = files.par_iter().map(|(name, bytes)| sum_line(&sha256_hex(bytes), name)).collect();
    digest(lines.concat().as_bytes())
}

/// As [`joint_digest`], of opened files.
pub fn joint_file_digest(files: &mut [(&str, &FileBytes)]) -> Result<String, ModelError> {
    files.sort_unstable_by_key(|(name, _)| *name);
    let lines = files.par_iter().map(|(name, bytes)| Ok(sum_line(&bytes.sha256()?, name)));
    let lines: Vec<String> = lines.collect::<Result<_, ModelError>>()?;
    Ok(digest(lines.concat().as_bytes()))
}

fn sum_line(hex: &str, name: &str) -> String {
    format!("{hex}  {name}\n")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::models::checkpoint::Checkpoint;
    use crate::models::demo::DEMO;

    const WEIGHTS: &str = "model.safetensors";

    /// The demo in a directory of its own.
    fn demo() -> (tempfile::TempDir, ModelFiles) {
        let directory = tempfile::tempdir().unwrap();
        let ModelFiles::Embedded(files) = DEMO else { panic!("the demo is a part of the program") };
        for (name, content) in files {
            std::fs::write(directory.path().join(name), content).unwrap();
        }
        let files = ModelFiles::Directory(directory.path().to_owned());
        (directory, files)
    }

    #[test]
    fn a_digest_is_the_same_wherever_the_files_are() {
        let (_directory, files) = demo();
        let ModelFiles::Embedded(embedded) = DEMO else { panic!("the demo is a part of the program") };
        let in_memory = embedded.iter().map(|(name, content)| ((*name).to_owned(), content.to_vec()));
        let in_memory = ModelFiles::Memory(in_memory.collect());
        let [disk, program, memory] =
            [&files, &DEMO, &in_memory].map(|files| Checkpoint::open(files).unwrap().digest().unwrap());
        assert_eq!((&disk, &disk), (&program, &memory));
        let mut contents: Vec<(&str, &[u8])> = embedded.to_vec();
        contents.retain(|(name, _)| ["config.json", WEIGHTS].contains(name));
        assert_eq!(joint_digest(&mut contents), disk);
    }

    #[cfg(unix)]
    #[test]
    fn a_file_that_changes_while_it_is_read_is_named_whatever_was_read() {
        let (directory, files) = demo();
        let path = directory.path().join(WEIGHTS);
        let stamp = files.stamp().unwrap();
        let digest = || Checkpoint::open(&files)?.digest();
        let before = files.read_unchanged(&stamp, digest).unwrap();
        assert_eq!(files.read_unchanged(&stamp, digest).unwrap(), before, "what is read does not change");

        // In place, with the same length and the same time of modification.
        let modified = std::fs::metadata(&path).unwrap().modified().unwrap();
        let rewrite = || {
            let mut bytes = std::fs::read(&path).unwrap();
            *bytes.last_mut().unwrap() ^= 1;
            std::fs::write(&path, bytes).unwrap();
            File::options().write(true).open(&path).unwrap().set_modified(modified).unwrap();
        };
        let changes: [(&str, &dyn Fn()); 3] = [
            ("rewritten", &rewrite),
            ("touched", &|| {
                let file = File::options().write(true).open(&path).unwrap();
                file.set_modified(modified - std::time::Duration::from_secs(1)).unwrap();
            }),
            ("replaced", &|| {
                let other = directory.path().with_extension("other");
                std::fs::copy(&path, &other).unwrap();
                std::fs::rename(&other, &path).unwrap();
            }),
        ];
        for (name, change) in changes {
            for fails in [false, true] {
                let stamp = files.stamp().unwrap();
                let said = files.read_unchanged(&stamp, || {
                    change();
                    if fails { Err(ModelError::Forward("nonsense in the header".to_owned())) } else { Ok(()) }
                });
                let said = said.unwrap_err().to_string();
                assert_eq!(said, format!("{}: {CHANGED}", path.display()), "{name}");
                let late = files.read_unchanged(&stamp, || -> Result<(), ModelError> { panic!("{name}: it was read") });
                let late = late.unwrap_err().to_string();
                assert!(late.contains(WEIGHTS) && late.contains("changed since the files were opened"), "{late}");
            }
        }
        rewrite();
        assert_ne!(Checkpoint::open(&files).unwrap().digest().unwrap(), before, "a digest is that of the file");
    }

    #[test]
    fn an_error_of_reading_is_told_where_nothing_changed() {
        let (_directory, files) = demo();
        let stamp = files.stamp().unwrap();
        let said = files.read_unchanged(&stamp, || Err::<(), _>(ModelError::Forward("it is full".to_owned())));
        assert_eq!(said.unwrap_err().to_string(), "forward pass: it is full");
    }

    #[test]
    fn a_read_that_fails_names_the_file() {
        let (directory, files) = demo();
        let path = directory.path().join(WEIGHTS);
        let length = std::fs::metadata(&path).unwrap().len() as usize;
        let FileBytes::Mapped(mut mapped) = files.open_weights(WEIGHTS).unwrap() else { panic!("it is on disk") };
        let mut part = vec![0; 100];
        mapped.read_at(length - 100, &mut part).unwrap();
        assert_eq!(part, std::fs::read(&path).unwrap()[length - 100..]);
        let said = mapped.read_at(length - 50, &mut part).unwrap_err().to_string();
        assert_eq!(said, format!("{}: the file is shorter than when it was opened", path.display()));
        // A handle that the system reads nothing through.
        mapped.file = File::options().append(true).open(&path).unwrap();
        let said = mapped.read_at(0, &mut part).unwrap_err().to_string();
        assert!(said.contains(WEIGHTS) && said.contains("Bad file descriptor"), "{said}");
    }

    #[test]
    fn a_file_whose_length_changes_before_it_is_hashed_is_named() {
        let (directory, files) = demo();
        let path = directory.path().join(WEIGHTS);
        let whole = std::fs::metadata(&path).unwrap().len();
        for length in [whole + 1, whole / 2, 0] {
            File::options().write(true).open(&path).unwrap().set_len(whole).unwrap();
            let mapped = files.open_weights(WEIGHTS).unwrap();
            File::options().write(true).open(&path).unwrap().set_len(length).unwrap();
            // Reading the map to its end would end the process where the file is shorter.
            let said = joint_file_digest(&mut [(WEIGHTS, &mapped)]).unwrap_err().to_string();
            assert!(said.contains(WEIGHTS) && said.contains("changed while it was read"), "{length}: {said}");
        }
    }

    #[test]
    fn a_configuration_that_was_opened_is_not_changed_any_more() {
        let (directory, files) = demo();
        let config = files.open("config.json").unwrap();
        let before = config.to_vec();
        std::fs::write(directory.path().join("config.json"), "{}").unwrap();
        assert_eq!(*config, before);
    }
}
