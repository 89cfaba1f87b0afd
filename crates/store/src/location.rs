//! Location of a database, and its text in messages.

use std::fmt;
use std::path::{Path, PathBuf};
use std::str::FromStr;

use percent_encoding::{NON_ALPHANUMERIC, percent_decode_str, utf8_percent_encode};
use sqlx::any::AnyConnectOptions;

use crate::StoreError;

#[derive(Clone)]
pub(crate) enum Location {
    /// Memory of this process.
    Memory,
    /// A file, by its absolute path.
    File(PathBuf),
    /// A server.
    Server {
        /// The options as given, including the password. Never shown.
        options: AnyConnectOptions,
        /// The URL without the password.
        shown: String,
    },
}

impl fmt::Display for Location {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Memory => f.write_str("memory"),
            Self::File(path) => write!(f, "{}", path.display()),
            Self::Server { shown, .. } => f.write_str(shown),
        }
    }
}

impl Location {
    pub(crate) fn parse(url: &str) -> Result<Self, StoreError> {
        let wrong = |reason: String| Err(StoreError::Url { reason });
        if url.is_empty() {
            return wrong("the name is empty; give a file or a postgres:// URL".into());
        }
        if url.contains('\0') {
            return wrong("the name has a NUL in it".into());
        }
        if let Some((scheme, rest)) = url.split_once(':') {
            match &*scheme.to_ascii_lowercase() {
                scheme @ ("postgres" | "postgresql") => {
                    return server(&format!("{scheme}:{rest}"), cfg!(feature = "postgres"));
                }
                "sqlite" => return sqlite(rest),
                _ => {}
            }
        }
        if url == ":memory:" {
            return Ok(Self::Memory);
        }
        file(url)
    }

    /// Returns the connection options for sqlx.
    pub(crate) fn options(&self) -> Result<AnyConnectOptions, sqlx::Error> {
        match self {
            Self::Memory => AnyConnectOptions::from_str("sqlite::memory:"),
            Self::File(path) => {
                // The path was parsed from a `str`, so it is UTF-8.
                let path = path.to_string_lossy();
                let encoded = utf8_percent_encode(&path, NON_ALPHANUMERIC);
                AnyConnectOptions::from_str(&format!("sqlite:{encoded}"))
            }
            Self::Server { options, .. } => Ok(options.clone()),
        }
    }

    /// Returns the connection options for a read-only file, which is read without its journal.
    pub(crate) fn immutable(&self) -> Result<AnyConnectOptions, sqlx::Error> {
        let mut options = self.options()?;
        if matches!(self, Self::File(_)) {
            let url = &mut options.database_url;
            url.set_query(Some("mode=ro&immutable=true"));
        }
        Ok(options)
    }
}

/// Parses the part after `sqlite:`.
fn sqlite(rest: &str) -> Result<Location, StoreError> {
    let wrong = |reason: &str| StoreError::Url {
        reason: reason.into(),
    };
    let rest = rest.strip_prefix("//").unwrap_or(rest);
    if rest == ":memory:" {
        return Ok(Location::Memory);
    }
    if rest.contains(['?', '#']) {
        return Err(wrong(
            "a sqlite: URL takes no parameters; a `?` or `#` of the file's name is written %3F or %23",
        ));
    }
    let path = percent_decode_str(rest).decode_utf8();
    let path = path.map_err(|_| wrong("the file's name is not UTF-8"))?;
    file(&path)
}

/// Returns why a name is most likely a mistyped URL rather than a file. The text does not repeat the name, which may
/// contain a password. A file with such a name would expose it.
fn mistyped(name: &str) -> Option<String> {
    const FILE: &str = "if a file is meant, write ./ in front";
    let explicit = ["/", "./", "../"].iter().any(|is| name.starts_with(is));
    // `//user:password@host/database`
    let explicit = explicit && !name.starts_with("//");
    if explicit {
        return None;
    }
    if let Some((scheme, _)) = name.split_once("://") {
        let is_scheme = |c: char| c.is_ascii_alphanumeric() || matches!(c, '+' | '-' | '.');
        let named = if !scheme.is_empty() && scheme.chars().all(is_scheme) {
            format!("databases of the kind `{scheme}` are not supported")
        } else {
            "unknown kind of URL".to_owned()
        };
        return Some(format!(
            "{named}; give a file, sqlite:PATH or postgres://USER@HOST/DATABASE, or {FILE}"
        ));
    }
    let lower = name.to_ascii_lowercase();
    let has_password = name
        .split_once(':')
        .is_some_and(|(_, rest)| rest.contains('@'))
        || ["password=", "host="]
            .iter()
            .any(|word| lower.contains(word));
    has_password.then(|| {
        format!(
            "this looks like a server with a user and a password, and not like a file; write \
             postgres://USER:PASSWORD@HOST:PORT/DATABASE, or {FILE}"
        )
    })
}

fn file(path: &str) -> Result<Location, StoreError> {
    if let Some(reason) = mistyped(path) {
        return Err(StoreError::Url { reason });
    }
    if path.is_empty() || path.contains('\0') {
        return Err(StoreError::Url {
            reason: "the file has no name, or one with a NUL in it".into(),
        });
    }
    match std::path::absolute(Path::new(path)) {
        Ok(path) => Ok(Location::File(path)),
        Err(error) => Err(StoreError::Url {
            reason: format!("{path}: {error}"),
        }),
    }
}

/// Parses the URL of a server, which can be opened only with its driver.
fn server(url: &str, has_driver: bool) -> Result<Location, StoreError> {
    let wrong = |reason: &str| StoreError::Url {
        reason: format!("{reason}; write postgres://USER:PASSWORD@HOST:PORT/DATABASE"),
    };
    if !url.contains("://") {
        return Err(wrong("`//` is missing behind the scheme"));
    }
    let options = AnyConnectOptions::from_str(url).map_err(|_| {
        wrong(
            "the URL cannot be read; other characters than letters, digits, `-`, `.`, `_` and `~` \
             of a user name or password are percent-encoded",
        )
    })?;
    let parsed = &options.database_url;
    // In `postgres://user:12/34@host/db` the password would be parsed as port and path, and would be shown.
    let rest = url.split_once("://").map_or("", |(_, rest)| rest);
    let behind_authority = rest.find(['/', '?', '#']).map_or("", |at| &rest[at..]);
    if behind_authority.contains('@') {
        return Err(wrong(
            "there is an `@` behind the host; `/`, `?`, `#` and `@` of a user name or password are \
             written %2F, %3F, %23 and %40",
        ));
    }
    let host = parsed.host_str().unwrap_or("localhost");
    let port = parsed.port().map(|port| format!(":{port}"));
    let port = port.unwrap_or_default();
    let shown = format!("{}://{host}{port}{}", parsed.scheme(), parsed.path());
    if !has_driver {
        return Err(StoreError::Open {
            location: shown,
            reason: "this program was built without the feature `postgres`, which those of releases have; \
                     use one of them, build it with `--features postgres`, or name a file"
                .into(),
        });
    }
    Ok(Location::Server { options, shown })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_server_without_its_driver_is_refused_with_the_next_step() {
        let url = "postgres://me:hunter2@host:5433/db?sslmode=require";
        assert!(matches!(server(url, true), Ok(Location::Server { .. })));
        let Err(error) = server(url, false) else {
            panic!("it is refused");
        };
        assert_eq!(
            error.to_string(),
            "cannot open the store postgres://host:5433/db: this program was built without the feature `postgres`, \
             which those of releases have; use one of them, build it with `--features postgres`, or name a file"
        );
        // A mistyped URL is reported as such.
        let mistyped = server("postgres:me:hunter2@host/db", false);
        assert!(matches!(mistyped, Err(StoreError::Url { .. })));
    }
}
