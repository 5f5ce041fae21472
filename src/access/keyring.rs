//! The keys that the service accepts, and the clients that hold them.

use super::key_file::{ClientLimits, KeyEntry, KeyFile, KeyFileError, KeyScope};
use super::principal::Principal;
use super::quota::Quota;
use super::secret::SecretDigest;
use std::collections::{BTreeSet, HashMap};
use std::path::{Path, PathBuf};
use std::sync::{Arc, PoisonError, RwLock};
use std::time::Duration;
use time::OffsetDateTime;
use tokio::sync::watch;

/// Longest time without a look at the expiry of a key.
const LONGEST_SLEEP: Duration = Duration::from_secs(60);

/// The keys that the service accepts, as the file has them; cheap to clone, and clones are the same one.
#[derive(Clone, Debug)]
pub struct Keyring {
    path: PathBuf,
    keys: Arc<RwLock<Vec<AcceptedKey>>>,
    /// Changes when the file was read again.
    reloads: watch::Sender<()>,
}

#[derive(Clone, Debug)]
struct AcceptedKey {
    digest: SecretDigest,
    expires: Option<OffsetDateTime>,
    client: Arc<Client>,
}

/// Why a secret is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RefusedKey {
    #[error("the key is not known")]
    Unknown,
    #[error("the key has expired")]
    Expired,
}

impl Keyring {
    pub fn open(path: &Path) -> Result<Self, KeyFileError> {
        let ring = Self { path: path.to_owned(), keys: Arc::default(), reloads: watch::Sender::new(()) };
        ring.reload()?;
        Ok(ring)
    }

    /// Reads the file again, and returns the number of keys. What a client has used of its limits stays used.
    ///
    /// # Errors
    /// [`KeyFileError`]; the keys are as they were then.
    pub fn reload(&self) -> Result<usize, KeyFileError> {
        let file = KeyFile::read(&self.path)?;
        let mut limits = HashMap::<String, ClientLimits>::new();
        for KeyEntry { name, limits: of_key, .. } in &file.keys {
            let lowest = limits.entry(name.clone()).or_default();
            *lowest = lowest.lower(*of_key);
        }
        let mut keys = self.keys.write().unwrap_or_else(PoisonError::into_inner);
        let known = |name: &str| keys.iter().map(|key| &key.client).find(|client| client.name() == name);
        let quota = |(name, limits): (String, ClientLimits)| {
            let quota = known(&name).map_or_else(|| Arc::new(Quota::new(limits)), |client| Arc::clone(&client.quota));
            quota.set_limits(limits);
            (name, quota)
        };
        let quotas: HashMap<String, Arc<Quota>> = limits.into_iter().map(quota).collect();
        let accepted = |KeyEntry { id, name, digest, scopes, expires, .. }: KeyEntry| {
            let quota = quotas.get(&name).map(Arc::clone).unwrap_or_default();
            AcceptedKey { digest, expires, client: Arc::new(Client::new(&name, &id, scopes, quota)) }
        };
        *keys = file.keys.into_iter().map(accepted).collect();
        self.reloads.send_replace(());
        Ok(keys.len())
    }

    /// Returns the ids of the keys.
    #[must_use]
    pub fn ids(&self) -> BTreeSet<String> {
        let keys = self.keys.read().unwrap_or_else(PoisonError::into_inner);
        keys.iter().filter_map(|key| key.client.key_id().map(str::to_owned)).collect()
    }

    /// Returns true as long as the key of a client that was accepted before is there and has not expired.
    #[must_use]
    pub fn still_accepts(&self, client: &Client, now: OffsetDateTime) -> bool {
        self.expiry(client).is_some_and(|expires| expires.is_none_or(|expires| now < expires))
    }

    /// Returns once the key of a client is not accepted any more.
    pub async fn refused(&self, client: &Client) {
        let mut reloads = self.reloads.subscribe();
        while let Some(expires) = self.expiry(client) {
            let left = expires.map(|expires| expires - OffsetDateTime::now_utc());
            if left.is_some_and(|left| !left.is_positive()) {
                return;
            }
            // A clock that is set forward ends a key early, which is seen within this time.
            let left = left.and_then(|left| left.try_into().ok()).unwrap_or(LONGEST_SLEEP).min(LONGEST_SLEEP);
            // A passed time is no error, and this ring holds the other end of the channel.
            let _ = tokio::time::timeout(left, reloads.changed()).await;
        }
    }

    /// Returns when the key of a client expires, if it does; `None` if the key is not there.
    fn expiry(&self, client: &Client) -> Option<Option<OffsetDateTime>> {
        let keys = self.keys.read().unwrap_or_else(PoisonError::into_inner);
        keys.iter().find(|key| key.client.key_id() == client.key_id()).map(|key| key.expires)
    }

    /// The client that has this secret. Takes the same time for every secret.
    pub fn authenticate(&self, secret: &str, now: OffsetDateTime) -> Result<Arc<Client>, RefusedKey> {
        let digest = SecretDigest::new(secret);
        let keys = self.keys.read().unwrap_or_else(PoisonError::into_inner);
        let mut accepted = None;
        for key in keys.iter() {
            if key.digest.is(&digest) {
                accepted = Some(key);
            }
        }
        let AcceptedKey { expires, client, .. } = accepted.ok_or(RefusedKey::Unknown)?;
        match expires {
            Some(expires) if *expires <= now => Err(RefusedKey::Expired),
            _ => Ok(Arc::clone(client)),
        }
    }
}

/// A client, as its key says who it is.
#[derive(Clone, Debug)]
pub struct Client {
    /// It sees everything if the key has the scope `admin`.
    principal: Principal,
    /// Id of its key; none without keys.
    key_id: Option<Arc<str>>,
    scopes: Vec<KeyScope>,
    /// Limits that all its keys share, and their usage.
    pub quota: Arc<Quota>,
}

impl Client {
    #[must_use]
    pub fn new(name: &str, key_id: &str, scopes: Vec<KeyScope>, quota: Arc<Quota>) -> Self {
        let principal = Principal::new(name, scopes.contains(&KeyScope::Admin));
        Self { principal, key_id: Some(key_id.into()), scopes, quota }
    }

    /// Whoever comes where there are no keys: it may do everything.
    #[must_use]
    pub fn without_keys() -> Self {
        let scopes = vec![KeyScope::Score, KeyScope::Audit, KeyScope::Admin];
        Self { principal: Principal::default(), key_id: None, scopes, quota: Arc::default() }
    }

    /// Whoever comes without a key where there are keys: it may do nothing.
    #[must_use]
    pub fn stranger() -> Self {
        Self { principal: Principal::default().alone(), scopes: Vec::new(), ..Self::without_keys() }
    }

    /// Its name, to which jobs and datasets belong; empty without keys.
    #[must_use]
    pub fn name(&self) -> &str {
        self.principal.name()
    }

    #[must_use]
    pub fn principal(&self) -> &Principal {
        &self.principal
    }

    /// Id of its key; none without keys.
    #[must_use]
    pub fn key_id(&self) -> Option<&str> {
        self.key_id.as_deref()
    }

    #[must_use]
    pub fn may(&self, scope: KeyScope) -> bool {
        self.scopes.contains(&scope)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::access::{KeyScope, Secret};
    use time::Duration;

    const NOW: OffsetDateTime = OffsetDateTime::UNIX_EPOCH;

    fn entry(name: &str, secret: &Secret, expires: Option<OffsetDateTime>) -> KeyEntry {
        KeyEntry {
            id: secret.digest().key_id(),
            name: name.to_owned(),
            digest: secret.digest(),
            scopes: vec![KeyScope::Score],
            created: NOW,
            expires,
            limits: ClientLimits { requests: Some(1), ..ClientLimits::default() },
        }
    }

    #[test]
    fn a_key_is_accepted_until_it_expires_or_is_revoked() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("keys.toml");
        let [alice, bob] = [Secret::generate().unwrap(), Secret::generate().unwrap()];
        let until = NOW + Duration::HOUR;
        let mut file = KeyFile { keys: vec![entry("alice", &alice, None), entry("bob", &bob, Some(until))] };
        file.write(&path).unwrap();
        let ring = Keyring::open(&path).unwrap();
        let name = |secret: &str, now| ring.authenticate(secret, now).map(|client| client.name().to_owned());
        assert_eq!(name(alice.reveal(), NOW), Ok("alice".to_owned()));
        assert_eq!((name(bob.reveal(), NOW), name(bob.reveal(), until)), (Ok("bob".into()), Err(RefusedKey::Expired)));
        assert_eq!(name(&alice.reveal()[1..], NOW), Err(RefusedKey::Unknown));
        let client = ring.authenticate(alice.reveal(), NOW).unwrap();
        assert!(client.may(KeyScope::Score) && !client.may(KeyScope::Admin));
        // Requests in flight stay in flight when the file is read again.
        let permit = client.quota.begin().unwrap();
        file.keys.pop();
        file.write(&path).unwrap();
        assert_eq!(ring.reload().unwrap(), 1);
        assert_eq!(name(bob.reveal(), NOW), Err(RefusedKey::Unknown));
        assert!(ring.authenticate(alice.reveal(), NOW).unwrap().quota.begin().is_err());
        drop(permit);
        // A file that cannot be read changes nothing.
        std::fs::write(&path, "[[keys]]").unwrap();
        assert!(ring.reload().is_err());
        assert!(name(alice.reveal(), NOW).is_ok());
    }
}
