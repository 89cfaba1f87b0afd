//! Recorded runs of real CLIs, as folders.
//!
//! A fixture is a folder with `stdout.ndjson` (what the CLI printed, byte for byte), `stderr.txt`
//! (may be missing), `meta.json` ([`Meta`]) and `events.snap` (what the decoder makes of it, see
//! [`snapshot`](crate::snapshot); may be missing). It may be anywhere.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use serde::de::DeserializeOwned;
use serde_json::{Map, Value};
use teamster_core::{Exit, tail};
use teamster_process::RuntimeConfig;

/// Name of the file with the CLI's standard output. A folder that has it is a fixture.
pub const STDOUT: &str = "stdout.ndjson";
/// Name of the file with the CLI's standard error.
pub const STDERR: &str = "stderr.txt";
/// Name of the file that says how the run was made and how it ended.
pub const META: &str = "meta.json";
/// Name of the file with the rendered events.
pub const SNAPSHOT: &str = "events.snap";

/// One recorded run.
#[derive(Debug, Clone, PartialEq)]
pub struct Fixture {
    /// Its folder, as it was given or found.
    pub dir: PathBuf,
    /// How the run was made and how it ended.
    pub meta: Meta,
    /// What the CLI printed.
    pub stdout: Vec<u8>,
    /// What it printed on standard error; bytes that are not UTF-8 are replaced.
    pub stderr: String,
}

/// The content of `meta.json`. Fields that are not listed here are ignored; only `cli` must be
/// there.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Meta {
    /// The provider's id, such as `claude`.
    pub cli: String,
    /// The CLI's version.
    pub version: Option<String>,
    /// A name for the run; the folder's if it is not given.
    pub scenario: String,
    /// What there is to see in it.
    pub what_it_shows: String,
    /// The command, with the program.
    pub argv: Vec<String>,
    /// Environment variables that were set for the run.
    pub env: BTreeMap<String, String>,
    /// What the agent was asked.
    pub prompt: String,
    /// What the CLI got on standard input.
    pub stdin: Option<String>,
    /// Its exit code, if it exited.
    pub exit_code: Option<i32>,
    /// The name of the signal that ended it, if one did.
    pub signal: Option<String>,
    /// Why it could not be started.
    pub spawn_error: Option<String>,
    /// How long it ran, in milliseconds.
    pub duration_ms: u64,
}

/// A fixture cannot be read.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum FixtureError {
    /// A file or folder cannot be read.
    #[error("cannot read {}", path.display())]
    Read {
        /// The file or folder.
        path: PathBuf,
        /// Why.
        #[source]
        source: io::Error,
    },
    /// `meta.json` is not a JSON object.
    #[error("{} is not a JSON object", path.display())]
    NotAnObject {
        /// The file.
        path: PathBuf,
        /// Why, if it is not JSON at all.
        #[source]
        source: Option<serde_json::Error>,
    },
    /// A field that must be in `meta.json` is not there.
    #[error("{}: field `{field}` is missing", path.display())]
    MissingField {
        /// The file.
        path: PathBuf,
        /// The field.
        field: &'static str,
    },
    /// A field of `meta.json` has the wrong type.
    #[error("{}: field `{field}` is wrong", path.display())]
    WrongField {
        /// The file.
        path: PathBuf,
        /// The field.
        field: &'static str,
        /// What is wrong.
        #[source]
        source: serde_json::Error,
    },
}

impl Fixture {
    /// Reads the fixture in a folder.
    pub fn load(dir: &Path) -> Result<Self, FixtureError> {
        let meta = Meta::load(dir)?;
        let stdout = read(&dir.join(STDOUT))?;
        let stderr = match read(&dir.join(STDERR)) {
            Ok(bytes) => String::from_utf8_lossy(&bytes).into_owned(),
            Err(FixtureError::Read { source, .. }) if source.kind() == io::ErrorKind::NotFound => {
                String::new()
            }
            Err(error) => return Err(error),
        };
        Ok(Self {
            dir: dir.to_owned(),
            meta,
            stdout,
            stderr,
        })
    }

    /// Where its snapshot is, or would be.
    pub fn snapshot_path(&self) -> PathBuf {
        self.dir.join(SNAPSHOT)
    }

    /// How the process ended, as the engine would report it.
    pub fn exit(&self) -> Exit {
        Exit {
            code: self.meta.exit_code,
            signal: self.meta.signal.clone(),
            stderr: tail(&self.stderr, RuntimeConfig::default().stderr_tail_bytes),
            stop: None,
        }
    }

    /// Why the program never started, if it did not. (Some recorders use the field for other
    /// trouble; a program that ended in some way did start.)
    pub fn never_started(&self) -> Option<&str> {
        let ended = self.meta.exit_code.is_some() || self.meta.signal.is_some();
        let error = self.meta.spawn_error.as_deref()?;
        (!ended && self.stdout.is_empty()).then_some(error)
    }
}

impl Meta {
    /// Reads `meta.json` in a folder.
    pub fn load(dir: &Path) -> Result<Self, FixtureError> {
        let path = dir.join(META);
        let object = match serde_json::from_slice(&read(&path)?) {
            Ok(Value::Object(object)) => object,
            Ok(_) => return Err(FixtureError::NotAnObject { path, source: None }),
            Err(error) => {
                let source = Some(error);
                return Err(FixtureError::NotAnObject { path, source });
            }
        };
        let fields = Fields { path, object };
        let scenario = fields.get("scenario")?.unwrap_or_else(|| {
            let name = dir.file_name().unwrap_or_default();
            name.to_string_lossy().into_owned()
        });
        let Some(cli) = fields.get("cli")? else {
            let path = fields.path;
            return Err(FixtureError::MissingField { path, field: "cli" });
        };
        Ok(Self {
            cli,
            version: fields.get("version")?,
            scenario,
            what_it_shows: fields.get("what_it_shows")?.unwrap_or_default(),
            argv: fields.get("argv")?.unwrap_or_default(),
            env: fields.get("env")?.unwrap_or_default(),
            prompt: fields.get("prompt")?.unwrap_or_default(),
            stdin: fields.get("stdin")?,
            exit_code: fields.get("exit_code")?,
            signal: fields.get("signal")?,
            spawn_error: fields.get("spawn_error")?,
            duration_ms: fields.get("duration_ms")?.unwrap_or_default(),
        })
    }
}

/// The fixtures in a folder: the folder itself if it is one, or all below it, sorted by path.
///
/// Links to folders are not followed, so that this ends.
pub fn discover(path: &Path) -> Result<Vec<PathBuf>, FixtureError> {
    if path.join(STDOUT).is_file() {
        return Ok(vec![path.to_owned()]);
    }
    let fail = |source| FixtureError::Read {
        path: path.to_owned(),
        source,
    };
    let mut found = Vec::new();
    for entry in fs::read_dir(path).map_err(fail)? {
        let entry = entry.map_err(fail)?;
        if entry.file_type().map_err(fail)?.is_dir() {
            found.extend(discover(&entry.path())?);
        }
    }
    found.sort();
    Ok(found)
}

struct Fields {
    path: PathBuf,
    object: Map<String, Value>,
}

impl Fields {
    fn get<T: DeserializeOwned>(&self, field: &'static str) -> Result<Option<T>, FixtureError> {
        match self.object.get(field) {
            None | Some(Value::Null) => Ok(None),
            Some(value) => {
                T::deserialize(value)
                    .map(Some)
                    .map_err(|source| FixtureError::WrongField {
                        path: self.path.clone(),
                        field,
                        source,
                    })
            }
        }
    }
}

fn read(path: &Path) -> Result<Vec<u8>, FixtureError> {
    fs::read(path).map_err(|source| FixtureError::Read {
        path: path.to_owned(),
        source,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn folder(meta: &str) -> tempfile::TempDir {
        let dir = tempfile::tempdir().unwrap();
        fs::write(dir.path().join(META), meta).unwrap();
        fs::write(dir.path().join(STDOUT), "{}\n").unwrap();
        dir
    }

    fn error(meta: &str) -> String {
        let dir = folder(meta);
        let error = Fixture::load(dir.path()).unwrap_err();
        let source = std::error::Error::source(&error).map(|s| format!(": {s}"));
        let message = format!("{error}{}", source.unwrap_or_default());
        message.replace(&dir.path().display().to_string(), "DIR")
    }

    #[test]
    fn only_cli_must_be_there() {
        let dir = folder(r#"{"cli": "claude", "exit_code": null, "vm_hwm_kb": 1}"#);
        let fixture = Fixture::load(dir.path()).unwrap();
        assert_eq!(fixture.meta.cli, "claude");
        assert_eq!(fixture.meta.exit_code, None);
        assert_eq!(fixture.stderr, "");
        assert_eq!(
            fixture.meta.scenario,
            dir.path().file_name().unwrap().to_str().unwrap()
        );
    }

    #[test]
    fn errors_name_the_file_and_the_field() {
        assert_eq!(error("{}"), "DIR/meta.json: field `cli` is missing");
        assert_eq!(
            error(r#"{"cli": "claude", "exit_code": "1"}"#),
            "DIR/meta.json: field `exit_code` is wrong: invalid type: string \"1\", expected i32"
        );
        assert_eq!(error("[]"), "DIR/meta.json is not a JSON object");
        assert_eq!(
            error("{"),
            "DIR/meta.json is not a JSON object: EOF while parsing an object at line 1 column 1"
        );
    }

    #[test]
    fn finds_fixtures_at_any_depth_and_sorts_them() {
        let root = tempfile::tempdir().unwrap();
        for name in ["b/x", "a/1/y", "a/1/x", "empty"] {
            fs::create_dir_all(root.path().join(name)).unwrap();
        }
        for name in ["b/x", "a/1/y", "a/1/x"] {
            fs::write(root.path().join(name).join(STDOUT), "").unwrap();
        }
        let below = |path: &Path| path.strip_prefix(root.path()).unwrap().to_owned();
        let found = discover(root.path()).unwrap();
        let found: Vec<_> = found.iter().map(|p| below(p)).collect();
        assert_eq!(found, ["a/1/x", "a/1/y", "b/x"].map(PathBuf::from));

        let one = root.path().join("b/x");
        assert_eq!(discover(&one).unwrap(), [one]);
        assert!(discover(&root.path().join("empty")).unwrap().is_empty());
        assert!(discover(&root.path().join("none")).is_err());
    }

    #[test]
    fn a_program_that_ended_did_start() {
        let dir = folder(r#"{"cli": "claude", "spawn_error": "too long"}"#);
        fs::write(dir.path().join(STDOUT), "").unwrap();
        let mut fixture = Fixture::load(dir.path()).unwrap();
        assert_eq!(fixture.never_started(), Some("too long"));
        fixture.meta.signal = Some("SIGKILL".into());
        assert_eq!(fixture.never_started(), None);
    }
}
