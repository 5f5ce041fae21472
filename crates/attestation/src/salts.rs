//! Salts of leaves. Without them, a published tree would confirm a guessed text.

use sha2::{Digest, Sha256};

/// Bytes of a salt.
pub const SALT_BYTES: usize = 16;

/// The salts of all leaves of a report, which follow from one secret.
///
/// The salt of leaf `i` is the first half of SHA-256 over the 32 bytes of the secret and `i` as 64 bits, the highest first. So one
/// salt, shown with its leaf, tells nothing about another.
#[derive(Clone)]
pub struct LeafSalts([u8; 32]);

impl LeafSalts {
    /// Creates the salts that follow from this secret.
    #[must_use]
    pub fn new(secret: [u8; 32]) -> Self {
        Self(secret)
    }

    /// Draws a secret from the operating system.
    ///
    /// # Errors
    /// If the operating system has no random bits.
    pub fn random() -> Result<Self, getrandom::Error> {
        let mut secret = [0; 32];
        getrandom::fill(&mut secret)?;
        Ok(Self(secret))
    }

    /// Returns the salt of a leaf.
    #[must_use]
    pub fn salt(&self, leaf: usize) -> [u8; SALT_BYTES] {
        let hash = Sha256::new_with_prefix(self.0).chain_update((leaf as u64).to_be_bytes()).finalize();
        let mut salt = [0; SALT_BYTES];
        salt.copy_from_slice(&hash[..SALT_BYTES]);
        salt
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// By Python's `hashlib.sha256(bytes(32) + struct.pack(">Q", i)).hexdigest()[:32]`.
    #[test]
    fn salts_follow_from_the_secret_and_the_number_of_the_leaf() {
        let salts = LeafSalts::new([0; 32]);
        assert_eq!(hex::encode(salts.salt(0)), SALT_0);
        assert_eq!(hex::encode(salts.salt(258)), SALT_258);
        assert_ne!(LeafSalts::random().unwrap().salt(0), LeafSalts::random().unwrap().salt(0));
    }

    const SALT_0: &str = "2c34ce1df23b838c5abf2a7f6437cca3";
    const SALT_258: &str = "246a1d0941e4805ac5764a9516bbc647";
}
