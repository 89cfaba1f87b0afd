//! Recorded runs: the files have every byte, and a replay of them gives the same events.

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use serde_json::{Value, json};
use teamster_core::provider::EventsOn;
use teamster_core::{AgentRuntime, ErrorCode, ExecuteParams, McpServer, RunStatus};
use teamster_process::{EnvPolicy, RecordTo, RuntimeConfig};
use teamster_testkit::fake_agent::{BigLine, Script, Signal, Spawn, SpawnKind, Stream, Text};
use teamster_testkit::fixture::{Fixture, META, RECORD, STDERR, STDOUT};
use teamster_testkit::proc;
use teamster_testkit::replay::{ReplayOptions, replay};

use crate::engine::{END, LIMIT, Run, Scratch, Story, agent, finish, helper, next, shell};

/// The folder of a test's recording, which does not exist yet.
const DIR: &str = "a/recording";

impl Scratch {
    fn recorded(&self, name: &str) -> Vec<u8> {
        fs::read(self.path(DIR).join(name)).unwrap()
    }

    fn meta(&self) -> Value {
        serde_json::from_slice(&self.recorded(META)).unwrap()
    }
}

impl Run {
    fn record_to(self, scratch: &Scratch) -> Self {
        self.config(|config| config.record_to = Some(scratch.path(DIR).into()))
    }
}

/// Runs it, and checks that a replay of the recording is equal.
async fn replayed(run: Run, scratch: &Scratch) -> Story {
    let provider = run.provider.clone();
    let story = run.record_to(scratch).finish().await;
    let fixture = Fixture::load(&scratch.path(DIR)).unwrap();
    let replay = replay(&fixture, &provider, ReplayOptions::default());
    assert_eq!(replay.events, story.events);
    story
}

#[tokio::test]
async fn each_run_of_a_runtime_is_recorded_in_a_folder_of_its_own() {
    let scratch = Scratch::new();
    let dir = scratch.path(DIR);
    let script = |text: &str| Script::new().line(text).line(END);
    let recorded = |text: &str| {
        agent(&script(text))
            .config(|config| config.record_to = Some(RecordTo::Each(scratch.path(DIR))))
            .finish()
    };
    let texts = [r#"{"t":"a"}"#, r#"{"t":"b"}"#, r#"{"t":"c"}"#];
    // At the same time, as a loop and its fallback in one folder.
    let (first, second) = tokio::join!(recorded(texts[0]), recorded(texts[1]));
    let third = recorded(texts[2]).await;
    for story in [first, second, third] {
        assert_eq!(story.result.status, RunStatus::Completed);
    }
    let first_line = |number: u32| {
        let file = dir.join(number.to_string()).join(STDOUT);
        let lines = fs::read_to_string(file).unwrap();
        lines.lines().next().unwrap().to_owned()
    };
    let mut begun = [first_line(1), first_line(2)];
    begun.sort();
    assert_eq!(begun, texts[..2]);
    assert_eq!(first_line(3), texts[2]);
    assert_eq!(fs::read_dir(&dir).unwrap().count(), 3);
}

#[tokio::test]
async fn every_byte_is_recorded_as_it_came_for_this_user_only() {
    let scratch = Scratch::new();
    let script = Script::new()
        .raw(b"\xef\xbb\xbf{\"t\":\"a\"}\r\n\n\r\n  \n{\"t\":\"\xff\"}\n")
        .line(Text::from(&b"\xfe what\r\n"[..]).to(Stream::Stderr))
        .raw("no json\n{\"x\":")
        .sleep(Duration::from_millis(20))
        .raw("1}\n{\"end\":false}\n{\"half")
        .exit(3);
    let run = agent(&script).config(|config| config.cli_version = Some("1.2.3".into()));
    let story = replayed(run, &scratch).await;
    assert_eq!(story.result.exit_code, Some(3));
    assert_eq!(
        scratch.recorded(STDOUT),
        b"\xef\xbb\xbf{\"t\":\"a\"}\r\n\n\r\n  \n{\"t\":\"\xff\"}\nno json\n{\"x\":1}\n\
          {\"end\":false}\n{\"half"
    );
    assert_eq!(scratch.recorded(STDERR), b"\xfe what\r\n\n");
    let mode = |path: &Path| path.metadata().unwrap().permissions().mode() & 0o7777;
    let dir = scratch.path(DIR);
    assert_eq!(mode(&dir), 0o700);
    let mut names = Vec::new();
    for entry in fs::read_dir(dir).unwrap() {
        let entry = entry.unwrap();
        assert_eq!(mode(&entry.path()), 0o600, "{:?}", entry.path());
        names.push(entry.file_name().into_string().unwrap());
    }
    names.sort();
    assert_eq!(names, [META, STDERR, STDOUT]);
    let meta = scratch.meta();
    assert_eq!(meta["cli"], "fake");
    assert_eq!(meta["version"], "1.2.3");
    assert_eq!(meta["prompt"], "prompt");
    assert_eq!(meta["stdin"], "devnull");
    assert_eq!(meta["argv"][0], "teamster-fake-agent");
    assert_eq!(meta["exit_code"], 3);
    assert_eq!(meta["stopped"], Value::Null);
    assert_eq!(meta["duration_ms"], story.result.duration_ms);
}

#[tokio::test]
async fn large_output_and_overlong_lines_are_recorded_completely() {
    let scratch = Scratch::new();
    let line = format!(r#"{{"n":"{{n}}","x":"{}"}}"#, "x".repeat(1000));
    let script = Script::new()
        .line(Text::from(&*line).repeat(20_000))
        .line(Text::from(&*line).repeat(1000).to(Stream::Stderr))
        .big_line(BigLine::new(3_000_000).prefix(r#"{"t":""#).suffix(r#""}"#))
        .line(END);
    let run = agent(&script).config(|config| {
        config.max_line_bytes = 100_000;
        config.stderr_tail_bytes = 100;
    });
    let story = run.record_to(&scratch).finish().await;
    assert_eq!(story.result.diagnostics.oversize, 1);
    let lines = |count| -> String {
        let numbers = 0..count;
        numbers
            .map(|n: u32| line.replace("{n}", &n.to_string()) + "\n")
            .collect()
    };
    let big = format!("{{\"t\":\"{}\"}}\n{END}\n", "x".repeat(3_000_000));
    assert!(scratch.recorded(STDOUT) == (lines(20_000) + &big).into_bytes());
    assert!(scratch.recorded(STDERR) == lines(1000).into_bytes());
}

#[tokio::test]
async fn output_during_a_stop_is_recorded() {
    let scratch = Scratch::new();
    let last_words = Script::new().raw(r#"{"t":" last"}"#).exit(7);
    let script = Script::new()
        .on_signal(Signal::Term, last_words)
        .line(r#"{"t":"first"}"#)
        .forever();
    let mut stream = agent(&script).record_to(&scratch).start();
    next(&mut stream).await;
    stream.abort();
    let result = stream.result().await;
    assert_eq!(result.status, RunStatus::Aborted);
    assert_eq!(
        scratch.recorded(STDOUT),
        b"{\"t\":\"first\"}\n{\"t\":\" last\"}"
    );
    let fixture = Fixture::load(&scratch.path(DIR)).unwrap();
    let replay = replay(&fixture, &agent(&script).provider, ReplayOptions::default());
    assert_eq!(replay.result(), Some(&result));
    let meta = scratch.meta();
    assert_eq!(meta["stopped"], json!({"why": "aborted", "after_lines": 1}));
    assert_eq!(meta["exit_code"], 7);
}

/// A replay also reports the time limit.
#[tokio::test]
async fn a_run_that_a_limit_ended_is_recorded_with_the_limit() {
    let scratch = Scratch::new();
    let script = Script::new().line(r#"{"t":"first"}"#).forever();
    let run = agent(&script).params(|params| {
        params.timeouts.idle = Some(Duration::from_millis(200));
    });
    let story = replayed(run, &scratch).await;
    assert_eq!(story.result.status, RunStatus::TimedOut);
    assert_eq!(scratch.meta()["stopped"]["error"]["kind"], "timeout");
}

#[tokio::test]
async fn output_after_the_exit_of_the_process_is_recorded() {
    let scratch = Scratch::new();
    let child = Script::new()
        .sleep(Duration::from_millis(100))
        .raw(r#"{"t":"late"}"#);
    let script = Script::new()
        .spawn(Spawn::new(SpawnKind::Child).hold_pipes(true).script(child))
        .line(END);
    let run = agent(&script).config(|config| config.drain_grace = LIMIT);
    let story = replayed(run, &scratch).await;
    assert_eq!(story.result.text, "late");
    assert_eq!(
        scratch.recorded(STDOUT),
        format!("{END}\n{{\"t\":\"late\"}}").as_bytes()
    );
}

#[tokio::test]
async fn a_killed_cli_is_recorded_with_its_signal() {
    let scratch = Scratch::new();
    let script = Script::new().line(r#"{"t":"x"}"#).kill_self(Signal::Kill);
    let story = replayed(agent(&script), &scratch).await;
    assert_eq!(story.result.exit_signal.as_deref(), Some("SIGKILL"));
    assert_eq!(scratch.meta()["signal"], "SIGKILL");
    assert_eq!(scratch.meta()["exit_code"], Value::Null);
}

#[test]
fn a_runtime_that_is_shut_down_leaves_a_complete_recording() {
    let scratch = Scratch::new();
    let script = Script::new().line(r#"{"t":"x"}"#).forever();
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    let mut stream = agent(&script).record_to(&scratch).start();
    runtime.block_on(next(&mut stream));
    drop(runtime);
    let meta = scratch.meta();
    assert_eq!(meta["stopped"]["why"], "failed");
    let why = meta["stopped"]["error"]["message"].as_str().unwrap();
    assert!(why.starts_with("the run was ended because"), "{why}");
    assert_eq!(scratch.recorded(STDOUT), b"{\"t\":\"x\"}\n");
}

#[tokio::test]
async fn the_stream_that_carries_the_events_is_recorded_as_stdout() {
    let scratch = Scratch::new();
    let script = Script::new()
        .line(Text::from(END).to(Stream::Stderr))
        .line("other");
    let run = agent(&script).launch(|launch| launch.events_on = EventsOn::Stderr);
    let story = replayed(run, &scratch).await;
    assert_eq!(story.result.status, RunStatus::Completed);
    assert_eq!(scratch.recorded(STDOUT), format!("{END}\n").as_bytes());
    assert_eq!(scratch.recorded(STDERR), b"other\n");
}

#[tokio::test]
async fn lines_of_the_clis_own_record_are_recorded() {
    let scratch = Scratch::new();
    let own = scratch.path("own.jsonl");
    let script = format!(
        "echo '{{\"s\":\"s\"}}'; printf '%s\\n' '{{\"figure\":1}}' '{{\"no\":1}}' '{{\"figure\":2}}' > {}; echo '{END}'",
        own.display()
    );
    let run = shell(&script).record(&own);
    let story = replayed(run, &scratch).await;
    assert_eq!(story.notices(), [r#"{"figure":1}"#, r#"{"figure":2}"#]);
    assert_eq!(
        scratch.recorded(RECORD),
        b"{\"figure\":1}\n{\"figure\":2}\n"
    );
}

#[tokio::test]
async fn a_folder_with_a_recording_is_refused_before_anything_starts() {
    for name in [STDOUT, STDERR, RECORD, META] {
        let scratch = Scratch::new();
        fs::create_dir_all(scratch.path(DIR)).unwrap();
        let file = scratch.path(DIR).join(name);
        // Links are refused too, whether broken or to a target where writing is harmless.
        if name == STDERR {
            symlink("/dev/full", &file).unwrap();
        } else {
            fs::write(&file, "mine").unwrap();
        }
        let script = Script::new().report(scratch.path("report")).line(END);
        let story = agent(&script).record_to(&scratch).finish().await;
        let error = story.error();
        assert_eq!(error.code, ErrorCode::InvalidParams);
        let expected = format!(
            "record_to: {} already has a file {name}, and",
            scratch.path(DIR).display()
        );
        assert!(error.message.starts_with(&expected), "{error}");
        assert!(!scratch.path("report").exists());
        let left = fs::read_dir(scratch.path(DIR)).unwrap().count();
        assert_eq!(left, 1, "{name}");
        if name != STDERR {
            assert_eq!(fs::read(&file).unwrap(), b"mine");
        }
    }
}

#[tokio::test]
async fn a_runtime_records_one_run() {
    let scratch = Scratch::new();
    let runtime = agent(&Script::new().line(END))
        .record_to(&scratch)
        .runtime();
    let first = finish(runtime.execute(ExecuteParams::new("x"))).await;
    assert_eq!(first.result.status, RunStatus::Completed);
    let second = finish(runtime.execute(ExecuteParams::new("x"))).await;
    assert_eq!(second.error().code, ErrorCode::InvalidParams);
    assert_eq!(scratch.recorded(STDOUT), format!("{END}\n").as_bytes());
}

#[tokio::test]
async fn a_folder_that_cannot_be_made_is_refused() {
    let scratch = Scratch::new();
    fs::write(scratch.path("a"), "a file").unwrap();
    let script = Script::new().report(scratch.path("report")).line(END);
    let story = agent(&script).record_to(&scratch).finish().await;
    assert_eq!(story.error().code, ErrorCode::InvalidParams);
    assert!(story.error().message.starts_with("record_to: "));
    assert!(!scratch.path("report").exists());
}

#[tokio::test]
async fn a_run_that_is_refused_leaves_no_folder() {
    let scratch = Scratch::new();
    let story = agent(&Script::new())
        .record_to(&scratch)
        .params(|params| params.working_directory = Some("/nowhere".into()))
        .finish()
        .await;
    assert_eq!(story.error().code, ErrorCode::InvalidParams);
    assert!(!scratch.path("a").exists());
}

#[tokio::test]
async fn a_program_that_the_system_does_not_start_leaves_a_recording() {
    let scratch = Scratch::new();
    let program = scratch.path("cli");
    proc::write_program(&program, "#!/nowhere/node\n").unwrap();
    let run = agent(&Script::new()).config(|config| config.program = Some(program));
    let story = run.record_to(&scratch).finish().await;
    assert_eq!(story.error().code, ErrorCode::CliNotFound);
    let fixture = Fixture::load(&scratch.path(DIR)).unwrap();
    assert_eq!(fixture.meta.argv, ["cli"]);
    let why = fixture.never_started().unwrap();
    assert!(why.starts_with("No such file or directory"), "{why}");
}

#[tokio::test]
async fn arguments_that_are_too_large_together_are_so_in_a_replay() {
    let scratch = Scratch::new();
    let run =
        agent(&Script::new()).launch(|launch| launch.args = vec!["x".repeat(120_000).into(); 70]);
    let provider = run.provider.clone();
    let story = run.record_to(&scratch).finish().await;
    let fixture = Fixture::load(&scratch.path(DIR)).unwrap();
    let again = Story::of(replay(&fixture, &provider, ReplayOptions::default()).events);
    assert_eq!(story.codes(), [ErrorCode::PromptTooLarge]);
    assert_eq!(again.codes(), story.codes());
}

#[tokio::test]
async fn credentials_are_not_in_the_description_of_the_run() {
    let scratch = Scratch::new();
    let run = shell(&format!("echo '{END}'"))
        .launch(|launch| {
            launch.args.push("--for=secret-of-server".into());
            launch.args.push("--header".into());
            launch.args.push("X: secret-of-header".into());
            let json = r#"{"url":"http://h/v1","auth":{"token":"secret-in-json"}}"#;
            launch.env.push(("CLI_SETTINGS".into(), json.into()));
        })
        .params(|params| {
            params.prompt = "use secret-of-caller".into();
            let env = &mut params.env;
            env.insert("SOME_API_KEY".into(), "secret-of-caller".into());
            env.insert("SOME_PROXY".into(), "http://me:secret-of-proxy@h".into());
            env.insert("SOME_MODE".into(), "fast".into());
            params.mcp_servers.push(
                McpServer::stdio("tracker", "tracker-mcp", ["x"]).env("VALUE", "secret-of-server"),
            );
        })
        .config(|config| {
            let allow = vec!["PATH".into(), "SOME_MODE".into()];
            config.env_policy = EnvPolicy::Clean { allow };
        });
    let story = run.record_to(&scratch).finish().await;
    assert_eq!(story.result.status, RunStatus::Completed);
    let text = String::from_utf8(scratch.recorded(META)).unwrap();
    assert!(!text.contains("secret-"), "{text}");
    let meta = scratch.meta();
    assert_eq!(
        meta["env"],
        serde_json::json!({
            "CLI_SETTINGS": r#"{"url":"http://h/v1","auth":{"token":"…"}}"#,
            "SOME_API_KEY": "…",
            "SOME_MODE": "fast",
            "SOME_PROXY": "http://h",
        })
    );
    let argv = meta["argv"].as_array().unwrap();
    assert_eq!(argv[0], "sh");
    assert_eq!(argv[3..], ["--for=…", "--header", "…"]);
    assert_eq!(meta["prompt"], "use …");
    assert_eq!(meta["mcp_servers"], serde_json::json!(["tracker"]));
}

#[tokio::test]
async fn runs_of_the_real_providers_replay_as_they_were() {
    for fixture in [
        "claude/2.1.197/tool_parallel",
        "codex/0.169.0/text",
        "copilot/1.0.102/text",
        "gemini/0.61.0/text_auto_model",
        "opencode/1.18.33/text",
    ] {
        let scratch = Scratch::new();
        let output = crate::engine::recorded::recorded(fixture);
        let (name, _) = fixture.split_once('/').unwrap();
        let mut config = RuntimeConfig::default();
        config.program = Some(env!("CARGO_BIN_EXE_teamster-fake-agent").into());
        config.record_to = Some(scratch.path(DIR).into());
        let mut params = ExecuteParams::new("hello");
        let [(variable, script)] = Script::new().play(output.clone()).env().unwrap();
        params.env.insert(variable.into(), script);
        if name == "copilot" {
            // Its command line does not distinguish a new session from a resumed one. A replay assumes the
            // latter.
            params.session_id = Some("d4fa99e6-9b0e-488f-808b-dd1a00c401fb".into());
        }
        let runtime = teamster::create_cli_runtime(name, config).unwrap();
        let story = finish(runtime.execute(params)).await;
        assert_eq!(scratch.recorded(STDOUT), fs::read(output).unwrap());
        let recording = Fixture::load(&scratch.path(DIR)).unwrap();
        assert_eq!(recording.meta.cli.as_deref(), Some(name));
        let provider = teamster::Providers::builtin().get(name).unwrap();
        let replay = replay(&recording, &*provider, ReplayOptions::default());
        assert_eq!(replay.events, story.events, "{fixture}");
    }
}

const LINES: u32 = 2000;

fn line(n: impl std::fmt::Display) -> String {
    format!(r#"{{"n":"{n}","x":"{}"}}"#, "x".repeat(100))
}

#[test]
fn a_full_disk_ends_the_recording_and_not_the_run() {
    let scratch = Scratch::new();
    let role = helper::role("recorder on a full disk", &scratch.path(""));
    // Limits files to 32 or 64 KiB. Larger writes fail without a signal. Both settings are inherited. The
    // output goes to pipes, because this process may write to a larger file.
    let output = Command::new("/bin/sh")
        .args(["-c", r#"trap "" XFSZ; ulimit -f 64; exec "$0" "$@""#])
        .arg(role.get_program())
        .args(role.get_args())
        .envs(role.get_envs().filter_map(|(k, v)| Some((k, v?))))
        .output()
        .unwrap();
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    let printed: String = (0..LINES).map(|n| line(n) + "\n").collect();
    let recorded = String::from_utf8(scratch.recorded(STDOUT)).unwrap();
    assert!((10_000..100_000).contains(&recorded.len()));
    assert!(printed.starts_with(&recorded));
    let why = scratch.meta()["incomplete"].as_str().unwrap().to_owned();
    assert!(
        why.starts_with("stdout.ndjson could not be written: "),
        "{why}"
    );
    let notices = fs::read_to_string(scratch.path("notices")).unwrap();
    let expected = format!(
        "the recording in {} is not complete: {why}",
        scratch.path(DIR).display()
    );
    assert_eq!(notices, expected);
    assert_eq!(scratch.recorded(STDERR), b"");
}

/// Records a run that prints more than the limited disk accepts.
pub(crate) fn be_limited(scratch: &Path) {
    let script = Script::new()
        .line(Text::from(line("{n}")).repeat(LINES.into()))
        .line(Text::from("too late").to(Stream::Stderr))
        .line(END);
    let run = agent(&script).config(|config| config.record_to = Some(scratch.join(DIR).into()));
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    let story = runtime.block_on(run.finish());
    assert_eq!(story.result.status, RunStatus::Completed);
    assert_eq!(story.result.diagnostics.lines, u64::from(LINES) + 1);
    fs::write(scratch.join("notices"), story.notices().join("\n")).unwrap();
}
