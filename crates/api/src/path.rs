//! Paths in JSON: in a spec a string if the path is UTF-8, else its bytes; in what is shown always a string.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// A path as it is written.
#[derive(Serialize)]
#[serde(untagged)]
enum Written<'a> {
    Text(&'a str),
    Other(&'a std::ffi::OsStr),
}

#[derive(Deserialize)]
#[serde(untagged)]
enum Read {
    Text(String),
    Other(OsString),
}

impl<'a> From<&'a Path> for Written<'a> {
    fn from(path: &'a Path) -> Self {
        path.to_str()
            .map_or_else(|| Self::Other(path.as_os_str()), Self::Text)
    }
}

impl From<Read> for PathBuf {
    fn from(read: Read) -> Self {
        match read {
            Read::Text(text) => text.into(),
            Read::Other(text) => text.into(),
        }
    }
}

/// A path.
pub(crate) mod required {
    use super::{Deserialize, Deserializer, Path, PathBuf, Read, Serialize, Serializer, Written};

    pub(crate) fn serialize<S: Serializer>(path: &Path, serializer: S) -> Result<S::Ok, S::Error> {
        Written::from(path).serialize(serializer)
    }

    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(
        deserializer: D,
    ) -> Result<PathBuf, D::Error> {
        Ok(Read::deserialize(deserializer)?.into())
    }
}

/// An optional path.
pub(crate) mod optional {
    use super::{Deserialize, Deserializer, PathBuf, Read, Serialize, Serializer, Written};

    #[expect(clippy::ref_option, reason = "serde passes the field")]
    pub(crate) fn serialize<S: Serializer>(
        path: &Option<PathBuf>,
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        path.as_deref().map(Written::from).serialize(serializer)
    }

    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(
        deserializer: D,
    ) -> Result<Option<PathBuf>, D::Error> {
        Ok(Option::<Read>::deserialize(deserializer)?.map(PathBuf::from))
    }
}

/// Serializes an optional path that is shown. What is not UTF-8 in it is replaced.
#[expect(clippy::ref_option, reason = "serde passes the field")]
pub(crate) fn optional_shown<S: Serializer>(
    path: &Option<PathBuf>,
    serializer: S,
) -> Result<S::Ok, S::Error> {
    path.as_deref()
        .map(Path::to_string_lossy)
        .serialize(serializer)
}

/// Serializes paths that are shown. What is not UTF-8 in them is replaced.
pub(crate) fn list_shown<S: Serializer>(
    paths: &[PathBuf],
    serializer: S,
) -> Result<S::Ok, S::Error> {
    serializer.collect_seq(paths.iter().map(|path| path.to_string_lossy()))
}

/// A list of paths.
pub(crate) mod list {
    use super::{Deserialize, Deserializer, PathBuf, Read, Serializer, Written};

    pub(crate) fn serialize<S: Serializer>(
        paths: &[PathBuf],
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(paths.iter().map(|path| Written::from(path.as_path())))
    }

    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(
        deserializer: D,
    ) -> Result<Vec<PathBuf>, D::Error> {
        let paths = Vec::<Read>::deserialize(deserializer)?;
        Ok(paths.into_iter().map(PathBuf::from).collect())
    }
}
