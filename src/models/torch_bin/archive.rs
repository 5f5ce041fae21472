//! The zip around the pickle: where its entries lie in the file.

use super::{TorchBinError, shown};
use std::collections::BTreeMap;
use std::io::Cursor;
use std::ops::Range;
use zip::read::{ArchiveOffset, Config};
use zip::{CompressionMethod, ZipArchive};

/// A state dict of 70 000 tensors needs less; instructions take memory, so there is a bound.
const LARGEST_PICKLE: usize = 8 << 20;

/// Where the parts of the file are.
pub struct Archive {
    pub pickle: Range<usize>,
    /// The storages' bytes by key.
    pub storages: BTreeMap<String, Range<usize>>,
}

/// Reads the zip's directory.
pub fn open(file: &[u8]) -> Result<Archive, TorchBinError> {
    let entries = entries(file)?;
    let prefix = prefix(&entries)?;
    let within = |path: &str| entries.get(&format!("{prefix}/{path}"));
    let fault = |path: &str, reason: &str| entry_fault(&format!("{prefix}/{path}"), reason);
    if within("byteorder").is_some_and(|range| &file[range.clone()] != b"little") {
        return Err(fault("byteorder", "weights in another byte order than little are not read"));
    }
    let pickle = within("data.pkl").cloned().unwrap_or_default();
    if pickle.len() > LARGEST_PICKLE {
        return Err(fault("data.pkl", "longer than any list of tensors"));
    }
    let data = format!("{prefix}/data/");
    let storages = entries.iter().filter_map(|(name, range)| Some((name.strip_prefix(&data)?.into(), range.clone())));
    Ok(Archive { pickle, storages: storages.collect() })
}

/// torch puts everything into one directory, named after the file it was first saved as.
fn prefix(entries: &BTreeMap<String, Range<usize>>) -> Result<String, TorchBinError> {
    let is_prefix = |name: &&str| !name.contains('/');
    let mut found = entries.keys().filter_map(|name| name.strip_suffix("/data.pkl")).filter(is_prefix);
    match (found.next(), found.next()) {
        (Some(prefix), None) => Ok(prefix.to_owned()),
        (None, _) => Err(TorchBinError::NotTorch("the zip holds no `data.pkl`".into())),
        (Some(_), Some(second)) => Err(entry_fault(&format!("{second}/data.pkl"), "a second pickle")),
    }
}

/// The bytes of every entry, all within the file.
fn entries(file: &[u8]) -> Result<BTreeMap<String, Range<usize>>, TorchBinError> {
    // Without a search for an archive behind other data, a broken file is not read to its end.
    let config = Config { archive_offset: ArchiveOffset::Known(0) };
    let mut archive = ZipArchive::with_config(config, Cursor::new(file)).map_err(not_torch)?;
    if archive.has_duplicate_names() {
        return Err(TorchBinError::NotTorch("two entries of the zip have the same name".into()));
    }
    (0..archive.len()).map(|index| entry(&mut archive, index, file.len())).collect()
}

fn entry(
    archive: &mut ZipArchive<Cursor<&[u8]>>,
    index: usize,
    length: usize,
) -> Result<(String, Range<usize>), TorchBinError> {
    let entry = archive.by_index_raw(index).map_err(not_torch)?;
    let name = String::from_utf8_lossy(entry.name_raw()).into_owned();
    let fault = |reason: &str| entry_fault(&name, reason);
    if entry.compression() != CompressionMethod::Stored {
        return Err(fault(&format!("compressed ({}); torch stores its entries as they are", entry.compression())));
    }
    if entry.encrypted() || entry.compressed_size() != entry.size() {
        return Err(fault("encrypted, or of two sizes"));
    }
    let range = entry.data_start().and_then(|start| {
        let end = start.checked_add(entry.size())?;
        Some(usize::try_from(start).ok()?..usize::try_from(end).ok()?)
    });
    let range = range.filter(|range| range.end <= length).ok_or_else(|| fault("lies outside the file"))?;
    Ok((name, range))
}

fn not_torch(error: zip::result::ZipError) -> TorchBinError {
    TorchBinError::NotTorch(error.to_string())
}

fn entry_fault(name: &str, reason: &str) -> TorchBinError {
    TorchBinError::Entry { name: shown(name), reason: reason.to_owned() }
}
