//! Methods that use every token: the loss attack, and the zlib ratio of Carlini et al. 2021.

use flate2::{Compression, bufread::ZlibEncoder};
use std::io;

/// Bytes of `text` (its raw UTF-8) compressed by zlib at level 6, header and checksum included: what Python's
/// `len(zlib.compress(text.encode()))` gives. Stock C zlib only: other implementations give other lengths.
pub fn zlib_bytes(text: &str) -> usize {
    let mut compressed = ZlibEncoder::new(text.as_bytes(), Compression::new(6));
    // Reading from memory into a sink does not fail. If it did, 0 makes a refusal of it, not a wrong score.
    io::copy(&mut compressed, &mut io::sink()).map_or(0, |bytes| bytes as usize)
}

#[cfg(test)]
mod tests {
    use super::zlib_bytes;

    #[test]
    fn lengths_of_stock_zlib() {
        assert_eq!(zlib_bytes(""), 8);
        assert_eq!(zlib_bytes("The quick brown fox jumps over the lazy dog."), 51);
    }
}
