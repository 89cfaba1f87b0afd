//! Images that go with a prompt.

use std::io;
use std::path::{Path, PathBuf};

use serde::Deserialize;

use crate::{AgentError, ErrorKind};

/// An image that goes with the prompt.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Image {
    /// Media type, such as `image/png`.
    pub media_type: String,
    /// Source of the data.
    pub source: ImageSource,
}

impl Image {
    /// Creates an image from a file.
    pub fn file(media_type: impl Into<String>, path: impl Into<PathBuf>) -> Self {
        Self {
            media_type: media_type.into(),
            source: ImageSource::Path(path.into()),
        }
    }

    /// Creates an image from bytes in memory.
    pub fn bytes(media_type: impl Into<String>, bytes: impl Into<Vec<u8>>) -> Self {
        Self {
            media_type: media_type.into(),
            source: ImageSource::Bytes(bytes.into()),
        }
    }

    /// Returns the media type of an image by its first bytes, if services take it: PNG, JPEG, GIF or WebP.
    ///
    /// ```
    /// use teamster_core::Image;
    /// assert_eq!(Image::type_of(b"GIF89a"), Some("image/gif"));
    /// assert_eq!(Image::type_of(b"a text"), None);
    /// ```
    pub fn type_of(bytes: &[u8]) -> Option<&'static str> {
        if bytes.starts_with(b"\x89PNG\r\n\x1a\n") {
            Some("image/png")
        } else if bytes.starts_with(b"\xff\xd8\xff") {
            Some("image/jpeg")
        } else if bytes.starts_with(b"GIF8") {
            Some("image/gif")
        } else if bytes.starts_with(b"RIFF") && bytes.get(8..12) == Some(&b"WEBP"[..]) {
            Some("image/webp")
        } else {
            None
        }
    }

    /// Returns the bytes of an image in memory.
    ///
    /// # Errors
    ///
    /// Fails for an image that is still a file. The engine reads files before a provider needs their bytes
    /// ([`CliProvider::reads_image`](crate::CliProvider::reads_image)).
    pub fn in_memory(&self) -> Result<&[u8], AgentError> {
        match &self.source {
            ImageSource::Bytes(bytes) => Ok(bytes),
            ImageSource::Path(path) => {
                let problem = format!("{} was not read before the launch", path.display());
                Err(AgentError::refused("images", problem))
            }
        }
    }

    /// Creates the error of an unreadable image, for providers that check images before they start the CLI.
    pub fn unreadable(path: &Path, error: &io::Error) -> AgentError {
        let problem = format!("{} cannot be read: {error}", path.display());
        AgentError::refused("images", problem).kind(ErrorKind::NotFound)
    }
}

/// Source of an image.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub enum ImageSource {
    /// A file, which is read when the run starts.
    Path(PathBuf),
    /// Bytes in memory.
    Bytes(Vec<u8>),
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_bytes_in_memory_are_read() {
        let image = Image::bytes("image/png", [1_u8, 2]);
        assert_eq!(
            (&*image.media_type, image.in_memory()),
            ("image/png", Ok(&[1, 2][..]))
        );
        let file = Image::file("image/png", "/a.png");
        let error = file.in_memory().unwrap_err();
        assert_eq!(
            error.message,
            "images: /a.png was not read before the launch"
        );
        let missing = io::Error::from(io::ErrorKind::NotFound);
        let error = Image::unreadable(Path::new("/a.png"), &missing);
        assert_eq!(
            (error.kind, error.parameter()),
            (ErrorKind::NotFound, Some("images"))
        );
        assert!(
            error.message.starts_with("images: /a.png cannot be read: "),
            "{error}"
        );
    }
}
