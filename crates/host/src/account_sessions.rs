//! Sessions of an agent's accounts: an account continues a session of another one, once it has the session's files.

use std::fs::{self, DirBuilder, File};
use std::io::{self, BufRead, BufReader};
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use teamster_core::{
    AgentError, AgentRuntime, Capabilities, ErrorCode, ErrorKind, EventStream, ExecuteParams,
    SharedRuntime,
};
use teamster_usage::{Locations, Provider, stored_session};
use tempfile::NamedTempFile;
use tokio::task::spawn_blocking;

use crate::environment;

/// The places where the accounts of an agent keep their sessions.
pub(crate) struct AccountSessions {
    provider: Provider,
    accounts: Vec<(String, Locations)>,
}

impl AccountSessions {
    /// Returns the places of an agent's accounts: their names, and the parameters of a run with each. `None` if an account
    /// cannot continue the sessions of another: they are in different places, and the agent's sessions are not files that
    /// can be copied.
    pub(crate) fn of<'a>(
        agent: &str,
        accounts: impl IntoIterator<Item = (&'a str, &'a ExecuteParams)>,
        clean_env: bool,
    ) -> Option<Self> {
        let locations = |params: &ExecuteParams| {
            Locations::from_variables(|name| environment::of_agent(params, clean_env, name))
        };
        let accounts = accounts.into_iter();
        let places = Self {
            provider: agent.parse().ok()?,
            accounts: accounts
                .map(|(name, params)| (name.to_owned(), locations(params)))
                .collect(),
        };
        (places.is_one() || folders(places.provider, &Locations::default()).is_some())
            .then_some(places)
    }

    /// Returns whether all accounts have the same sessions, such as those that differ in a key alone.
    fn is_one(&self) -> bool {
        self.accounts.windows(2).all(|two| two[0].1 == two[1].1)
    }

    /// Brings the session with this id to an account, by its index: the files of the account that has worked with it last.
    /// Returns whether the account has the session then.
    pub(crate) fn bring(&self, id: &str, to: usize) -> Result<bool, AgentError> {
        if self.is_one() {
            return Ok(true);
        }
        let sessions = self.accounts.iter().enumerate();
        let sessions = sessions.filter_map(|(index, (_, locations))| {
            Some((index, stored_session(self.provider, locations, id)?))
        });
        // Of the same time, that of the account itself.
        let Some((from, session)) = sessions.max_by_key(|(index, it)| (it.changed, *index == to))
        else {
            return Ok(false);
        };
        if from == to {
            return Ok(true);
        }
        self.copy(session.file(), from, to).map_err(|error| {
            let message = format!(
                "the session {id} of account {} ({}) cannot be brought to account {}: {error}",
                self.accounts[from].0,
                session.file().display(),
                self.accounts[to].0
            );
            AgentError::new(ErrorCode::Io, ErrorKind::Internal, message)
        })?;
        Ok(true)
    }

    fn copy(&self, file: &Path, from: usize, to: usize) -> io::Result<()> {
        let folders =
            |account: usize| folders(self.provider, &self.accounts[account].1).unwrap_or_default();
        let below = folders(from)
            .into_iter()
            .find_map(|folder| Some(file.strip_prefix(folder).ok()?.to_owned()));
        let own = folders(to).into_iter().next();
        let (Some(below), Some(own)) = (below, own) else {
            return Err(io::Error::other("its home is not known"));
        };
        let target = own.join(below);
        if target
            .canonicalize()
            .is_ok_and(|it| file.canonicalize().is_ok_and(|file| it == file))
        {
            return Ok(());
        }
        if target.exists() && !begins_with(file, &target)? {
            return Err(io::Error::other(
                "both have gone on with it: continue it with one of them",
            ));
        }
        // What Claude Code keeps beside it: sub-agents, and long results of tools. Before the file, whose copy counts as whole.
        let beside = file.with_extension("");
        if beside.is_dir() {
            copy_folder(&beside, &target.with_extension(""))?;
        }
        copy_file(file, &target)
    }
}

/// Returns the folders with the sessions of a CLI that resumes a copied session. `None` for one of which this is not known.
fn folders(provider: Provider, locations: &Locations) -> Option<Vec<PathBuf>> {
    match provider {
        Provider::Claude => Some(locations.claude.clone()),
        Provider::Codex => Some(locations.codex.iter().cloned().collect()),
        _ => None,
    }
}

/// Returns whether a file begins with the content of another.
fn begins_with(file: &Path, beginning: &Path) -> io::Result<bool> {
    let mut file = BufReader::new(File::open(file)?);
    let mut beginning = BufReader::new(File::open(beginning)?);
    loop {
        let (more, expected) = (file.fill_buf()?, beginning.fill_buf()?);
        if expected.is_empty() {
            return Ok(true);
        }
        let count = more.len().min(expected.len());
        if count == 0 || more[..count] != expected[..count] {
            return Ok(false);
        }
        file.consume(count);
        beginning.consume(count);
    }
}

/// Copies a file, private to its user. A reader sees the whole of it or its predecessor.
fn copy_file(from: &Path, to: &Path) -> io::Result<()> {
    let folder = to.parent().unwrap_or(Path::new("/"));
    DirBuilder::new()
        .recursive(true)
        .mode(0o700)
        .create(folder)?;
    let mut copy = NamedTempFile::new_in(folder)?;
    io::copy(&mut File::open(from)?, &mut copy)?;
    copy.persist(to).map_err(|error| error.error)?;
    Ok(())
}

/// Copies the files of a folder. Links are left out.
fn copy_folder(from: &Path, to: &Path) -> io::Result<()> {
    for entry in fs::read_dir(from)? {
        let entry = entry?;
        let (kind, target) = (entry.file_type()?, to.join(entry.file_name()));
        if kind.is_dir() {
            copy_folder(&entry.path(), &target)?;
        } else if kind.is_file() {
            copy_file(&entry.path(), &target)?;
        }
    }
    Ok(())
}

/// Runtime of an agent with one of its accounts, to which the session that a run resumes is brought first.
pub(crate) struct WithSession {
    pub(crate) runtime: SharedRuntime,
    pub(crate) sessions: Arc<AccountSessions>,
    pub(crate) account: usize,
}

impl AgentRuntime for WithSession {
    fn id(&self) -> &str {
        self.runtime.id()
    }

    fn capabilities(&self) -> &Capabilities {
        self.runtime.capabilities()
    }

    fn check(&self, params: &ExecuteParams) -> Result<(), AgentError> {
        self.runtime.check(params)
    }

    fn execute(&self, params: ExecuteParams) -> EventStream {
        let Some(id) = params.session_id.clone() else {
            return self.runtime.execute(params);
        };
        let (sessions, account) = (self.sessions.clone(), self.account);
        self.runtime.execute(params).after(async_stream::stream! {
            let brought = spawn_blocking(move || sessions.bring(&id, account)).await;
            // A session that is missing is reported by the CLI, as is one whose files a panic kept from being read.
            if let Ok(Err(error)) = brought {
                yield Err(error);
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A session of Codex, made by hand in the form of its files.
    const SESSION: &str = "01a22661-9e52-7711-b7b9-4d1c720eb487";

    fn rollout(home: &Path, lines: &[&str]) -> PathBuf {
        let folder = home.join("sessions/2026/11/29");
        fs::create_dir_all(&folder).unwrap();
        let file = folder.join(format!("rollout-2026-11-29T08-17-41-{SESSION}.jsonl"));
        let meta =
            format!(r#"{{"type":"session_meta","payload":{{"id":"{SESSION}","cwd":"/w"}}}}"#);
        let prompt = r#"{"type":"response_item","payload":{"type":"message","role":"user","content":[{"type":"input_text","text":"hi"}]}}"#;
        let lines = [&*meta, prompt].into_iter().chain(lines.iter().copied());
        fs::write(&file, lines.collect::<Vec<_>>().join("\n") + "\n").unwrap();
        file
    }

    fn sessions(agent: &str, variable: &str, homes: [&Path; 2]) -> Option<AccountSessions> {
        let params =
            homes.map(|home| ExecuteParams::new("").env(variable, home.display().to_string()));
        AccountSessions::of(agent, ["work", "home"].into_iter().zip(&params), false)
    }

    #[test]
    fn session_is_copied_to_the_account_that_continues_it_and_back() {
        let (work, home) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let accounts = sessions("codex", "CODEX_HOME", [work.path(), home.path()]).unwrap();
        assert!(!accounts.bring(SESSION, 1).unwrap());
        let first = rollout(work.path(), &["{}"]);
        assert!(accounts.bring(SESSION, 1).unwrap());
        let second = home.path().join(first.strip_prefix(work.path()).unwrap());
        assert_eq!(fs::read(&second).unwrap(), fs::read(&first).unwrap());
        // The account that has it last continues it.
        let text = fs::read_to_string(&second).unwrap() + "{\"more\":1}\n";
        fs::write(&second, &text).unwrap();
        let later = std::time::SystemTime::now() + std::time::Duration::from_secs(5);
        let file = File::options().append(true).open(&second).unwrap();
        file.set_modified(later).unwrap();
        assert!(accounts.bring(SESSION, 1).unwrap());
        assert!(accounts.bring(SESSION, 0).unwrap());
        assert_eq!(fs::read_to_string(&first).unwrap(), text);
    }

    #[test]
    fn session_that_both_accounts_have_continued_is_not_overwritten() {
        let (work, home) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let accounts = sessions("codex", "CODEX_HOME", [work.path(), home.path()]).unwrap();
        let own = rollout(home.path(), &["{\"home\":1}"]);
        let before = fs::read(&own).unwrap();
        let newer = rollout(work.path(), &["{\"work\":1}"]);
        let later = std::time::SystemTime::now() + std::time::Duration::from_secs(5);
        let file = File::options().append(true).open(&newer).unwrap();
        file.set_modified(later).unwrap();
        let error = accounts.bring(SESSION, 1).unwrap_err();
        assert!(
            error.message.contains("both have gone on"),
            "{}",
            error.message
        );
        assert_eq!(fs::read(&own).unwrap(), before);
    }

    #[test]
    fn session_without_a_prompt_of_text_is_brought() {
        let (work, home) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let homes = [work.path(), home.path()];
        let accounts = sessions("claude", "CLAUDE_CONFIG_DIR", homes).unwrap();
        let image = "A".repeat(2 << 20);
        for content in [
            r#""<task>Fix it</task>""#.to_owned(),
            format!(r#"[{{"type":"image","source":{{"type":"base64","data":"{image}"}}}}]"#),
        ] {
            // In the form of its files, made by hand.
            let line = format!(
                r#"{{"type":"user","sessionId":"{SESSION}","cwd":"/w","message":{{"role":"user","content":{content}}}}}"#
            );
            let below = format!("projects/-w/{SESSION}.jsonl");
            let file = work.path().join(&below);
            fs::create_dir_all(file.parent().unwrap()).unwrap();
            fs::write(&file, &line).unwrap();
            assert!(accounts.bring(SESSION, 1).unwrap());
            let copy = home.path().join(&below);
            assert_eq!(fs::read_to_string(&copy).unwrap(), line);
            fs::remove_file(copy).unwrap();
        }
    }

    #[test]
    fn session_that_was_copied_in_part_has_no_file() {
        let (work, home) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let accounts = sessions("codex", "CODEX_HOME", [work.path(), home.path()]).unwrap();
        let file = rollout(work.path(), &[]);
        let beside = file.with_extension("");
        fs::create_dir(&beside).unwrap();
        fs::write(beside.join("agent.jsonl"), "{}").unwrap();
        let copy = home.path().join(file.strip_prefix(work.path()).unwrap());
        fs::create_dir_all(copy.parent().unwrap()).unwrap();
        // What is beside it cannot be written.
        let in_the_way = copy.with_extension("");
        fs::write(&in_the_way, "").unwrap();
        assert!(accounts.bring(SESSION, 1).is_err());
        assert!(!copy.exists());
        fs::remove_file(&in_the_way).unwrap();
        assert!(accounts.bring(SESSION, 1).unwrap());
        assert!(copy.exists() && in_the_way.join("agent.jsonl").exists());
    }

    #[test]
    fn accounts_that_differ_in_a_key_have_the_same_sessions() {
        let folder = tempfile::tempdir().unwrap();
        let other = tempfile::tempdir().unwrap();
        let one = sessions("gemini", "GEMINI_API_KEY", [folder.path(), other.path()]).unwrap();
        assert!(one.bring("s", 1).unwrap());
        // Of its sessions, no copy is known to be resumed.
        let homes = [folder.path(), other.path()];
        assert!(sessions("gemini", "GEMINI_CLI_HOME", homes).is_none());
        assert!(sessions("acp:other", "KEY", homes).is_none());
    }
}
