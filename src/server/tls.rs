//! Encryption by rustls: the certificate and its key are read again when they are renewed.

use crate::config::TlsSettings;
use rustls::ServerConfig;
use rustls::crypto::ring;
use rustls_pki_types::pem::{self, PemObject};
use rustls_pki_types::{CertificateDer, PrivateKeyDer};
use std::path::PathBuf;
use std::sync::{Arc, PoisonError, RwLock};
use tokio_rustls::TlsAcceptor;

/// The protocols that clients may choose, the best first.
const PROTOCOLS: [&[u8]; 2] = [b"h2", b"http/1.1"];

/// The certificate in use; cheap to clone, and clones are the same one.
#[derive(Clone)]
pub struct Tls {
    settings: TlsSettings,
    acceptor: Arc<RwLock<TlsAcceptor>>,
}

/// Why a certificate cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum TlsError {
    #[error("{}: {error}", path.display())]
    File { path: PathBuf, error: pem::Error },
    #[error("{}: there is no certificate in it", .0.display())]
    NoCertificate(PathBuf),
    #[error("the certificate in {} and its key: {error}", path.display())]
    Unfit { path: PathBuf, error: rustls::Error },
}

impl Tls {
    /// Reads the certificate and its key.
    pub fn open(settings: TlsSettings) -> Result<Self, TlsError> {
        let acceptor = Arc::new(RwLock::new(read(&settings)?));
        Ok(Self { settings, acceptor })
    }

    /// Reads them again, for the connections from now on.
    ///
    /// # Errors
    /// [`TlsError`]; those before stay in use then.
    pub fn reload(&self) -> Result<(), TlsError> {
        let acceptor = read(&self.settings)?;
        *self.acceptor.write().unwrap_or_else(PoisonError::into_inner) = acceptor;
        Ok(())
    }

    /// Returns the acceptor that encrypts a connection.
    #[must_use]
    pub fn acceptor(&self) -> TlsAcceptor {
        self.acceptor.read().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

fn read(settings: &TlsSettings) -> Result<TlsAcceptor, TlsError> {
    let TlsSettings { certificate, key } = settings;
    let in_file = |path: &PathBuf| {
        let path = path.clone();
        move |error| TlsError::File { path, error }
    };
    let chain = CertificateDer::pem_file_iter(certificate).and_then(Iterator::collect::<Result<Vec<_>, _>>);
    let chain = chain.map_err(in_file(certificate))?;
    if chain.is_empty() {
        return Err(TlsError::NoCertificate(certificate.clone()));
    }
    let private = PrivateKeyDer::from_pem_file(key).map_err(in_file(key))?;
    let unfit = |error| TlsError::Unfit { path: certificate.clone(), error };
    let config = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()
        .map_err(unfit)?
        .with_no_client_auth();
    let mut config = config.with_single_cert(chain, private).map_err(unfit)?;
    config.alpn_protocols = PROTOCOLS.map(<[u8]>::to_vec).to_vec();
    Ok(TlsAcceptor::from(Arc::new(config)))
}
