//! The secret of a key, and what is kept of it.

use mia::texts::hexadecimal;
use serde::de::Error;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use sha2::{Digest, Sha256};
use subtle::ConstantTimeEq;

/// Prefix of every secret, so that a secret in a place where it does not belong is found.
const PREFIX: &str = "pdr_";
const ALGORITHM: &str = "sha256:";

/// Secret by which a client authenticates: `pdr_` and 256 random bits in hexadecimal.
pub struct Secret(String);

/// The SHA-256 of a secret, which is all that is kept of it. A secret has 256 random bits, so it needs no salt and no slow hash.
#[derive(Clone, Copy, Debug)]
pub struct SecretDigest([u8; 32]);

impl Secret {
    /// A new one.
    ///
    /// # Errors
    /// Where the operating system gives no random bits.
    pub fn generate() -> Result<Self, getrandom::Error> {
        let mut bits = [0; 32];
        getrandom::fill(&mut bits)?;
        Ok(Self(format!("{PREFIX}{}", hexadecimal(&bits))))
    }

    /// To be shown once.
    #[must_use]
    pub fn reveal(&self) -> &str {
        &self.0
    }

    #[must_use]
    pub fn digest(&self) -> SecretDigest {
        SecretDigest::new(&self.0)
    }
}

impl SecretDigest {
    /// That of what a client sends, whether or not it is a secret.
    #[must_use]
    pub fn new(secret: &str) -> Self {
        Self(Sha256::digest(secret).into())
    }

    /// Returns true if they are equal, in a time that does not depend on where they differ.
    #[must_use]
    pub fn is(&self, other: &Self) -> bool {
        self.0.ct_eq(&other.0).into()
    }

    /// A name for the key, which tells nothing of its secret.
    #[must_use]
    pub fn key_id(&self) -> String {
        hexadecimal(&self.0[..4])
    }
}

impl Serialize for SecretDigest {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&format!("{ALGORITHM}{}", hexadecimal(&self.0)))
    }
}

impl<'de> Deserialize<'de> for SecretDigest {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        let fault = || D::Error::custom("a digest is `sha256:` and 64 hexadecimal digits");
        let digits = text.strip_prefix(ALGORITHM).filter(|digits| digits.len() == 64 && digits.is_ascii());
        let digits = digits.ok_or_else(fault)?;
        let mut bytes = [0; 32];
        for (index, byte) in bytes.iter_mut().enumerate() {
            *byte = u8::from_str_radix(&digits[2 * index..2 * index + 2], 16).map_err(|_| fault())?;
        }
        Ok(Self(bytes))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn secrets_are_long_and_differ() {
        let [one, other] = [Secret::generate().unwrap(), Secret::generate().unwrap()];
        assert!(one.reveal().starts_with("pdr_") && one.reveal().len() == 68, "{}", one.reveal());
        assert_ne!(one.reveal(), other.reveal());
        assert!(one.digest().is(&SecretDigest::new(one.reveal())) && !one.digest().is(&other.digest()));
    }

    /// The digest of FIPS 180-2, appendix B.1.
    #[test]
    fn digests_are_written_as_others_write_them() {
        let digest = SecretDigest::new("abc");
        let json = serde_json::to_string(&digest).unwrap();
        assert_eq!(json, "\"sha256:ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad\"");
        assert!(serde_json::from_str::<SecretDigest>(&json).unwrap().is(&digest));
        assert_eq!(digest.key_id(), "ba7816bf");
        for text in ["", "sha256:", "ba78", "sha256:zz7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"] {
            assert!(serde_json::from_str::<SecretDigest>(&format!("\"{text}\"")).is_err(), "{text}");
        }
    }
}
