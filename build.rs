//! Names the sources that the numbers of a model come from, for what is kept of those numbers: a version is the same for all
//! that is built before the next one, and a changed kernel may give other bits.

use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::Path;
use std::{fs, io};

/// Forward passes and statistics, and the libraries they call.
const SOURCES: [&str; 2] = ["src/models", "Cargo.lock"];

fn main() -> io::Result<()> {
    let mut hasher = DefaultHasher::new();
    for source in SOURCES {
        println!("cargo:rerun-if-changed={source}");
        hash(Path::new(source), &mut hasher)?;
    }
    println!("cargo:rustc-env=NUMERICS={:016x}", hasher.finish());
    Ok(())
}

/// A file, or all files of a directory in the order of their names.
fn hash(path: &Path, hasher: &mut DefaultHasher) -> io::Result<()> {
    if path.is_dir() {
        let entries: io::Result<Vec<_>> = fs::read_dir(path)?.map(|entry| Ok(entry?.path())).collect();
        let mut entries = entries?;
        entries.sort();
        return entries.iter().try_for_each(|entry| hash(entry, hasher));
    }
    path.to_str().hash(hasher);
    fs::read(path)?.hash(hasher);
    Ok(())
}
