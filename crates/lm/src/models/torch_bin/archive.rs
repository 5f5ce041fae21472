//! The zip archive around the pickle: where its entries are in the file.

use super::error::{TorchBinError, escaped};
use std::collections::BTreeMap;
use std::io::Cursor;
use std::ops::Range;
use zip::read::{ArchiveOffset, Config};
use zip::{CompressionMethod, ZipArchive};

/// A state dict of 70 000 tensors needs less; since instructions take memory, there is a limit.
const LARGEST_PICKLE: usize = 8 << 20;

/// Signatures of the beginning of a zip and of the record that ends it.
const ZIP_START: &[u8] = b"PK\x03\x04";
const ZIP_END: &[u8] = b"PK\x05\x06";
/// Maximum number of bytes from the beginning of the last record to the end of the file: it may end with a comment.
const LONGEST_END: usize = 22 + 0xffff;

/// The locations of the parts of the file.
pub struct Archive {
    pub pickle: Range<usize>,
    /// The storages' bytes by key.
    pub storages: BTreeMap<String, Range<usize>>,
}

/// Reads the zip directory.
pub fn open(file: &[u8]) -> Result<Archive, TorchBinError> {
    let entries = entries(file)?;
    let prefix = prefix(&entries)?;
    let within = |path: &str| entries.get(&format!("{prefix}/{path}"));
    let error = |path: &str, reason: &str| entry_error(&format!("{prefix}/{path}"), reason);
    if within("byteorder").is_some_and(|range| &file[range.clone()] != b"little") {
        return Err(error("byteorder", "only little-endian weights are supported"));
    }
    let pickle = within("data.pkl").cloned().unwrap_or_default();
    if pickle.len() > LARGEST_PICKLE {
        return Err(error("data.pkl", "exceeds the maximum of 8 MiB for a list of tensors"));
    }
    let data = format!("{prefix}/data/");
    let storages = entries.iter().filter_map(|(name, range)| Some((name.strip_prefix(&data)?.into(), range.clone())));
    Ok(Archive { pickle, storages: storages.collect() })
}

/// torch puts everything into one directory, named after the file that was first saved.
fn prefix(entries: &BTreeMap<String, Range<usize>>) -> Result<String, TorchBinError> {
    let is_prefix = |name: &&str| !name.contains('/');
    let mut prefixes = entries.keys().filter_map(|name| name.strip_suffix("/data.pkl")).filter(is_prefix);
    match (prefixes.next(), prefixes.next()) {
        (Some(prefix), None) => Ok(prefix.to_owned()),
        (None, _) => Err(TorchBinError::NotTorch("the zip contains no `data.pkl`".into())),
        (Some(_), Some(second)) => Err(entry_error(&format!("{second}/data.pkl"), "only one pickle is supported")),
    }
}

/// The byte ranges of all entries, each within the file.
fn entries(file: &[u8]) -> Result<BTreeMap<String, Range<usize>>, TorchBinError> {
    if is_cut_off(file) {
        return Err(TorchBinError::CutOff(file.len()));
    }
    // A broken file is not scanned to its end for an archive behind other data.
    let config = Config { archive_offset: ArchiveOffset::Known(0) };
    let mut archive = ZipArchive::with_config(config, Cursor::new(file)).map_err(not_torch)?;
    if archive.has_duplicate_names() {
        return Err(TorchBinError::NotTorch("two entries of the zip have the same name".into()));
    }
    (0..archive.len()).map(|index| entry(&mut archive, index, file.len())).collect()
}

/// Returns true if the file begins as a zip and does not end as one.
fn is_cut_off(file: &[u8]) -> bool {
    let end = &file[file.len().saturating_sub(LONGEST_END)..];
    file.starts_with(ZIP_START) && !end.windows(ZIP_END.len()).any(|bytes| bytes == ZIP_END)
}

fn entry(
    archive: &mut ZipArchive<Cursor<&[u8]>>,
    index: usize,
    length: usize,
) -> Result<(String, Range<usize>), TorchBinError> {
    let entry = archive.by_index_raw(index).map_err(not_torch)?;
    let name = String::from_utf8_lossy(entry.name_raw()).into_owned();
    let error = |reason: &str| entry_error(&name, reason);
    if entry.compression() != CompressionMethod::Stored {
        return Err(error(&format!(
            "compressed ({}); only uncompressed entries are supported, as torch writes them",
            entry.compression()
        )));
    }
    if entry.encrypted() || entry.compressed_size() != entry.size() {
        return Err(error("encrypted, or with two different sizes"));
    }
    let range = entry.data_start().and_then(|start| {
        let end = start.checked_add(entry.size())?;
        Some(usize::try_from(start).ok()?..usize::try_from(end).ok()?)
    });
    let range = range.filter(|range| range.end <= length).ok_or_else(|| error("extends beyond the file"))?;
    Ok((name, range))
}

fn not_torch(error: zip::result::ZipError) -> TorchBinError {
    TorchBinError::NotTorch(error.to_string())
}

fn entry_error(name: &str, reason: &str) -> TorchBinError {
    TorchBinError::Entry { name: escaped(name), reason: reason.to_owned() }
}
