//! Recorded runs of real CLIs, as folders.
//!
//! A fixture is a folder with `stdout.ndjson` (what the CLI printed, byte for byte) and, all of
//! which may be missing, `stderr.txt`, `record.ndjson`, `meta.json` ([`Meta`]) and `events.snap` (what the decoder
//! makes of it, see [`snapshot`](crate::snapshot)). It may be anywhere.

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
    /// Its folder, as it was given or found.
    pub dir: PathBuf,
    /// How the run was made and how it ended.
    pub meta: Meta,
    /// The CLI's standard output.
    pub stdout: Vec<u8>,
    /// Its standard error; bytes that are not UTF-8 are replaced.
    pub stderr: String,
    /// New lines of its own record of the session, where a decoder reads those.
    pub record: Vec<String>,
}

/// The content of `meta.json`. Fields that are not listed here are ignored, and none must be there.
///
/// Recorders write it in their own ways, so a field of an unexpected type is taken as missing, but
/// for those that say how the run ended: a wrong guess there would give another result.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Meta {
    /// The provider's id, such as `claude`.
    pub cli: Option<String>,
    /// The CLI's version.
    pub version: Option<String>,
    /// A name for the run; the folder's if it is not given.
    pub scenario: String,
    /// What the scenario shows.
    pub what_it_shows: String,
    /// The command, with the program.
    pub argv: Vec<String>,
    /// Environment variables that were set for the run, those with a text for a value.
    pub env: BTreeMap<String, String>,
    /// The prompt.
    pub prompt: String,
    /// Input of the CLI on standard input.
    pub stdin: Option<String>,
    /// Parameters sent by a protocol on standard input, which are not on the command line.
    pub params: Option<RecordedParams>,
    /// The names of the MCP servers of the run.
    pub mcp_servers: Vec<String>,
    /// Its exit code, if it exited.
    pub exit_code: Option<i32>,
    /// The name of the signal that ended it, if one did. A number in the file becomes its name.
    pub signal: Option<String>,
    /// Why it could not be started.
    pub spawn_error: Option<String>,
    /// Why the recorder stopped it, if it did.
    pub stopped: Option<Stopped>,
    /// How long it ran, in milliseconds, rounded.
    pub duration_ms: u64,
}

/// Parameters of a recorded run.
#[derive(Debug, Clone, Default, PartialEq, serde::Deserialize)]
#[serde(default)]
#[non_exhaustive]
pub struct RecordedParams {
    /// The session that was resumed.
    pub session_id: Option<String>,
    /// Whether that was done in a new one.
    pub fork: bool,
    /// The model.
    pub model: Option<String>,
    /// How hard the model was to think.
    pub effort: Option<String>,
    /// Permission mode of the agent.
    pub permission: PermissionMode,
}

/// A stop from outside.
#[derive(Debug, Clone, PartialEq)]
pub struct Stopped {
    /// Why.
    pub stop: Stop,
    /// How many lines had been read by then.
    pub after_lines: usize,
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
            stop: self
                .meta
                .stopped
                .as_ref()
                .map(|stopped| stopped.stop.clone()),
            record: self.record.clone(),
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
    /// Reads `meta.json` in a folder. A missing file has no values.
    pub fn load(dir: &Path) -> Result<Self, FixtureError> {
        let path = dir.join(META);
        let bytes = read_if_there(&path)?.unwrap_or_else(|| b"{}".to_vec());
        // Some editors put a mark of the byte order before UTF-8, which JSON does not have.
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
    /// Folders that cannot be looked into, the given one among them if it is not there.
    pub errors: Vec<FixtureError>,
}

/// The fixtures in a folder: the folder itself if it is one, or all below it, sorted by path.
///
/// A link to a folder that is a fixture itself counts; other links are not followed, so that this
/// ends.
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

    /// 0 also for what was measured with a clock that went backwards.
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

/// As the engine names signals; those that have the same number on every system.
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
