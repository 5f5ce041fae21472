//! Keys of Ed25519 in the files that openssl writes and reads: PKCS #8 and SubjectPublicKeyInfo, in PEM.

use crate::salts::LeafSalts;
use ed25519_dalek::pkcs8::spki::der::pem::LineEnding;
use ed25519_dalek::pkcs8::{DecodePrivateKey, DecodePublicKey, EncodePrivateKey, EncodePublicKey, KeypairBytes};
use ed25519_dalek::{Signature, Signer};
use sha2::{Digest, Sha256};
use std::fmt;

/// Separates the secrets that a key gives from its signatures, and from other uses of it.
const SALTS: &[u8] = b"pdr-audit leaf salts v1";

/// A key that signs reports.
#[derive(Clone)]
pub struct SigningKey(ed25519_dalek::SigningKey);

/// The public half of a [`SigningKey`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PublicKey(ed25519_dalek::VerifyingKey);

/// The content of a file is no key.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum KeyError {
    #[error("this is not an Ed25519 private key in PKCS #8 (`-----BEGIN PRIVATE KEY-----`): {0}")]
    Private(String),
    #[error("this is not an Ed25519 public key (`-----BEGIN PUBLIC KEY-----`): {0}")]
    Public(String),
    #[error("this is a private key, which only its owner may have; give the public one")]
    PrivateInstead,
}

impl SigningKey {
    /// Draws a key from the operating system.
    ///
    /// # Errors
    /// If the operating system has no random bits.
    pub fn random() -> Result<Self, getrandom::Error> {
        let mut seed = [0; 32];
        getrandom::fill(&mut seed)?;
        Ok(Self(ed25519_dalek::SigningKey::from_bytes(&seed)))
    }

    /// Reads a key from PKCS #8 in PEM.
    ///
    /// # Errors
    /// [`KeyError::Private`]
    pub fn from_pem(pem: &str) -> Result<Self, KeyError> {
        let key =
            ed25519_dalek::SigningKey::from_pkcs8_pem(pem).map_err(|error| KeyError::Private(error.to_string()))?;
        Ok(Self(key))
    }

    /// Writes the key as PKCS #8 in PEM.
    ///
    /// # Errors
    /// [`KeyError::Private`] if it cannot be encoded.
    pub fn to_pem(&self) -> Result<String, KeyError> {
        // Without the public half, which older versions of openssl do not read.
        let seed = KeypairBytes { secret_key: self.0.to_bytes(), public_key: None };
        let pem = seed.to_pkcs8_pem(LineEnding::LF).map_err(|error| KeyError::Private(error.to_string()))?;
        Ok(pem.to_string())
    }

    #[must_use]
    pub fn public(&self) -> PublicKey {
        PublicKey(self.0.verifying_key())
    }

    /// Signs a message.
    #[must_use]
    pub fn sign(&self, message: &[u8]) -> [u8; 64] {
        self.0.sign(message).to_bytes()
    }

    /// Derives the salts of the leaves of one report, which its `id` tells from others. Nobody can compute them without the key.
    #[must_use]
    pub fn salts(&self, id: [u8; 16]) -> LeafSalts {
        let secret = Sha256::new_with_prefix(SALTS).chain_update(self.0.as_bytes()).chain_update(id);
        LeafSalts::new(secret.finalize().into())
    }
}

impl PublicKey {
    /// Reads a key from SubjectPublicKeyInfo in PEM.
    ///
    /// # Errors
    /// [`KeyError::Public`], and [`KeyError::PrivateInstead`] for the private half.
    pub fn from_pem(pem: &str) -> Result<Self, KeyError> {
        if SigningKey::from_pem(pem).is_ok() {
            return Err(KeyError::PrivateInstead);
        }
        let key = ed25519_dalek::VerifyingKey::from_public_key_pem(pem);
        Ok(Self(key.map_err(|error| KeyError::Public(error.to_string()))?))
    }

    /// Writes the key as SubjectPublicKeyInfo in PEM.
    ///
    /// # Errors
    /// [`KeyError::Public`] if it cannot be encoded.
    pub fn to_pem(&self) -> Result<String, KeyError> {
        self.0.to_public_key_pem(LineEnding::LF).map_err(|error| KeyError::Public(error.to_string()))
    }

    /// The id of the key in envelopes: the SHA-256 of its SubjectPublicKeyInfo in DER, in hexadecimal digits.
    #[must_use]
    pub fn id(&self) -> String {
        hex::encode(Sha256::digest(self.0.to_public_key_der().as_ref().map_or(&[][..], |der| der.as_bytes())))
    }

    /// Returns true if the signature of the message is by this key. Rejects what RFC 8032 leaves open: keys of small order and
    /// signatures that are not in their one canonical form.
    #[must_use]
    pub fn verifies(&self, message: &[u8], signature: &[u8]) -> bool {
        let signature = Signature::from_slice(signature);
        signature.is_ok_and(|signature| self.0.verify_strict(message, &signature).is_ok())
    }
}

/// Tells which key it is without its secret.
impl fmt::Debug for SigningKey {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "SigningKey({})", self.public().id())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The example of RFC 8410, section 10.
    const PRIVATE: &str = "-----BEGIN PRIVATE KEY-----
\
        MC4CAQAwBQYDK2VwBCIEINTuctv5E1hK1bbY8fdp+K06/nwoy/HU++CXqI9EdVhC
\
        -----END PRIVATE KEY-----
";
    const PUBLIC: &str = "-----BEGIN PUBLIC KEY-----
\
        MCowBQYDK2VwAyEAGb9ECWmEzf6FQbrBZ9w7lshQhqowtrbLDFw4rXAxZuE=
\
        -----END PUBLIC KEY-----
";
    /// `openssl pkeyutl -sign -rawin` of `a report\n` by it.
    const SIGNATURE: &str = "40542f358f6304b061d8e29215f1263eaa3fa101ce1cc1af288b6b4b897e14e8e052dc2c93e12efbdbb2710fcf953f28aa2741653799fe7dcc8ba4bc612c870d";
    /// `openssl pkey -pubout -outform DER | sha256sum`.
    const ID: &str = "a1e9156054e04fac899ae9f275132cdc07a5dbc4ea2c2ad3a1ffc6e0d253681f";

    #[test]
    fn keys_and_signatures_are_those_of_openssl() {
        let (key, public) = (SigningKey::from_pem(PRIVATE).unwrap(), PublicKey::from_pem(PUBLIC).unwrap());
        assert_eq!(key.public(), public);
        assert_eq!((key.to_pem().unwrap().as_str(), public.to_pem().unwrap().as_str()), (PRIVATE, PUBLIC));
        assert_eq!(public.id(), ID);
        assert_eq!(hex::encode(key.sign(b"a report\n")), SIGNATURE);
        let signature = hex::decode(SIGNATURE).unwrap();
        assert!(public.verifies(b"a report\n", &signature));
        assert!(!public.verifies(b"a report", &signature));
        assert!(!public.verifies(b"a report\n", &signature[1..]));
        assert!(!SigningKey::random().unwrap().public().verifies(b"a report\n", &signature));
    }

    #[test]
    fn a_key_survives_its_file() {
        let key = SigningKey::random().unwrap();
        let read = SigningKey::from_pem(&key.to_pem().unwrap()).unwrap();
        assert_eq!(read.public(), key.public());
        assert_eq!(read.salts([1; 16]).salt(0), key.salts([1; 16]).salt(0));
        assert_ne!(key.salts([1; 16]).salt(0), key.salts([2; 16]).salt(0));
        assert!(!format!("{key:?}").contains("BEGIN"));
    }

    #[test]
    fn other_files_are_refused_by_name() {
        assert!(matches!(SigningKey::from_pem(PUBLIC), Err(KeyError::Private(_))));
        assert!(matches!(SigningKey::from_pem("words"), Err(KeyError::Private(_))));
        assert!(matches!(PublicKey::from_pem(""), Err(KeyError::Public(_))));
        assert_eq!(PublicKey::from_pem(PRIVATE), Err(KeyError::PrivateInstead));
    }
}
