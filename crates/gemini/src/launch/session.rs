//! Launch of Gemini CLI for a session of many turns.

use std::path::Path;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use teamster_core::provider::{Args, Launch, Stdin};
use teamster_core::{AgentError, ExecuteParams, SessionOptions, time};

use super::locations::Locations;
use super::{begin, check};

/// Grace after the end of the input. With an MCP server, the CLI does not exit then, even without work (measured, 20
/// s). By then everything is saved.
const EXIT_GRACE: Duration = Duration::from_secs(2);

const MINUTE: u64 = 60;

pub(crate) fn launch_session(options: &SessionOptions) -> Result<Launch, AgentError> {
    let mut params = options.params.clone();
    // The prompts are sent with the turns.
    "-".clone_into(&mut params.prompt);
    check(&params)?;
    if params.new_session_id.is_some() {
        return Err(AgentError::refused(
            "new_session_id",
            "Gemini CLI itself chooses the id of such a session; leave it out",
        ));
    }
    if let Some(id) = params.session_id.take() {
        check_minute(&params, &id, SystemTime::now())?;
    }
    let mut args = Args::new();
    args.add("--acp");
    let launch = begin(&params, args, |_| Ok(Stdin::Open(Vec::new())))?;
    Ok(Launch {
        exit_grace: Some(EXIT_GRACE),
        ..launch
    })
}

/// Refuses to resume a session in the minute of its start. The CLI writes the start of a new session to a file named
/// after the minute and the beginning of the id, even to resume that session. In that minute, it is the session's own
/// file, and its content would be lost (measured).
fn check_minute(params: &ExecuteParams, id: &str, now: SystemTime) -> Result<(), AgentError> {
    let Ok(locations) = Locations::of(params) else {
        return Ok(());
    };
    let since = now.duration_since(UNIX_EPOCH).unwrap_or_default();
    let rest = MINUTE - since.as_secs() % MINUTE;
    let begin = id.get(..8).unwrap_or(id);
    let end = format!("-{begin}.jsonl");
    let minute = minute(since.as_secs());
    let folders = std::fs::read_dir(locations.users_folder().join("tmp"));
    let folders = folders.into_iter().flatten().flatten();
    let is_its_minute =
        |folder: &Path| first_of(folder, &end).is_some_and(|name| name.contains(&minute));
    if !(folders.into_iter()).any(|folder| is_its_minute(&folder.path().join("chats"))) {
        return Ok(());
    }
    let problem = format!(
        "Gemini CLI loses the content of a session that is resumed in the minute in which it began; try \
         again in {rest} s"
    );
    Err(AgentError::refused("session_id", problem)
        .retryable(true)
        .retry_after_ms(rest * 1000))
}

/// Returns the oldest file of sessions with this beginning of the id. Later files only record that the session was
/// resumed.
fn first_of(folder: &Path, end: &str) -> Option<String> {
    let files = std::fs::read_dir(folder).ok()?.flatten();
    let names = files.filter_map(|file| file.file_name().into_string().ok());
    names
        .filter(|name| name.starts_with("session-") && name.ends_with(end))
        .min()
}

/// Formats a UTC minute as in the names of the files: `2026-11-22T15-47`.
fn minute(seconds: u64) -> String {
    let (days, of_day) = (seconds / 86_400, seconds % 86_400);
    let (year, month, day) = time::date_of_day(days);
    let (hour, minute) = (of_day / 3600, of_day % 3600 / 60);
    format!("{year:04}-{month:02}-{day:02}T{hour:02}-{minute:02}")
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn a_minute_is_written_as_the_cli_writes_it() {
        assert_eq!(minute(0), "1970-01-01T00-00");
        assert_eq!(minute(951_782_399), "2000-02-28T23-59");
        assert_eq!(minute(951_782_400), "2000-02-29T00-00");
        assert_eq!(minute(1_795_362_437), "2026-11-22T15-47");
        assert_eq!(minute(4_107_542_399), "2100-02-28T23-59");
        assert_eq!(minute(4_107_542_400), "2100-03-01T00-00");
    }

    #[test]
    fn a_session_is_not_gone_on_with_in_its_own_minute() {
        const ID: &str = "c6884c0f-50fc-43f2-940a-63f9fb4fb49a";
        let dir = tempfile::tempdir().unwrap();
        let chats = dir.path().join(".gemini/tmp/ws/chats");
        fs::create_dir_all(&chats).unwrap();
        let put = |name: &str| fs::write(chats.join(name), "").unwrap();
        put("session-2026-11-22T15-47-00000000.jsonl");
        let mut params = ExecuteParams::new("hi");
        let home = dir.path().to_str().unwrap();
        params.env.insert("GEMINI_CLI_HOME".into(), home.into());
        let at = |seconds| UNIX_EPOCH + Duration::from_secs(seconds);
        let check = |seconds| check_minute(&params, ID, at(seconds));
        assert!(check(1_795_362_437).is_ok(), "another's");
        put("session-2026-11-22T15-47-c6884c0f.jsonl");
        let error = check(1_795_362_437).unwrap_err();
        assert!(error.retryable);
        assert_eq!(error.retry_after_ms, Some(43_000));
        assert!(error.message.starts_with("session_id: "), "{error}");
        assert!(check(1_795_362_480).is_ok(), "the next minute");
        // The session was resumed in this minute, and is resumed again.
        put("session-2026-11-22T15-48-c6884c0f.jsonl");
        assert!(check(1_795_362_490).is_ok());
    }
}
