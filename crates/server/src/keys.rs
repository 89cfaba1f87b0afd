//! The valid tokens, and who they are.

use std::io::ErrorKind;
use std::path::PathBuf;
use std::sync::Mutex;
use std::time::Duration;

use ring::hmac;
use serde::{Deserialize, Serialize};
use teamster_core::sync::lock;
use teamster_core::time::epoch_ms;
use tokio::time::{MissedTickBehavior, interval};

use crate::token::{FileVersion, TokenInfo, hash, hex};
use crate::{OwnerToken, Scope, TokenError, Tokens};

/// The lifetime of a browser login.
const LOGIN: Duration = Duration::from_hours(30 * 24);
/// The interval of checks whether the token of a response in progress is still valid.
const CHECK: Duration = Duration::from_secs(1);
/// The name of the owner's token in logins. Other token names cannot contain parentheses.
pub(crate) const OWNER: &str = "(owner)";

/// The authenticated sender of a request.
#[derive(Debug, Clone)]
pub(crate) struct Caller {
    pub(crate) name: String,
    pub(crate) scopes: Vec<Scope>,
    /// The caller's token; `None` on a Unix socket.
    pub(crate) key: Option<Key>,
}

impl Caller {
    /// The caller's name, as session logs record it.
    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    pub(crate) fn may(&self, scope: Scope) -> bool {
        self.scopes.iter().any(|own| own.allows(scope))
    }
}

/// All valid tokens.
#[derive(Debug)]
pub(crate) struct Keys {
    /// The file of the owner's token.
    owner: Option<PathBuf>,
    tokens: Tokens,
    cache: Mutex<CachedTokens>,
}

/// The token files as of their last read.
#[derive(Debug, Default)]
struct CachedTokens {
    /// Versions of the owner's file and of that of the named tokens. `None` before the first read of both.
    versions: Option<[Option<FileVersion>; 2]>,
    keys: Vec<Key>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Key {
    pub(crate) name: String,
    hash: String,
    pub(crate) scopes: Vec<Scope>,
}

impl From<&TokenInfo> for Key {
    fn from(token: &TokenInfo) -> Self {
        Self {
            name: token.name.clone(),
            hash: token.hash().to_owned(),
            scopes: token.scopes.clone(),
        }
    }
}

impl Keys {
    pub(crate) fn new(owner: Option<&OwnerToken>, tokens: Tokens) -> Self {
        Self {
            owner: owner.map(|owner| owner.path().to_owned()),
            tokens,
            cache: Mutex::default(),
        }
    }

    /// Returns the tokens that are valid now. Reads the files again if they changed.
    fn current(&self) -> Result<Vec<Key>, TokenError> {
        let owner = self.owner.as_deref();
        let versions = Some([owner.and_then(FileVersion::of), self.tokens.version()]);
        let mut cache = lock(&self.cache);
        if cache.versions != versions {
            // An owner's token that cannot be read is not valid: it may be the one that is being replaced.
            let owner = owner.map(OwnerToken::read);
            // The error may be of the process, not of the file: the next call reads it again.
            let is_whole = !matches!(owner, Some(Err(_)));
            let owner = owner.and_then(Result::ok).map(|owner| Key {
                name: OWNER.to_owned(),
                hash: hash(owner.secret()),
                scopes: vec![Scope::Admin],
            });
            let named = self.tokens.list()?;
            let keys = owner
                .into_iter()
                .chain(named.iter().map(Key::from))
                .collect();
            let versions = versions.filter(|_| is_whole);
            *cache = CachedTokens { versions, keys };
        }
        Ok(cache.keys.clone())
    }

    /// Returns whether this token is valid still. It is an error if that cannot be known.
    pub(crate) fn is_valid(&self, key: &Key) -> Result<bool, TokenError> {
        if self.current()?.contains(key) {
            return Ok(true);
        }
        match self.owner.as_deref().filter(|_| key.name == OWNER) {
            Some(owner) => match OwnerToken::read(owner) {
                Ok(owner) => Ok(hash(owner.secret()) == key.hash),
                Err(TokenError::Io { error, .. }) if error.kind() == ErrorKind::NotFound => {
                    Ok(false)
                }
                Err(error) => Err(error),
            },
            None => Ok(false),
        }
    }

    /// Waits until this token is revoked or replaced.
    pub(crate) async fn revoked(&self, key: &Key) {
        let mut ticks = interval(CHECK);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            ticks.tick().await;
            // Tokens that cannot be read are not revoked.
            if self.is_valid(key).is_ok_and(|is_valid| !is_valid) {
                return;
            }
        }
    }

    pub(crate) fn by_secret(&self, secret: &str) -> Result<Option<Key>, TokenError> {
        // Comparing hashes leaks nothing about the secret through timing.
        let hash = hash(secret);
        Ok(self.current()?.into_iter().find(|key| key.hash == hash))
    }

    pub(crate) fn by_login(&self, login: &str) -> Result<Option<Key>, TokenError> {
        let mut parts = login.splitn(3, '.');
        let (Some(expires), Some(signature), Some(name)) =
            (parts.next(), parts.next(), parts.next())
        else {
            return Ok(None);
        };
        if expires
            .parse::<u64>()
            .ok()
            .is_none_or(|at| at <= epoch_ms())
        {
            return Ok(None);
        }
        let mut keys = self.current()?.into_iter();
        let key = keys.find(|key| key.name == name);
        // Hashes of signatures, for the same reason as above.
        Ok(key.filter(|key| hash(&key.sign(expires)) == hash(signature)))
    }

    /// Creates a login for the page's cookie, and returns it with its lifetime. It is valid for 30 days, or until the
    /// token is revoked. The server stores no logins, so they survive its restart.
    pub(crate) fn login(&self, secret: &str) -> Result<Option<(String, Duration)>, TokenError> {
        let expires = epoch_ms() + teamster_core::time::millis(LOGIN);
        let key = self.by_secret(secret)?;
        Ok(key.map(|key| {
            let expires = expires.to_string();
            let login = format!("{expires}.{}.{}", key.sign(&expires), key.name);
            (login, LOGIN)
        }))
    }
}

impl Key {
    fn sign(&self, expires: &str) -> String {
        let key = hmac::Key::new(hmac::HMAC_SHA256, self.hash.as_bytes());
        let signed = format!("teamster-login {expires} {}", self.name);
        hex(hmac::sign(&key, signed.as_bytes()).as_ref())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs::Permissions;
    use std::io::Write as _;
    use std::os::unix::fs::PermissionsExt as _;

    #[test]
    fn a_token_that_could_not_be_read_once_is_read_again() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("token");
        let owner = OwnerToken::read_or_make(&path).unwrap();
        let keys = Keys::new(Some(&owner), Tokens::at(folder.path().join("tokens")));
        let is_valid = || keys.by_secret(owner.secret()).unwrap().is_some();
        // A mode that is refused changes neither time, number nor length of the file.
        let set_mode =
            |mode| std::fs::set_permissions(&path, Permissions::from_mode(mode)).unwrap();
        set_mode(0o644);
        assert!(!is_valid());
        set_mode(0o600);
        assert!(is_valid());
    }

    #[test]
    fn an_owners_token_that_cannot_be_read_is_not_revoked() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("token");
        let owner = OwnerToken::read_or_make(&path).unwrap();
        let keys = Keys::new(Some(&owner), Tokens::at(folder.path().join("tokens")));
        let key = keys.by_secret(owner.secret()).unwrap().unwrap();
        assert!(keys.is_valid(&key).unwrap());
        // The file is another one, which is refused for its mode.
        std::fs::remove_file(&path).unwrap();
        std::fs::write(&path, format!("{}\n\n", owner.secret())).unwrap();
        let set_mode =
            |mode| std::fs::set_permissions(&path, Permissions::from_mode(mode)).unwrap();
        set_mode(0o644);
        let unknown = keys.is_valid(&key);
        assert!(
            matches!(unknown, Err(TokenError::Readable { .. })),
            "{unknown:?}"
        );
        set_mode(0o600);
        assert!(keys.is_valid(&key).unwrap());
        std::fs::remove_file(&path).unwrap();
        assert!(!keys.is_valid(&key).unwrap());
    }

    #[tokio::test(start_paused = true)]
    async fn a_token_is_revoked_only_when_it_is_known_to_be() {
        let folder = tempfile::tempdir().unwrap();
        let owner = OwnerToken::read_or_make(&folder.path().join("token")).unwrap();
        let named = folder.path().join("tokens");
        let keys = Keys::new(Some(&owner), Tokens::at(&named));
        let key = keys.by_secret(owner.secret()).unwrap().unwrap();
        std::fs::create_dir(&named).unwrap();
        std::fs::write(named.join("tokens.json"), "{").unwrap();
        assert!(keys.current().is_err());
        let waited = tokio::time::timeout(CHECK * 3, keys.revoked(&key)).await;
        assert!(waited.is_err(), "it was not revoked");
        std::fs::remove_file(named.join("tokens.json")).unwrap();
        OwnerToken::replace(owner.path()).unwrap();
        keys.revoked(&key).await;
    }

    #[test]
    fn a_login_is_valid_until_its_time_is_over() {
        let folder = tempfile::tempdir().unwrap();
        let mut file = tempfile::NamedTempFile::new_in(folder.path()).unwrap();
        writeln!(file, "a-secret-of-the-owner").unwrap();
        let owner = OwnerToken::read(file.path()).unwrap();
        let keys = Keys::new(Some(&owner), Tokens::at(folder.path().join("tokens")));
        let (login, lifetime) = keys.login("a-secret-of-the-owner").unwrap().unwrap();
        assert_eq!(lifetime, Duration::from_hours(30 * 24));
        assert!(keys.by_login(&login).unwrap().is_some());

        let key = keys.current().unwrap().remove(0);
        let signed_for = |at: u64| format!("{at}.{}.{}", key.sign(&at.to_string()), key.name);
        let now = epoch_ms();
        let valid = |login: &str| keys.by_login(login).unwrap().is_some();
        assert!(valid(&signed_for(now + 60_000)));
        assert!(!valid(&signed_for(now)), "its time is over");
        // Another time is not what was signed.
        let (_, rest) = login.split_once('.').unwrap();
        assert!(!valid(&format!("{}.{rest}", now + 60_000)));
    }
}
