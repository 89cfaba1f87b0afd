//! Recorded runs of real CLIs, in folders.
//!
//! A fixture is a folder with `stdout.ndjson`, the exact output of the CLI. Optional files are `stderr.txt`,
//! `record.ndjson`, `meta.json` ([`Meta`]) and `events.snap` (the decoded events, see
//! [`snapshot`](crate::snapshot)). The folder may be anywhere.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use serde_json::{Map, Value};
use teamster_core::PermissionMode;
use teamster_core::provider::{Exit, Stop};
use teamster_core::text::tail;
use teamster_process::RuntimeConfig;

/// Name of the file with the CLI's standard output. A folder that has it is a fixture.
pub const STDOUT: &str = "stdout.ndjson";
/// Name of the file with the CLI's standard error.
pub const STDERR: &str = "stderr.txt";
/// Name of the file with the lines that the CLI added to its own record of the session.
pub const RECORD: &str = "record.ndjson";
/// Name of the file with the parameters and the end of the run.
pub const META: &str = "meta.json";
/// Name of the file with the rendered events.
pub const SNAPSHOT: &str = "events.snap";

/// One recorded run.
#[derive(Debug, Clone, PartialEq)]
pub struct Fixture {
    /// Path of its folder, as passed or found.
    pub dir: PathBuf,
    /// Parameters and end of the run.
    pub meta: Meta,
    /// The CLI's standard output.
    pub stdout: Vec<u8>,
    /// Its standard error. Bytes that are not UTF-8 are replaced.
    pub stderr: String,
    /// New lines of the CLI's own record of the session, for decoders that read it.
    pub record: Vec<String>,
}

/// Content of `meta.json`. All fields are optional, and unknown fields are ignored.
///
/// Recorders differ, so a field of an unexpected type counts as missing. The fields about the end of the run
/// are exceptions: a wrong guess there would change the result.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Meta {
    /// The provider's id, such as `claude`.
    pub cli: Option<String>,
    /// The CLI's version.
    pub version: Option<String>,
    /// Name of the run. Default: the folder's name.
    pub scenario: String,
    /// Purpose of the scenario.
    pub what_it_shows: String,
    /// The command, including the program.
    pub argv: Vec<String>,
    /// Environment variables that were set for the run, if their value is a text.
    pub env: BTreeMap<String, String>,
    /// The prompt.
    pub prompt: String,
    /// Input of the CLI on standard input.
    pub stdin: Option<String>,
    /// Parameters that were sent by a protocol on standard input instead of the command line.
    pub params: Option<RecordedParams>,
    /// Names of the run's MCP servers.
    pub mcp_servers: Vec<String>,
    /// Exit code, if the CLI exited.
    pub exit_code: Option<i32>,
    /// Name of the signal that ended the CLI, if any. A number in the file is converted to its name.
    pub signal: Option<String>,
    /// Reason why the CLI could not be started.
    pub spawn_error: Option<String>,
    /// Stop by the recorder, if any.
    pub stopped: Option<Stopped>,
    /// Duration of the run, in milliseconds, rounded.
    pub duration_ms: u64,
}

/// Parameters of a recorded run.
#[derive(Debug, Clone, Default, PartialEq, serde::Deserialize)]
#[serde(default)]
#[non_exhaustive]
pub struct RecordedParams {
    /// The resumed session.
    pub session_id: Option<String>,
    /// True if the session was forked.
    pub fork: bool,
    /// The model.
    pub model: Option<String>,
    /// Reasoning effort of the model.
    pub effort: Option<String>,
    /// Permission mode of the agent.
    pub permission: PermissionMode,
}

/// A stop from outside.
#[derive(Debug, Clone, PartialEq)]
pub struct Stopped {
    /// Reason of the stop.
    pub stop: Stop,
    /// Number of lines that had been read by then.
    pub after_lines: usize,
}

/// Error of reading a fixture.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum FixtureError {
    /// A file or folder cannot be read.
    #[error("cannot read {}", path.display())]
    Read {
        /// The file or folder.
        path: PathBuf,
        /// Cause of the failure.
        #[source]
        source: io::Error,
    },
    /// `meta.json` is not a JSON object.
    #[error("{} is not a JSON object", path.display())]
    NotAnObject {
        /// The file.
        path: PathBuf,
        /// Cause of the failure, if the file is not JSON at all.
        #[source]
        source: Option<serde_json::Error>,
    },
    /// A field of `meta.json` about the end of the run has the wrong type.
    #[error("{}: field `{field}` must be {expected}", path.display())]
    WrongField {
        /// The file.
        path: PathBuf,
        /// The field.
        field: &'static str,
        /// The expected type.
        expected: &'static str,
    },
}

impl Fixture {
    /// Reads the fixture in a folder.
    ///
    /// # Errors
    ///
    /// A file cannot be read, or `meta.json` is invalid.
    pub fn load(dir: &Path) -> Result<Self, FixtureError> {
        let meta = Meta::load(dir)?;
        let stdout = read(&dir.join(STDOUT))?;
        let stderr = read_if_there(&dir.join(STDERR))?.unwrap_or_default();
        let stderr = String::from_utf8_lossy(&stderr).into_owned();
        let record = read_if_there(&dir.join(RECORD))?.unwrap_or_default();
        let record = String::from_utf8_lossy(&record);
        let record = record.lines().map(str::to_owned).collect();
        Ok(Self {
            dir: dir.to_owned(),
            meta,
            stdout,
            stderr,
            record,
        })
    }

    /// Returns the path of its snapshot, which need not exist.
    pub fn snapshot_path(&self) -> PathBuf {
        self.dir.join(SNAPSHOT)
    }

    /// Returns the end of the process, as the engine would report it.
    pub fn exit(&self) -> Exit {
        Exit {
            code: self.meta.exit_code,
            signal: self.meta.signal.clone(),
            stderr: tail(&self.stderr, RuntimeConfig::default().stderr_tail_bytes),
            stop: self
                .meta
                .stopped
                .as_ref()
                .map(|stopped| stopped.stop.clone()),
            record: self.record.clone(),
        }
    }

    /// Returns the reason why the program never started, if so. Some recorders use the field for other
    /// errors, so a program that ended in any way counts as started.
    pub fn never_started(&self) -> Option<&str> {
        let ended = self.meta.exit_code.is_some() || self.meta.signal.is_some();
        let error = self.meta.spawn_error.as_deref()?;
        (!ended && self.stdout.is_empty()).then_some(error)
    }
}

impl Meta {
    /// Reads `meta.json` in a folder. A missing file has no values.
    ///
    /// # Errors
    ///
    /// The file cannot be read or is invalid.
    pub fn load(dir: &Path) -> Result<Self, FixtureError> {
        let path = dir.join(META);
        let bytes = read_if_there(&path)?.unwrap_or_else(|| b"{}".to_vec());
        // Some editors write a byte order mark before UTF-8, which JSON does not allow.
        let text = bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(&bytes);
        let object = match serde_json::from_slice(text) {
            Ok(Value::Object(object)) => object,
            Ok(_) => return Err(FixtureError::NotAnObject { path, source: None }),
            Err(error) => {
                let source = Some(error);
                return Err(FixtureError::NotAnObject { path, source });
            }
        };
        let fields = Fields { path, object };
        Ok(Self {
            cli: fields.text("cli"),
            version: fields.text("version"),
            scenario: fields.text("scenario").unwrap_or_else(|| {
                let name = dir.file_name().unwrap_or_default();
                name.to_string_lossy().into_owned()
            }),
            what_it_shows: fields.text("what_it_shows").unwrap_or_default(),
            argv: fields.texts("argv"),
            env: fields.variables("env"),
            prompt: fields.text("prompt").unwrap_or_default(),
            stdin: fields.text("stdin"),
            params: fields.params("params"),
            mcp_servers: fields.texts("mcp_servers"),
            exit_code: fields.exit_code("exit_code")?,
            signal: fields.signal("signal")?,
            spawn_error: fields.spawn_error("spawn_error")?,
            stopped: fields.stopped("stopped")?,
            duration_ms: fields.milliseconds("duration_ms"),
        })
    }
}

/// Result of [`discover`].
#[derive(Debug, Default)]
pub struct Discovered {
    /// The folders that are fixtures, sorted.
    pub fixtures: Vec<PathBuf>,
    /// Errors of folders that cannot be read, including a missing root.
    pub errors: Vec<FixtureError>,
}

/// Returns the fixtures in a folder, sorted by path: the folder itself if it is one, or all below it.
///
/// A link to a folder that is itself a fixture counts. Other links are not followed, so that the search ends.
pub fn discover(path: &Path) -> Discovered {
    let mut found = Discovered::default();
    if is_fixture(path) {
        found.fixtures.push(path.to_owned());
    } else if let Err(source) = look_into(path, &mut found) {
        let path = path.to_owned();
        found.errors.push(FixtureError::Read { path, source });
    }
    found.fixtures.sort();
    found
}

fn look_into(path: &Path, found: &mut Discovered) -> io::Result<()> {
    for entry in fs::read_dir(path)? {
        let entry = entry?;
        let kind = entry.file_type()?;
        let path = entry.path();
        if kind.is_dir() {
            let below = discover(&path);
            found.fixtures.extend(below.fixtures);
            found.errors.extend(below.errors);
        } else if kind.is_symlink() && is_fixture(&path) {
            found.fixtures.push(path);
        }
    }
    Ok(())
}

fn is_fixture(path: &Path) -> bool {
    path.join(STDOUT).is_file()
}

struct Fields {
    path: PathBuf,
    object: Map<String, Value>,
}

impl Fields {
    fn text(&self, field: &str) -> Option<String> {
        self.object.get(field)?.as_str().map(str::to_owned)
    }

    fn texts(&self, field: &str) -> Vec<String> {
        let list = self.object.get(field).and_then(Value::as_array);
        let texts = list.into_iter().flatten().filter_map(Value::as_str);
        texts.map(str::to_owned).collect()
    }

    fn variables(&self, field: &str) -> BTreeMap<String, String> {
        let object = self.object.get(field).and_then(Value::as_object);
        let variables = object.into_iter().flatten();
        variables
            .filter_map(|(name, value)| Some((name.clone(), value.as_str()?.to_owned())))
            .collect()
    }

    fn params(&self, field: &str) -> Option<RecordedParams> {
        serde_json::from_value(self.object.get(field)?.clone()).ok()
    }

    /// Returns a duration. One measured with a clock that went backwards becomes 0.
    fn milliseconds(&self, field: &str) -> u64 {
        let ms = self.object.get(field).and_then(Value::as_f64);
        let ms = ms.unwrap_or_default().round().max(0.0);
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "saturates"
        )]
        let ms = ms as u64;
        ms
    }

    fn exit_code(&self, field: &'static str) -> Result<Option<i32>, FixtureError> {
        let Some(value) = self.given(field) else {
            return Ok(None);
        };
        let code = value.as_i64().and_then(|code| i32::try_from(code).ok());
        code.map(Some)
            .ok_or_else(|| self.wrong(field, "a number of 32 bits"))
    }

    fn signal(&self, field: &'static str) -> Result<Option<String>, FixtureError> {
        match self.given(field) {
            None => Ok(None),
            Some(Value::String(name)) => Ok(Some(name.clone()).filter(|name| !name.is_empty())),
            Some(value) => match value.as_u64() {
                Some(0) => Ok(None),
                Some(number) => Ok(Some(signal_name(number))),
                None => Err(self.wrong(field, "the name or the number of a signal")),
            },
        }
    }

    fn spawn_error(&self, field: &'static str) -> Result<Option<String>, FixtureError> {
        match self.given(field) {
            None | Some(Value::Bool(false)) => Ok(None),
            Some(Value::String(message)) => Ok(Some(message.clone())),
            Some(_) => Err(self.wrong(field, "a message")),
        }
    }

    fn stopped(&self, field: &'static str) -> Result<Option<Stopped>, FixtureError> {
        let Some(value) = self.given(field) else {
            return Ok(None);
        };
        let stopped = || {
            let error = || serde_json::from_value(value["error"].clone()).ok();
            let stop = match value["why"].as_str()? {
                "aborted" => Stop::Aborted,
                "lingering" => Stop::Lingering,
                "timeout" => Stop::Timeout(error()?),
                "failed" => Stop::Failed(error()?),
                _ => return None,
            };
            let after_lines = usize::try_from(value["after_lines"].as_u64()?).ok()?;
            Some(Stopped { stop, after_lines })
        };
        let expected = "`why` (aborted, lingering, timeout or failed), `after_lines` and, for the last two, `error`";
        stopped()
            .map(Some)
            .ok_or_else(|| self.wrong(field, expected))
    }

    fn given(&self, field: &str) -> Option<&Value> {
        self.object.get(field).filter(|value| !value.is_null())
    }

    fn wrong(&self, field: &'static str, expected: &'static str) -> FixtureError {
        let path = self.path.clone();
        FixtureError::WrongField {
            path,
            field,
            expected,
        }
    }
}

/// Returns the engine's name of a signal that has the same number on every system.
fn signal_name(number: u64) -> String {
    let name = match number {
        1 => "SIGHUP",
        2 => "SIGINT",
        3 => "SIGQUIT",
        4 => "SIGILL",
        5 => "SIGTRAP",
        6 => "SIGABRT",
        8 => "SIGFPE",
        9 => "SIGKILL",
        11 => "SIGSEGV",
        13 => "SIGPIPE",
        14 => "SIGALRM",
        15 => "SIGTERM",
        _ => return format!("signal {number}"),
    };
    name.to_owned()
}

fn read_if_there(path: &Path) -> Result<Option<Vec<u8>>, FixtureError> {
    match read(path) {
        Ok(bytes) => Ok(Some(bytes)),
        Err(FixtureError::Read { source, .. }) if source.kind() == io::ErrorKind::NotFound => {
            Ok(None)
        }
        Err(error) => Err(error),
    }
}

fn read(path: &Path) -> Result<Vec<u8>, FixtureError> {
    fs::read(path).map_err(|source| FixtureError::Read {
        path: path.to_owned(),
        source,
    })
}

#[cfg(test)]
mod tests;
