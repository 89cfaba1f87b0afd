//! A private home: one changed file, links to the user's files, and no loss.

use std::fs;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};
use teamster_core::provider::{ConfigEdit, ConfigFormat, ConfigLocation, ConfigTable, PrivateHome};
use teamster_core::{ErrorCode, ErrorKind, RunStatus};

use crate::engine::private_files::role;
use crate::engine::{END, Run, SHORT, Scratch, helper, next, refused, shell, wait_for};

/// Content of the user's own configuration.
const SETTINGS: &str = "{\n  // mine\n  \"theme\": \"dark\",\n  \"mcpServers\": {\"own\": {\"command\": \"own-mcp\"}, \"docs\": {\"command\": \"x\"}}\n}\n";

/// Creates a home with some files.
fn home(scratch: &Scratch) -> PathBuf {
    let home = scratch.path("home");
    fs::create_dir_all(home.join(".cli/skills")).unwrap();
    for (file, content) in [
        (".profile", "profile"),
        (".cli/settings.json", SETTINGS),
        (".cli/history", "old"),
        (".cli/token", "old"),
        (".cli/skills/one", "skill"),
    ] {
        fs::write(home.join(file), content).unwrap();
    }
    home
}

/// Prepares a shell that runs in a private home, in `$CLI_HOME`.
fn run(home: &Path, script: &str) -> Run {
    let edit = ConfigEdit {
        table: ConfigTable {
            file: home.join(".cli/settings.json"),
            format: ConfigFormat::Json,
            key: "mcpServers",
        },
        entries: vec![("docs".into(), json!({"command": "docs-mcp"}))],
        new_file: "",
        location: ConfigLocation::PrivateHome(PrivateHome {
            variable: "CLI_HOME",
            home: home.to_owned(),
            folder: ".cli",
            folders: &["sessions"],
            files: &["login"],
            caches: &["index"],
            litter: &["lock", "tmp"],
        }),
    };
    shell(&format!("cd \"$CLI_HOME\"; {script}; echo '{END}'"))
        .launch(|launch| launch.config = Some(edit))
        // The launch overrides the caller's variable.
        .params(|params| {
            params.env.insert("CLI_HOME".into(), "/nowhere".into());
            params.env.insert(
                "OUT".into(),
                home.with_file_name("out").display().to_string(),
            );
        })
}

fn read(path: impl AsRef<Path>) -> String {
    let path = path.as_ref();
    fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

async fn completed(run: Run) -> Vec<String> {
    let story = run.finish().await;
    assert_eq!(
        story.result.status,
        RunStatus::Completed,
        "{story:?}",
        story = story.result
    );
    story.notices().into_iter().map(str::to_owned).collect()
}

#[tokio::test]
async fn cli_sees_the_servers_and_the_rest_of_the_users_home() {
    let scratch = Scratch::new();
    let home = home(&scratch);
    let script = "pwd > $OUT; stat -c %a . .cli .cli/settings.json >> $OUT; \
        readlink .profile .cli/history .cli/skills .cli/sessions .cli/login >> $OUT; \
        cat .profile .cli/skills/one >> $OUT; cp .cli/settings.json $OUT.settings";
    assert_eq!(completed(run(&home, script)).await, [""; 0]);
    let out = read(scratch.path("out"));
    let (private, rest) = out.split_once('\n').unwrap();
    let users = |name: &str| format!("{}\n", home.join(name).display());
    assert_eq!(
        rest,
        [
            "700\n700\n600\n",
            &users(".profile"),
            &users(".cli/history"),
            &users(".cli/skills"),
            &users(".cli/sessions"),
            &users(".cli/login"),
            "profileskill"
        ]
        .concat()
    );
    assert!(!Path::new(private).exists(), "it is gone after the run");
    assert!(!Path::new(private).parent().unwrap().exists());
    let merged = read(scratch.path("out.settings"));
    let merged: Value = serde_json::from_str(&merged.replace("// mine\n", "")).unwrap();
    let expected = json!({
        "theme": "dark",
        "mcpServers": {"own": {"command": "own-mcp"}, "docs": {"command": "docs-mcp"}},
    });
    assert_eq!(merged, expected);
    assert_eq!(read(home.join(".cli/settings.json")), SETTINGS);
}

#[tokio::test]
async fn files_of_the_cli_are_carried_back_except_the_settings() {
    let scratch = Scratch::new();
    let home = home(&scratch);
    let script = "cd .cli; echo changed > settings.json; \
        echo more >> history; echo first > login; echo s > sessions/1; \
        echo new > token.new; mv token.new token; \
        echo added > added; mkdir -p tools/bin; echo tool > tools/bin/x; \
        mkdir index.lock; echo x > token.1234.tmp; rm -r skills";
    assert_eq!(completed(run(&home, script)).await, [""; 0]);
    for (file, content) in [
        ("settings.json", SETTINGS),
        ("history", "oldmore\n"),
        ("login", "first\n"),
        ("sessions/1", "s\n"),
        ("token", "new\n"),
        ("added", "added\n"),
        ("tools/bin/x", "tool\n"),
        // This was only a link.
        ("skills/one", "skill"),
    ] {
        assert_eq!(read(home.join(".cli").join(file)), content, "{file}");
    }
    assert!(!home.join(".cli/token").is_symlink());
    let mut names: Vec<_> = fs::read_dir(home.join(".cli"))
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    let expected = [
        "added",
        "history",
        "login",
        "sessions",
        "settings.json",
        "skills",
        "token",
        "tools",
    ];
    assert_eq!(names, expected);
}

#[tokio::test]
async fn changes_of_other_programs_stay_and_are_reported() {
    let scratch = Scratch::new();
    let home = home(&scratch);
    fs::write(home.join(".cli/index"), "old").unwrap();
    let script = "cd .cli; for f in token index; do echo ours > $f.x; mv $f.x $f; \
        echo theirs > \"$OTHER/$f\"; done";
    let run = run(&home, script).params(|params| {
        let other = home.join(".cli").display().to_string();
        params.env.insert("OTHER".into(), other);
    });
    let notices = completed(run).await;
    let token = home.join(".cli/token");
    assert_eq!(
        notices,
        [format!(
            "{}: changed by another program during the run as well; that stays, and what the CLI \
             wrote there is lost",
            token.display()
        )]
    );
    assert_eq!(read(token), "theirs\n");
    // The CLI can recreate this file, so there is no report.
    assert_eq!(read(home.join(".cli/index")), "theirs\n");
}

#[tokio::test]
async fn a_run_that_is_cut_short_brings_its_files_back_too() {
    let scratch = Scratch::new();
    let home = home(&scratch);
    let script = "echo new > .cli/t; mv .cli/t .cli/token; pwd > $OUT; mv $OUT $OUT.2; sleep 600";
    let aborted = run(&home, script).start();
    let abort = aborted.abort_handle();
    let end = tokio::spawn(aborted.result());
    wait_for(&scratch.path("out.2")).await;
    abort.abort();
    assert_eq!(end.await.unwrap().status, RunStatus::Aborted);
    assert_eq!(read(home.join(".cli/token")), "new\n");
    assert!(!Path::new(read(scratch.path("out.2")).trim()).exists());

    fs::write(home.join(".cli/token"), "old").unwrap();
    let silent = run(&home, script).config(|config| config.timeouts.startup = Some(SHORT));
    assert_eq!(silent.finish().await.result.status, RunStatus::TimedOut);
    assert_eq!(read(home.join(".cli/token")), "new\n");
}

#[test]
fn a_runtime_that_is_shut_down_brings_them_back_too() {
    let scratch = Scratch::new();
    let home = home(&scratch);
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let script =
        "echo new > .cli/t; mv .cli/t .cli/token; pwd > $OUT; echo '{\"t\":\"x\"}'; sleep 600";
    let mut stream = run(&home, script).start();
    runtime.block_on(next(&mut stream));
    drop(runtime);
    assert_eq!(read(home.join(".cli/token")), "new\n");
    assert!(!Path::new(read(scratch.path("out")).trim()).exists());
}

#[tokio::test]
async fn a_user_without_files_gets_those_of_the_cli() {
    let scratch = Scratch::new();
    let home = scratch.path("home");
    let script = "cp .cli/settings.json $OUT; echo s > .cli/sessions/1; echo t > .cli/login; \
        echo i > .cli/index";
    assert_eq!(completed(run(&home, script)).await, [""; 0]);
    let made: Value = serde_json::from_str(&read(scratch.path("out"))).unwrap();
    assert_eq!(
        made,
        json!({"mcpServers": {"docs": {"command": "docs-mcp"}}})
    );
    for (file, content) in [("sessions/1", "s\n"), ("login", "t\n"), ("index", "i\n")] {
        assert_eq!(read(home.join(".cli").join(file)), content);
    }
    assert!(!home.join(".cli/settings.json").exists());
}

#[tokio::test]
async fn unreadable_settings_are_named_before_the_start() {
    let scratch = Scratch::new();
    let home = home(&scratch);
    let settings = home.join(".cli/settings.json");
    for content in [&b"{\"mcpServers\": {"[..], b"{\"mcpServers\": \"\xff\"}"] {
        fs::write(&settings, content).unwrap();
        let (code, kind, message) = refused(run(&home, "touch $OUT")).await;
        assert_eq!((code, kind), (ErrorCode::ConfigLease, ErrorKind::Mcp));
        let name = settings.display().to_string();
        assert!(message.contains(&name), "{message}");
        assert!(!scratch.path("out").exists());
        assert_eq!(fs::read(&settings).unwrap(), content);
    }
}

#[tokio::test]
async fn concurrent_runs_have_a_home_each_and_share_the_users_files() {
    let scratch = Scratch::new();
    let home = home(&scratch);
    let script = |name: &str, other: &str| {
        format!(
            "pwd > $OUT.{name}; echo x > .cli/sessions/{name}; \
             until [ -e .cli/sessions/{other} ]; do sleep 0.01; done"
        )
    };
    let (one, two) = tokio::join!(
        completed(run(&home, &script("1", "2"))),
        completed(run(&home, &script("2", "1")))
    );
    assert_eq!((one, two), (vec![], vec![]));
    assert_ne!(read(scratch.path("out.1")), read(scratch.path("out.2")));
}

/// Hosts an engine: an agent in a private home, until this process is killed.
pub(crate) fn be_host(scratch: &Path) {
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let script = "echo s > .cli/sessions/1; pwd > $OUT; mv $OUT $OUT.2; exec sleep 600";
    let run = run(&scratch.join("home"), script).config(|config| config.die_with_parent = true);
    runtime.block_on(run.finish());
}

#[tokio::test]
async fn the_home_of_a_killed_run_is_removed_without_its_link_targets() {
    let scratch = Scratch::new();
    let home = home(&scratch);
    fs::create_dir(scratch.path("tmp")).unwrap();
    let host = helper::host(&mut role("host with a private home", &scratch));
    wait_for(&scratch.path("out.2")).await;
    drop(host);
    let private = read(scratch.path("out.2"));
    assert!(
        Path::new(private.trim())
            .join(".cli/settings.json")
            .exists()
    );
    assert!(
        role("run with private files", &scratch)
            .status()
            .unwrap()
            .success()
    );
    assert_eq!(fs::read_dir(scratch.path("tmp")).unwrap().count(), 0);
    for (file, content) in [
        (".profile", "profile"),
        (".cli/settings.json", SETTINGS),
        (".cli/history", "old"),
        (".cli/sessions/1", "s\n"),
        (".cli/skills/one", "skill"),
    ] {
        assert_eq!(read(home.join(file)), content, "{file}");
    }
}
