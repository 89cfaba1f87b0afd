//! Files of a run: what it takes along and what it brings back, in numbered parts with hashes.
//!
//! Over every way a file is the same: its [`FileManifest`], and parts that are checked one by one. So a transfer that
//! broke resumes with the parts that are missing.

use std::ffi::OsString;
use std::io::{self, BufRead, BufReader};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};

use percent_encoding::{AsciiSet, CONTROLS, percent_decode_str, percent_encode};
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use crate::{ProblemCode, ServiceError};

/// The size of a part, in bytes; the last one of a file may be smaller.
pub const PART_BYTES: u64 = 512 * 1024;

/// The name of the git bundle of a run's commits.
pub const BUNDLE: &str = "bundle";
/// The name of the file with what git ignores and an upload takes along: a git bundle of one commit.
pub const INCLUDED: &str = "included";

/// The name of the patch of a run's changes, which `git apply` takes.
pub const PATCH: &str = "patch";

/// What the names of collected files begin with; the path in the working directory follows.
pub const ARTIFACTS: &str = "files/";

/// Bytes that are encoded in the name of a file whose path is not UTF-8 or has a `%`.
const ENCODED: &AsciiSet = &CONTROLS.add(b'%');

/// The maximum length of a name, in bytes.
const LONGEST_NAME: usize = 4096;

/// A file of a run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct RunFile {
    /// Name of the file, such as `bundle` or `files/report.html`. In a name that is not UTF-8 or has a `%`, these bytes
    /// are percent-encoded.
    pub name: String,
    /// Size in bytes. Absent if the file is made when it is first read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bytes: Option<u64>,
}

impl RunFile {
    /// Creates the entry of a file.
    pub fn new(name: impl Into<String>, bytes: Option<u64>) -> Self {
        Self {
            name: name.into(),
            bytes,
        }
    }
}

/// The files of a run, in the order of their names.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct FileList {
    /// The files.
    pub files: Vec<RunFile>,
    /// Reasons why files that were to be collected are missing, such as a limit.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub missing: Vec<String>,
}

impl FileList {
    /// Creates a list of files, in the order of their names.
    pub fn new(mut files: Vec<RunFile>) -> Self {
        files.sort_by(|a, b| a.name.cmp(&b.name));
        Self {
            files,
            missing: Vec::new(),
        }
    }
}

/// The content of a file, by hashes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[non_exhaustive]
pub struct FileManifest {
    /// Name of the file.
    #[schemars(length(min = 1))]
    pub name: String,
    /// Size of the file, in bytes.
    pub bytes: u64,
    /// SHA-256 of the file, in hexadecimal.
    #[schemars(regex(pattern = "^[0-9a-f]{64}$"))]
    pub sha256: String,
    /// Size of every part but the last, in bytes: 524288.
    #[schemars(range(min = 524_288, max = 524_288))]
    pub part_bytes: u64,
    /// SHA-256 of each part, in hexadecimal. An empty file has none.
    pub parts: Vec<String>,
}

impl FileManifest {
    /// Creates the manifest of a file with this content.
    pub fn of(name: impl Into<String>, content: &[u8]) -> Self {
        let mut hasher = FileHasher::new(name);
        hasher.update(content);
        hasher.finish()
    }

    /// Creates the manifest of a file with the content of this reader.
    ///
    /// # Errors
    ///
    /// Fails if the content cannot be read.
    pub fn read(name: impl Into<String>, content: impl io::Read) -> io::Result<Self> {
        let mut hasher = FileHasher::new(name);
        let mut content = BufReader::with_capacity(1 << 20, content);
        loop {
            let piece = match content.fill_buf() {
                Ok(piece) => piece,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(error) => return Err(error),
            };
            if piece.is_empty() {
                return Ok(hasher.finish());
            }
            hasher.update(piece);
            let size = piece.len();
            content.consume(size);
        }
    }

    /// Returns the first byte and the size of a part, in bytes. Parts are numbered from 0.
    pub fn range(&self, number: u32) -> Option<(u64, u64)> {
        let start = u64::from(number).checked_mul(self.part_bytes)?;
        let left = self.bytes.checked_sub(start).filter(|left| *left > 0)?;
        Some((start, left.min(self.part_bytes)))
    }

    /// Checks that the manifest describes a file: its name, and the number and form of its hashes.
    ///
    /// # Errors
    ///
    /// [`ProblemCode::InvalidParams`] with the reason.
    pub fn check(&self) -> Result<(), ServiceError> {
        let is_hash = |text: &String| {
            text.len() == 64
                && text
                    .bytes()
                    .all(|byte| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte))
        };
        let reason = if !is_file_name(&self.name) {
            "this is not the name of a file"
        } else if self.part_bytes != PART_BYTES {
            "`partBytes` is not 524288"
        } else if self.parts.len() as u64 != self.bytes.div_ceil(PART_BYTES) {
            "the number of parts does not fit the size"
        } else if !is_hash(&self.sha256) || !self.parts.iter().all(is_hash) {
            "a hash is not SHA-256 in hexadecimal"
        } else {
            return Ok(());
        };
        Err(ServiceError::new(ProblemCode::InvalidParams, reason))
    }

    /// Checks the content of a part.
    ///
    /// # Errors
    ///
    /// [`ProblemCode::FileDamaged`] if it is not the one that the manifest has, [`ProblemCode::FileNotFound`] if there
    /// is no such part.
    pub fn check_part(&self, number: u32, content: &[u8]) -> Result<(), ServiceError> {
        let name = &self.name;
        let (Some((_, size)), Some(hash)) = (self.range(number), self.parts.get(number as usize))
        else {
            let message = format!("\"{name}\" has no part {number}");
            return Err(ServiceError::new(ProblemCode::FileNotFound, message));
        };
        if content.len() as u64 != size || format!("{:x}", Sha256::digest(content)) != *hash {
            let message = format!("part {number} of \"{name}\" arrived damaged: transfer it again");
            return Err(ServiceError::new(ProblemCode::FileDamaged, message));
        }
        Ok(())
    }
}

/// Makes the manifest of a file, whose content comes bit by bit.
#[derive(Debug)]
pub struct FileHasher {
    name: String,
    bytes: u64,
    whole: Sha256,
    part: Sha256,
    /// Size of the current part so far, in bytes.
    in_part: u64,
    parts: Vec<String>,
}

impl FileHasher {
    /// Begins with an empty file.
    pub fn new(name: impl Into<String>) -> Self {
        Self {
            name: name.into(),
            bytes: 0,
            whole: Sha256::new(),
            part: Sha256::new(),
            in_part: 0,
            parts: Vec::new(),
        }
    }

    /// Adds content.
    pub fn update(&mut self, mut content: &[u8]) {
        self.whole.update(content);
        self.bytes += content.len() as u64;
        while !content.is_empty() {
            let left = usize::try_from(PART_BYTES - self.in_part).unwrap_or(usize::MAX);
            let (now, later) = content.split_at(left.min(content.len()));
            self.part.update(now);
            self.in_part += now.len() as u64;
            if self.in_part == PART_BYTES {
                self.end_part();
            }
            content = later;
        }
    }

    /// Returns the manifest.
    pub fn finish(mut self) -> FileManifest {
        if self.in_part > 0 {
            self.end_part();
        }
        FileManifest {
            name: self.name,
            bytes: self.bytes,
            sha256: format!("{:x}", self.whole.finalize()),
            part_bytes: PART_BYTES,
            parts: self.parts,
        }
    }

    fn end_part(&mut self) {
        let hash = format!("{:x}", self.part.finalize_reset());
        self.parts.push(hash);
        self.in_part = 0;
    }
}

/// Returns whether this text can be the name of a run's file: a relative path, of which no part is `.` or `..`.
pub fn is_file_name(name: &str) -> bool {
    (1..=LONGEST_NAME).contains(&name.len())
        && !name.contains('\0')
        && name.split('/').all(|part| !matches!(part, "" | "." | ".."))
}

/// Returns a path as the name of a file: bytes that are no UTF-8 are percent-encoded, and then also `%`.
pub fn file_name(path: &Path) -> String {
    match path.to_str() {
        Some(text) if !text.contains('%') => text.to_owned(),
        _ => percent_encode(path.as_os_str().as_bytes(), ENCODED).to_string(),
    }
}

/// Returns the path for which [`file_name`] returns this name.
pub fn file_path(name: &str) -> PathBuf {
    PathBuf::from(OsString::from_vec(percent_decode_str(name).collect()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_has_a_hash_for_itself_and_for_each_part() {
        let content: Vec<u8> = (0..PART_BYTES + 3).map(|it| (it % 251) as u8).collect();
        let manifest = FileManifest::of("bundle", &content);
        manifest.check().unwrap();
        assert_eq!(manifest.bytes, PART_BYTES + 3);
        assert_eq!(manifest.range(0), Some((0, PART_BYTES)));
        assert_eq!(manifest.range(1), Some((PART_BYTES, 3)));
        assert_eq!(manifest.range(2), None);
        let (first, last) = content.split_at(usize::try_from(PART_BYTES).unwrap());
        manifest.check_part(0, first).unwrap();
        manifest.check_part(1, last).unwrap();
        // The content may come in pieces of any size.
        let mut hasher = FileHasher::new("bundle");
        content.chunks(1000).for_each(|piece| hasher.update(piece));
        assert_eq!(hasher.finish(), manifest);
    }

    #[test]
    fn an_empty_file_has_no_parts() {
        let manifest = FileManifest::of("empty", b"");
        manifest.check().unwrap();
        assert_eq!((manifest.parts.len(), manifest.range(0)), (0, None));
        assert_eq!(
            manifest.sha256,
            "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"
        );
    }

    #[test]
    fn a_damaged_part_is_refused() {
        let manifest = FileManifest::of("bundle", b"content");
        for (number, content, code) in [
            (0, &b"c0ntent"[..], ProblemCode::FileDamaged),
            (0, b"conten", ProblemCode::FileDamaged),
            (1, b"content", ProblemCode::FileNotFound),
        ] {
            let error = manifest.check_part(number, content).unwrap_err();
            assert_eq!(error.code, Some(code), "{number} {content:?}");
        }
    }

    #[test]
    fn a_manifest_that_contradicts_itself_is_refused() {
        let good = FileManifest::of("a", b"content");
        let wrong: [fn(&mut FileManifest); 5] = [
            |it| it.name = "../a".to_owned(),
            |it| it.part_bytes = 1,
            |it| it.bytes = PART_BYTES + 1,
            |it| it.sha256.push('0'),
            |it| it.parts[0].replace_range(0..1, "G"),
        ];
        for change in wrong {
            let mut manifest = good.clone();
            change(&mut manifest);
            assert!(manifest.check().is_err(), "{manifest:?}");
        }
    }

    #[test]
    fn a_name_is_a_path_that_stays_inside() {
        for name in ["bundle", "files/a b/ü.txt", "files/..x", "a\nb"] {
            assert!(is_file_name(name), "{name:?}");
        }
        for name in ["", "/a", "a/", "a//b", "./a", "a/../b", "a\0"] {
            assert!(!is_file_name(name), "{name:?}");
        }
    }
}
