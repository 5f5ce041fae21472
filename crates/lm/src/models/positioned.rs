//! Reads of files at positions, through the page cache or past it.
//!
//! Weights that every forward pass reads anew do not stay in the page cache, which has no room for all of them. Reading past it saves
//! a copy of every byte and the search for free pages, and leaves to others what they have in it.

use std::fs::File;
use std::io;
use std::ops::Range;
use std::path::Path;

/// A multiple of what disks and file systems require of addresses, positions and lengths of reads past the page cache.
const SECTOR: usize = 4096;

/// Memory for a window, aligned as reads past the page cache require.
#[derive(Clone, Copy)]
#[repr(C, align(4096))]
pub struct Sector([u8; SECTOR]);

// SAFETY: an array of bytes that fills its alignment has no padding, and zeros are a valid value.
unsafe impl bytemuck::Zeroable for Sector {}

// SAFETY: it has no padding, and every value of its bytes is valid.
unsafe impl bytemuck::Pod for Sector {}

impl Sector {
    pub const ZERO: Self = Self([0; SECTOR]);

    /// The number of sectors that a window of some bytes may extend over.
    pub fn count(bytes: usize) -> usize {
        bytes.div_ceil(SECTOR) + 1
    }
}

/// Opens a file for [`read_window`] past the page cache; `None` if the system does not read this file so.
pub fn open_past_cache(path: &Path) -> Option<File> {
    #[cfg(target_os = "linux")]
    {
        use std::os::unix::fs::OpenOptionsExt;
        let flags = i32::try_from(rustix::fs::OFlags::DIRECT.bits()).ok()?;
        let file = File::options().read(true).custom_flags(flags).open(path).ok()?;
        // Some file systems accept the flag and refuse the reads.
        read_window(&file, 0..1, &mut [Sector::ZERO; 2]).ok()?;
        Some(file)
    }
    #[cfg(not(target_os = "linux"))]
    {
        let _ = path;
        None
    }
}

/// Reads the bytes of a range, and those around it in the same sectors, into the first of [`Sector::count`] sectors.
pub fn read_window<'a>(file: &File, range: Range<usize>, sectors: &'a mut [Sector]) -> io::Result<&'a [u8]> {
    let skipped = range.start % SECTOR;
    let needed = skipped + range.len();
    let bytes: &mut [u8] = bytemuck::cast_slice_mut(&mut sectors[..needed.div_ceil(SECTOR)]);
    read_at_least(file, bytes, needed, (range.start - skipped) as u64)?;
    Ok(&bytes[skipped..needed])
}

/// Fills `out` from a position of a file on.
pub fn read_exact_at(file: &File, out: &mut [u8], position: u64) -> io::Result<()> {
    let needed = out.len();
    read_at_least(file, out, needed, position)
}

/// Fills at least the first `needed` bytes of `out` from a position of a file on.
fn read_at_least(file: &File, out: &mut [u8], needed: usize, position: u64) -> io::Result<()> {
    let mut filled = 0;
    while filled < needed {
        match read_at(file, &mut out[filled..], position + filled as u64) {
            Ok(0) => {
                return Err(io::Error::new(
                    io::ErrorKind::UnexpectedEof,
                    "the file is shorter than when it was opened",
                ));
            }
            Ok(count) => filled += count,
            Err(why) if why.kind() == io::ErrorKind::Interrupted => {}
            Err(why) => return Err(why),
        }
    }
    Ok(())
}

#[cfg(unix)]
fn read_at(file: &File, out: &mut [u8], position: u64) -> io::Result<usize> {
    std::os::unix::fs::FileExt::read_at(file, out, position)
}

#[cfg(windows)]
fn read_at(file: &File, out: &mut [u8], position: u64) -> io::Result<usize> {
    std::os::windows::fs::FileExt::seek_read(file, out, position)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn windows_are_the_bytes_of_the_file_wherever_they_begin_and_end() {
        // In the working directory, which is on a disk, and of a length that no sector ends at.
        let file = tempfile::NamedTempFile::new_in(env!("CARGO_MANIFEST_DIR")).unwrap();
        let content: Vec<u8> = (0..5 * SECTOR + 77).map(|i| (i * 31 % 251) as u8).collect();
        std::fs::write(file.path(), &content).unwrap();
        let past_cache = open_past_cache(file.path());
        println!("past the page cache: {}", past_cache.is_some());
        for file in [Some(File::open(file.path()).unwrap()), past_cache].into_iter().flatten() {
            let mut sectors = vec![Sector::ZERO; Sector::count(content.len())];
            let ends = [1, SECTOR - 1, SECTOR, SECTOR + 1, 3 * SECTOR, content.len() - 1, content.len()];
            for (start, end) in ends.iter().flat_map(|end| [(0, *end), (end - 1, *end), (end / 2, *end)]) {
                let sectors = &mut sectors[..Sector::count(end - start)];
                assert_eq!(read_window(&file, start..end, sectors).unwrap(), &content[start..end], "{start}..{end}");
            }
            let beyond = 5 * SECTOR..content.len() + 1;
            assert!(read_window(&file, beyond, &mut sectors).is_err());
        }
    }
}
