//! Sessions in the files of the real CLIs.

use std::fs::{self, File};
use std::path::Path;
use std::time::SystemTime;

use teamster_usage::{
    Locations, Provider, StoredMessage, has_sessions, stored_session, stored_sessions,
};

use crate::common::{data, scenarios, truth};

/// The directory of all recorded sessions.
const DIRECTORY: &str = "/tmp/box/ws";

#[test]
fn every_recorded_session_has_its_directory_and_first_prompt() {
    let mut count = 0;
    // Those in databases are tested with the databases.
    let is_in_files = |it: &Provider| !matches!(it, Provider::OpenCode | Provider::Kilo);
    let providers = Provider::ALL.into_iter().filter(|it| has_sessions(*it));
    for provider in providers.filter(is_in_files) {
        for (folder, expected) in scenarios(provider) {
            // Its file has no directory, and is not one of lines.
            if provider == Provider::Gemini && folder.parent().unwrap().ends_with("0.20.0") {
                continue;
            }
            let locations = Locations::of_home(&folder.join("home"));
            let sessions = stored_sessions(provider, &locations, Some(Path::new(DIRECTORY)));
            // A session without usage has no truth.
            let ids: Vec<_> = sessions.iter().map(|it| &*it.id).collect();
            for (session, _) in truth(&expected).into_keys() {
                assert!(ids.contains(&&*session), "{}: {ids:?}", folder.display());
            }
            for session in &sessions {
                let messages = session.messages().unwrap();
                let first = messages.iter().find_map(|message| match message {
                    StoredMessage::Prompt(text) => Some(text),
                    _ => None,
                });
                assert_eq!(first, Some(&session.first_prompt), "{session:?}");
                let found = stored_session(provider, &locations, &session.id).unwrap();
                assert_eq!(&found, session);
                count += 1;
            }
            let elsewhere = stored_sessions(provider, &locations, Some(Path::new("/else")));
            assert_eq!(elsewhere, []);
        }
    }
    assert!(count > 50, "{count}");
}

#[test]
fn a_conversation_has_prompts_and_answers_only() {
    let home = data().join("claude/2.1.330/compact/home");
    let sessions = stored_sessions(Provider::Claude, &Locations::of_home(&home), None);
    let prompt = |text: &str| StoredMessage::Prompt(text.to_owned());
    let answer = |text: &str| StoredMessage::Answer(text.to_owned());
    assert_eq!(
        sessions[0].messages().unwrap(),
        [
            prompt("[[mock:text]] go"),
            answer("Hello."),
            prompt("[[mock:text]] again"),
            answer("Hello."),
        ]
    );
}

#[test]
fn messages_that_gemini_repeats_are_there_once() {
    let home = data().join("gemini/0.61.0/resume/home");
    let sessions = stored_sessions(Provider::Gemini, &Locations::of_home(&home), None);
    let prompt = |text: &str| StoredMessage::Prompt(text.to_owned());
    let answer = |text: &str| StoredMessage::Answer(text.to_owned());
    assert_eq!(
        sessions[0].messages().unwrap(),
        [
            prompt("[[two]] go"),
            answer("Two calls."),
            answer("Hello."),
            prompt("[[text]] again"),
            answer("Hello."),
            prompt("[[two]] third"),
            answer("Two calls."),
            answer("Hello."),
        ]
    );
}

#[test]
fn a_file_that_is_no_session_is_left_out() {
    let home = tempfile::tempdir().unwrap();
    let folder = home.path().join(".claude/projects/-w");
    fs::create_dir_all(&folder).unwrap();
    fs::write(folder.join("a.jsonl"), "{\"cwd\": 7}\nnot JSON\n[]\n").unwrap();
    fs::write(folder.join("b.jsonl"), "").unwrap();
    let locations = Locations::of_home(home.path());
    assert_eq!(stored_sessions(Provider::Claude, &locations, None), []);
    assert_eq!(stored_session(Provider::Claude, &locations, "../b"), None);
}

#[test]
fn files_of_sub_agents_take_no_place_of_sessions_in_a_list() {
    let home = tempfile::tempdir().unwrap();
    let folder = home.path().join(".claude/projects/-w");
    let sub_agents = folder.join("s1/subagents");
    fs::create_dir_all(&sub_agents).unwrap();
    let line = |is_sub_agent: bool| {
        format!(
            r#"{{"type":"user","sessionId":"s1","cwd":"/w","isSidechain":{is_sub_agent},"message":{{"role":"user","content":"go"}}}}"#
        )
    };
    let session = folder.join("s1.jsonl");
    fs::write(&session, line(false)).unwrap();
    let session = File::options().append(true).open(session).unwrap();
    session.set_modified(SystemTime::UNIX_EPOCH).unwrap();
    for number in 0..500 {
        fs::write(sub_agents.join(format!("agent-{number}.jsonl")), line(true)).unwrap();
    }
    let locations = Locations::of_home(home.path());
    let sessions = stored_sessions(Provider::Claude, &locations, None);
    let ids: Vec<_> = sessions.iter().map(|it| &*it.id).collect();
    assert_eq!(ids, ["s1"]);
}
