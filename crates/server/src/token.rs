//! Access tokens: the owner's, and named ones with scopes, which are stored as hashes.

use std::fmt::{self, Write as _};
use std::fs::{self, File, OpenOptions};
use std::io::{self, ErrorKind, Read};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use ring::digest;
use ring::rand::{SecureRandom, SystemRandom};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use teamster_core::time::epoch_ms;
use teamster_process::{FileMode, make_private_folder, open_regular_file, replace_file};

use crate::private_file::{folder_of, make_once, no_random};

/// The file of the tokens with scopes.
const FILE: &str = "tokens.json";
/// The lock file for changes of the tokens.
const LOCK: &str = "tokens.lock";
/// The prefix of generated tokens, by which secret scanners recognize them.
const PREFIX: &str = "tms_";
/// The number of random bytes in a generated token.
const BYTES: usize = 32;
/// The maximum size of a token's file that is read, in bytes.
const LONGEST: u64 = 64 << 10;
/// The minimum length of a token that a user chooses, in bytes.
const SHORTEST: usize = 16;

/// A permission of a token.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Scope {
    /// Read runs, requests, agents and usage.
    Read,
    /// Start and stop runs. Includes `read`.
    Run,
    /// Answer requests. Includes `read`.
    Answer,
    /// Fire triggers. Does not include `read`.
    Trigger,
    /// Everything, including the control of agents.
    Admin,
}

impl Scope {
    /// All scopes.
    pub const ALL: [Self; 5] = [
        Self::Read,
        Self::Run,
        Self::Answer,
        Self::Trigger,
        Self::Admin,
    ];

    /// Returns the scope's name.
    pub fn name(self) -> &'static str {
        match self {
            Self::Read => "read",
            Self::Run => "run",
            Self::Answer => "answer",
            Self::Trigger => "trigger",
            Self::Admin => "admin",
        }
    }

    /// Returns `true` if a token with this scope may perform operations that require `needed`.
    pub fn allows(self, needed: Self) -> bool {
        let reads = needed == Self::Read && self != Self::Trigger;
        self == needed || self == Self::Admin || reads
    }
}

impl fmt::Display for Scope {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// An error of reading or changing tokens.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TokenError {
    /// Other users can read the file.
    #[error(
        "{}: other users can read this token; `chmod 600 {}`, and replace it if it may have been read",
        path.display(),
        path.display()
    )]
    Readable {
        /// The file.
        path: PathBuf,
    },
    /// The file has no token of at least 16 ASCII characters.
    #[error(
        "{}: expected one line with a token of at least {SHORTEST} characters, such as `openssl rand -hex 32` prints",
        path.display()
    )]
    TooShort {
        /// The file.
        path: PathBuf,
    },
    /// A token with this name exists.
    #[error("a token \"{0}\" exists already: revoke it first, or choose another name")]
    Exists(String),
    /// No token has this name.
    #[error("no token \"{0}\": `teamster token list` shows those that exist")]
    NotFound(String),
    /// The name is not valid.
    #[error(
        "\"{0}\" cannot be the name of a token: use up to 64 letters, digits, `-`, `_` and `.`"
    )]
    InvalidName(String),
    /// A file operation failed.
    #[error("cannot {action} {}: {error}", path.display())]
    Io {
        /// The operation, such as `read`.
        action: &'static str,
        /// The file or folder.
        path: PathBuf,
        /// The system's error.
        error: io::Error,
    },
}

impl TokenError {
    fn io(action: &'static str, path: &Path) -> impl FnOnce(io::Error) -> Self {
        let path = path.to_owned();
        move |error| Self::Io {
            action,
            path,
            error,
        }
    }
}

/// A named token with scopes, without its secret.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct TokenInfo {
    /// The token's name.
    pub name: String,
    /// The token's scopes.
    pub scopes: Vec<Scope>,
    /// The time of creation, in milliseconds since the Unix epoch.
    pub created_at: u64,
    /// The SHA-256 of the secret, in hexadecimal digits.
    hash: String,
}

impl TokenInfo {
    pub(crate) fn hash(&self) -> &str {
        &self.hash
    }
}

/// The named tokens of a user, in a folder that only the user can read.
#[derive(Debug, Clone)]
pub struct Tokens {
    folder: PathBuf,
}

#[derive(Default, Serialize, Deserialize)]
struct Content {
    tokens: Vec<TokenInfo>,
}

impl Tokens {
    /// Creates a handle to the tokens in this folder. Adding the first token creates the folder.
    pub fn at(folder: impl Into<PathBuf>) -> Self {
        Self {
            folder: folder.into(),
        }
    }

    pub(crate) fn folder(&self) -> &Path {
        &self.folder
    }

    /// Returns all tokens in the order of their creation.
    pub fn list(&self) -> Result<Vec<TokenInfo>, TokenError> {
        let path = self.folder.join(FILE);
        let mut file = match open_regular_file(OpenOptions::new().read(true), &path) {
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Vec::new()),
            file => file.map_err(TokenError::io("read", &path))?,
        };
        let mut text = Vec::new();
        file.read_to_end(&mut text)
            .map_err(TokenError::io("read", &path))?;
        let content: Content = serde_json::from_slice(&text)
            .map_err(|error| TokenError::io("read", &path)(error.into()))?;
        Ok(content.tokens)
    }

    /// Creates a token and returns its secret, which is not stored.
    pub fn add(&self, name: &str, scopes: &[Scope]) -> Result<String, TokenError> {
        let fits = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
        if name.is_empty() || name.len() > 64 || !name.chars().all(fits) {
            return Err(TokenError::InvalidName(name.to_owned()));
        }
        let secret = random().map_err(TokenError::io("create a token in", &self.folder))?;
        self.change(|tokens| {
            if tokens.iter().any(|token| token.name == name) {
                return Err(TokenError::Exists(name.to_owned()));
            }
            let mut scopes = scopes.to_vec();
            scopes.sort();
            scopes.dedup();
            tokens.push(TokenInfo {
                name: name.to_owned(),
                scopes,
                created_at: epoch_ms(),
                hash: hash(&secret),
            });
            Ok(())
        })?;
        Ok(secret)
    }

    /// Revokes a token. Running servers reject it from their next request on.
    pub fn revoke(&self, name: &str) -> Result<(), TokenError> {
        self.change(|tokens| {
            let count = tokens.len();
            tokens.retain(|token| token.name != name);
            if tokens.len() == count {
                return Err(TokenError::NotFound(name.to_owned()));
            }
            Ok(())
        })
    }

    /// Returns the version of the token file; `None` if there is none.
    pub(crate) fn version(&self) -> Option<FileVersion> {
        FileVersion::of(&self.folder.join(FILE))
    }

    fn change(
        &self,
        change: impl FnOnce(&mut Vec<TokenInfo>) -> Result<(), TokenError>,
    ) -> Result<(), TokenError> {
        make_private_folder(&self.folder).map_err(TokenError::io("create", &self.folder))?;
        let path = self.folder.join(LOCK);
        let lock = private(&path).map_err(TokenError::io("open", &path))?;
        lock.lock().map_err(TokenError::io("lock", &path))?;
        let mut tokens = self.list()?;
        change(&mut tokens)?;
        let path = self.folder.join(FILE);
        let written = serde_json::to_vec_pretty(&Content { tokens })
            .map_err(io::Error::from)
            .and_then(|json| replace_file(&path, &json, FileMode::Private));
        written.map_err(TokenError::io("write", &path))
    }
}

/// Metadata that changes with the content of a file.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct FileVersion {
    modified: SystemTime,
    inode: u64,
    length: u64,
}

impl FileVersion {
    pub(crate) fn of(path: &Path) -> Option<Self> {
        let about = fs::metadata(path).ok()?;
        Some(Self {
            modified: about.modified().ok()?,
            inode: about.ino(),
            length: about.len(),
        })
    }
}

/// The owner's token, which allows everything. Its file holds it in plain text, so that the user's programs can read
/// it.
#[derive(Clone)]
pub struct OwnerToken {
    path: PathBuf,
    secret: String,
}

teamster_core::debug_fields!(OwnerToken { path });

impl OwnerToken {
    /// Reads the token from this file.
    ///
    /// # Errors
    ///
    /// Fails if the file cannot be read, if other users can read it, or if its token is shorter than 16 characters.
    pub fn read(path: &Path) -> Result<Self, TokenError> {
        let file = open_regular_file(OpenOptions::new().read(true), path)
            .map_err(TokenError::io("read", path))?;
        let about = file.metadata().map_err(TokenError::io("read", path))?;
        if about.permissions().mode() & 0o077 != 0 {
            return Err(TokenError::Readable {
                path: path.to_owned(),
            });
        }
        let mut text = String::new();
        file.take(LONGEST)
            .read_to_string(&mut text)
            .map_err(TokenError::io("read", path))?;
        let secret = text.trim();
        if secret.len() < SHORTEST || secret.contains(|c: char| !c.is_ascii_graphic()) {
            return Err(TokenError::TooShort {
                path: path.to_owned(),
            });
        }
        Ok(Self {
            path: path.to_owned(),
            secret: secret.to_owned(),
        })
    }

    /// Reads the token from this file, and creates the file if it is missing.
    pub fn read_or_make(path: &Path) -> Result<Self, TokenError> {
        let folder = folder_of(path);
        make_private_folder(folder).map_err(TokenError::io("create", folder))?;
        let made = random().and_then(|secret| make_once(path, &format!("{secret}\n")));
        if path.exists() {
            return Self::read(path);
        }
        let error = made.err().unwrap_or_else(|| ErrorKind::NotFound.into());
        Err(TokenError::io("write", path)(error))
    }

    /// Replaces the token in this file by a new one. Running servers refuse the previous one, and all logins with it,
    /// from then on.
    pub fn replace(path: &Path) -> Result<Self, TokenError> {
        let folder = folder_of(path);
        make_private_folder(folder).map_err(TokenError::io("create", folder))?;
        let written = random().and_then(|secret| {
            replace_file(path, format!("{secret}\n").as_bytes(), FileMode::Private)
        });
        written.map_err(TokenError::io("write", path))?;
        Self::read(path)
    }

    /// Returns the token's file.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Returns the secret.
    pub fn secret(&self) -> &str {
        &self.secret
    }
}

/// Returns the SHA-256 of a secret in hexadecimal. Tokens are random, so a slower hash would add no protection.
pub(crate) fn hash(secret: &str) -> String {
    hex(digest::digest(&digest::SHA256, secret.as_bytes()).as_ref())
}

/// Encodes bytes in hexadecimal.
pub(crate) fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |mut text, byte| {
        // Writing to a string cannot fail.
        let _ = write!(text, "{byte:02x}");
        text
    })
}

fn random() -> io::Result<String> {
    let mut bytes = [0; BYTES];
    SystemRandom::new().fill(&mut bytes).map_err(no_random)?;
    Ok(format!("{PREFIX}{}", URL_SAFE_NO_PAD.encode(bytes)))
}

fn private(path: &Path) -> io::Result<File> {
    OpenOptions::new()
        .write(true)
        .create(true)
        .truncate(false)
        .mode(0o600)
        .open(path)
}
