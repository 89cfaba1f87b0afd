//! The steps that write to standard output and standard error.

use std::num::{NonZeroU64, NonZeroUsize};
use std::path::PathBuf;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::hex::Hex;
use super::step::{is_default, millis};

/// An output stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Stream {
    /// `"stdout"`
    #[default]
    Stdout,
    /// `"stderr"`
    Stderr,
}

/// Text for the steps `line` and `raw`:
/// `line = { text = "…", hex = "ff fe", to = "stdout", repeat = 1000, interval_ms = 5 }`.
///
/// It is created from a string or from bytes. Bytes that are not UTF-8 are stored as hexadecimal digits.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Text {
    #[serde(default, skip_serializing_if = "is_default", rename = "text")]
    pub(super) template: String,
    /// Bytes after the text.
    #[serde(default, skip_serializing_if = "is_default")]
    pub(super) hex: Hex,
    #[serde(default, skip_serializing_if = "is_default")]
    pub(super) to: Stream,
    #[serde(default, skip_serializing_if = "is_default")]
    pub(super) repeat: Option<u64>,
    #[serde(default, skip_serializing_if = "is_default")]
    pub(super) interval_ms: u64,
}

impl Text {
    /// Sets the pause between copies, in whole milliseconds. Without it, copies are written in large pieces.
    #[must_use]
    pub fn interval(mut self, pause: Duration) -> Self {
        self.interval_ms = millis(pause);
        self
    }
}

impl From<&str> for Text {
    fn from(text: &str) -> Self {
        text.to_owned().into()
    }
}

impl From<String> for Text {
    fn from(text: String) -> Self {
        Self {
            template: text,
            ..Self::default()
        }
    }
}

impl From<Vec<u8>> for Text {
    fn from(bytes: Vec<u8>) -> Self {
        match String::from_utf8(bytes) {
            Ok(text) => text.into(),
            Err(error) => Self {
                hex: Hex(error.into_bytes()),
                ..Self::default()
            },
        }
    }
}

impl From<&[u8]> for Text {
    fn from(bytes: &[u8]) -> Self {
        bytes.to_vec().into()
    }
}

impl<const N: usize> From<&[u8; N]> for Text {
    fn from(bytes: &[u8; N]) -> Self {
        bytes.to_vec().into()
    }
}

/// One very long line, written in pieces and never completely in memory: `big_line = { bytes = 100_000_000,
/// prefix = '{"text":"', suffix = '"}', fill = "x", to = "stdout" }`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct BigLine {
    pub(super) bytes: u64,
    #[serde(default, skip_serializing_if = "is_default")]
    pub(super) prefix: String,
    #[serde(default, skip_serializing_if = "is_default")]
    pub(super) suffix: String,
    #[serde(default = "default_fill", deserialize_with = "ascii")]
    pub(super) fill: char,
    #[serde(default, skip_serializing_if = "is_default")]
    pub(super) to: Stream,
}

impl BigLine {
    /// Creates a line with this many fill bytes, in addition to prefix, suffix and newline.
    pub fn new(bytes: u64) -> Self {
        Self {
            bytes,
            prefix: String::new(),
            suffix: String::new(),
            fill: default_fill(),
            to: Stream::default(),
        }
    }
}

/// Plays a recorded file byte for byte: `play = { file = "…", first = 1, last = 20, chunk = 7, delay_ms = 5,
/// garbage_every = 3, to = "stdout" }`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Play {
    pub(super) file: PathBuf,
    #[serde(default, skip_serializing_if = "is_default")]
    pub(super) first: Option<u64>,
    #[serde(default, skip_serializing_if = "is_default")]
    pub(super) last: Option<u64>,
    #[serde(default, skip_serializing_if = "is_default")]
    pub(super) chunk: Option<NonZeroUsize>,
    #[serde(default, skip_serializing_if = "is_default")]
    pub(super) delay_ms: u64,
    #[serde(default, skip_serializing_if = "is_default")]
    pub(super) garbage_every: Option<NonZeroU64>,
    #[serde(default, skip_serializing_if = "is_default")]
    pub(super) to: Stream,
}

impl Play {
    /// Plays all lines of this file.
    pub fn new(file: impl Into<PathBuf>) -> Self {
        Self {
            file: file.into(),
            first: None,
            last: None,
            chunk: None,
            delay_ms: 0,
            garbage_every: None,
            to: Stream::default(),
        }
    }

    /// Writes pieces of this many bytes, independent of line ends. 0 means whole lines.
    #[must_use]
    pub fn chunk(mut self, bytes: usize) -> Self {
        self.chunk = NonZeroUsize::new(bytes);
        self
    }

    /// Sets the pause after each line or chunk, in whole milliseconds.
    #[must_use]
    pub fn delay(mut self, pause: Duration) -> Self {
        self.delay_ms = millis(pause);
        self
    }

    /// Inserts a line that is not JSON after each group of this many lines, except the last. 0 means none.
    #[must_use]
    pub fn garbage_every(mut self, lines: u64) -> Self {
        self.garbage_every = NonZeroU64::new(lines);
        self
    }
}

impl<P: Into<PathBuf>> From<P> for Play {
    fn from(file: P) -> Self {
        Self::new(file)
    }
}

/// Meaningless text in lines of 64 bytes: `flood = { bytes = 10_000_000, to = "stderr", concurrent = true }`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Flood {
    pub(super) bytes: u64,
    #[serde(default = "stderr")]
    pub(super) to: Stream,
    #[serde(default, skip_serializing_if = "is_default")]
    pub(super) concurrent: bool,
}

impl Flood {
    /// Writes this many bytes to standard error.
    pub fn new(bytes: u64) -> Self {
        Self {
            bytes,
            to: Stream::Stderr,
            concurrent: false,
        }
    }

    /// Writes concurrently with the rest of the script, which continues immediately.
    ///
    /// The end of the script waits for the flood; the step `exit` does not.
    #[must_use]
    pub fn concurrent(mut self) -> Self {
        self.concurrent = true;
        self
    }
}

impl From<u64> for Flood {
    fn from(bytes: u64) -> Self {
        Self::new(bytes)
    }
}

teamster_core::setters! {
    Text {
        /// Sets the stream. Default: standard output.
        set to: Stream,
        /// Sets the number of copies. `{n}` in the text is replaced by 0, 1, 2 and so on.
        some repeat: u64,
    }
    BigLine {
        /// Sets the text before the fill.
        into prefix: String,
        /// Sets the text after the fill.
        into suffix: String,
        /// Sets the fill character. Default: `x`. It must be ASCII, which is checked when the script is read.
        set fill: char,
        /// Sets the stream. Default: standard output.
        set to: Stream,
    }
    Play {
        /// Sets the first line, counted from 1.
        some first: u64,
        /// Sets the last line, counted from 1.
        some last: u64,
        /// Sets the stream. Default: standard output.
        set to: Stream,
    }
    Flood {
        /// Sets the stream. Default: standard error.
        set to: Stream,
    }
}

fn default_fill() -> char {
    'x'
}

fn stderr() -> Stream {
    Stream::Stderr
}

/// Sizes are in bytes, so a fill character of several bytes would not match them.
fn ascii<'de, D: serde::Deserializer<'de>>(deserializer: D) -> Result<char, D::Error> {
    let fill = char::deserialize(deserializer)?;
    if fill.is_ascii() {
        Ok(fill)
    } else {
        Err(serde::de::Error::custom("`fill` is not an ASCII character"))
    }
}
