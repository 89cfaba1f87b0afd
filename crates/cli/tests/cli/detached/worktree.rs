//! `--worktree`: a git worktree of its own for a run.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::cli::chat::Agent;
use crate::cli::{Ended, program, run};

/// An agent beside a repository with one commit and a folder `sub`.
pub(in crate::cli) struct Repository {
    pub(super) agent: Agent,
}

impl Repository {
    pub(in crate::cli) fn new() -> Self {
        let repository = Self {
            agent: Agent::new(),
        };
        let path = repository.path();
        fs::create_dir_all(path.join("sub")).unwrap();
        fs::write(path.join("sub/file"), "one\n").unwrap();
        repository.git(&["init", "-q", "-b", "main"]);
        repository.git(&["add", "."]);
        repository.git(&["commit", "-q", "-m", "First"]);
        repository
    }

    pub(in crate::cli) fn path(&self) -> PathBuf {
        self.agent.path("repository")
    }

    pub(in crate::cli) fn git(&self, args: &[&str]) -> String {
        let output = Command::new("git")
            .args(["-c", "user.email=a@example.com", "-c", "user.name=A"])
            .args(args)
            .current_dir(self.path())
            .env_clear()
            .env("PATH", "/usr/local/bin:/usr/bin:/bin")
            .output()
            .unwrap();
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{args:?}: {said}");
        String::from_utf8(output.stdout).unwrap()
    }

    pub(in crate::cli) fn command(&self, args: &[&str]) -> Ended {
        self.command_with(args, &[])
    }

    /// Runs a command with these variables.
    pub(super) fn command_with(&self, args: &[&str], variables: &[(&str, &Path)]) -> Ended {
        run(self.prepare(args).envs(variables.iter().copied()))
    }

    /// Creates a command that works in the repository.
    pub(super) fn prepare(&self, args: &[&str]) -> Command {
        let mut command = self.agent.command(args.iter().copied());
        command
            .env("PATH", "/usr/local/bin:/usr/bin:/bin")
            .current_dir(self.path());
        command
    }

    /// An agent that is this shell script, as the argument of `teamster run`.
    pub(super) fn script(&self, name: &str, script: &str) -> String {
        let path = self.agent.path(name);
        program(&path, script);
        format!("cmd:{}", path.display())
    }

    /// An agent that commits a file.
    pub(in crate::cli) fn committer(&self) -> String {
        let git = "git -c user.email=a@example.com -c user.name=A";
        let script =
            format!("echo 1 > agent.txt && {git} add agent.txt && {git} commit -qm 'Of the agent'");
        self.script("committer", &script)
    }

    /// Returns the subject of a branch's last commit.
    pub(super) fn last(&self, branch: &str) -> String {
        self.git(&["log", "-1", "--format=%s", branch])
    }

    fn chat(&self, message: &str, args: &[&str]) -> Ended {
        let input = self.agent.path("message");
        fs::write(&input, format!("{message}\n")).unwrap();
        let mut command = self.prepare(&[&["chat", "claude"], args].concat());
        run(command.stdin(fs::File::open(input).unwrap()))
    }

    fn worktrees(&self) -> PathBuf {
        self.agent.path("state").join("teamster/worktrees")
    }

    /// The folders of worktrees.
    pub(super) fn left(&self) -> Vec<PathBuf> {
        let Ok(entries) = fs::read_dir(self.worktrees()) else {
            return Vec::new();
        };
        entries.map(|entry| entry.unwrap().path()).collect()
    }

    fn branches(&self) -> String {
        self.git(&["branch", "--format=%(refname:short)"])
    }
}

/// Returns the working directory of the agent's last start.
fn here(repository: &Repository) -> PathBuf {
    let place = fs::read_to_string(repository.agent.path("here")).unwrap();
    PathBuf::from(place.trim_end())
}

#[test]
fn end_of_an_attached_session_shows_how_to_resume_it() {
    let repository = Repository::new();
    let ended = |args: &[&str]| {
        let started = repository.command(&[&["chat", "--detach", "claude"], args].concat());
        let id = started.stdout.trim_end();
        repository.command(&["say", id, "more"]).ok();
        repository.command(&["cancel", id]);
        repository.command(&["wait", id]);
        repository.command(&["attach", id]).stderr
    };
    let stderr = ended(&["-C", "sub"]);
    let sub = repository.path().join("sub");
    let expected = format!(
        "resume with: teamster chat claude --cwd {} --resume session-",
        sub.display()
    );
    assert!(stderr.contains(&expected), "{stderr}");
    // Nothing was changed, so the worktree is gone.
    let stderr = ended(&["--worktree"]);
    assert!(repository.left().is_empty());
    assert!(!stderr.contains("resume with"), "{stderr}");
}

#[test]
fn unchanged_worktree_is_removed() {
    let repository = Repository::new();
    let ended = repository.chat("more", &["-C", "sub", "--worktree"]).ok();
    ended.stderr_has("worktree without changes removed");
    assert!(here(&repository).ends_with("repository/sub"));
    assert!(here(&repository).starts_with(repository.worktrees()));
    assert_eq!(repository.left(), Vec::<PathBuf>::new());
    assert_eq!(repository.branches(), "main\n");
    assert_eq!(repository.git(&["worktree", "list"]).lines().count(), 1);
}

#[test]
fn changed_worktree_is_kept_and_reported() {
    let repository = Repository::new();
    fs::write(repository.path().join("mine"), "not committed").unwrap();
    let ended = repository.chat("touch", &["--worktree=fix/it"]).ok();
    ended.stderr_has("without the uncommitted changes to 1 file");
    let place = here(&repository);
    let expected = format!(
        "1 changed file not committed on branch fix/it in {}",
        place.display()
    );
    ended.stderr_has(&expected);
    assert!(place.join("touched").exists() && !place.join("mine").exists());

    repository
        .chat("touch", &["--worktree=fix/it"])
        .only_says(2, "a branch \"fix/it\" exists already");
    // It is kept by the next one too.
    repository.chat("more", &["--worktree"]);
    assert!(place.join("touched").exists());
}

#[test]
fn impossible_worktree_is_a_usage_error() {
    let repository = Repository::new();
    let refused = |args: &[&str], why: &str| {
        let ended = repository.command(&[&["run", "claude", "x"], args].concat());
        assert_eq!(
            (ended.code, &*ended.stdout),
            (Some(2), ""),
            "{args:?}: {}",
            ended.stderr
        );
        assert!(ended.stderr.contains(why), "{args:?}: {}", ended.stderr);
    };
    refused(&["--worktree=a..b"], "is not a valid branch name");
    refused(&["--worktree=-x"], "is not a valid branch name");
    refused(&["--worktree=main"], "a branch \"main\" exists already");
    // The name of a parameter is no option here.
    repository.git(&["branch", "fork"]);
    refused(&["--worktree=fork"], "a branch \"fork\" exists already");
    refused(&["--worktree=main/x"], "git: ");
    refused(&["--worktree", "--resume", "s"], "cannot be used with");
    let outside = repository.agent.path("outside");
    fs::create_dir(&outside).unwrap();
    let outside = outside.display().to_string();
    refused(
        &["--worktree", "-C", &outside],
        "is not in a git repository",
    );
    let empty = Path::new(&outside).display().to_string();
    repository.git(&["init", "-q", &empty]);
    refused(&["--worktree", "-C", &empty], "has no commit yet");
    for named in [
        &["--worktree-from=nowhere"][..],
        &["--worktree", "--worktree-from=nowhere"],
    ] {
        refused(named, "error: --worktree-from: the repository ");
    }
    assert_eq!(repository.left(), Vec::<PathBuf>::new());
    assert_eq!(repository.agent.starts(), Vec::<String>::new());
}

#[test]
fn attached_run_shows_how_to_resume_only_in_a_kept_worktree() {
    let repository = Repository::new();
    // Made by hand: the least of Claude Code's output that makes a run.
    program(
        &repository.agent.path("claude"),
        r#"
case "$*" in *--version*) echo '2.1.330 (Claude Code)'; exit ;; esac
case "$*$(cat)" in *touch*) : > touched ;; esac
printf '{"type":"system","subtype":"init","session_id":"session-1","model":"opus"}\n'
printf '{"type":"assistant","session_id":"session-1","message":{"id":"m","role":"assistant","content":[{"type":"text","text":"Hello."}]}}\n'
printf '{"type":"result","subtype":"success","is_error":false,"session_id":"session-1","num_turns":1,"result":"Hello.","usage":{"input_tokens":10,"output_tokens":5}}\n'
"#,
    );
    let gone = repository
        .command(&["run", "claude", "look", "--worktree"])
        .ok();
    gone.stderr_has("worktree without changes removed");
    assert!(!gone.stderr.contains("resume with"), "{}", gone.stderr);
    let kept = repository.command(&["run", "claude", "touch", "--worktree"]);
    let path = repository.left()[0]
        .join("repository")
        .display()
        .to_string();
    let expected =
        format!("resume with: teamster run claude --cwd {path} --resume session-1 PROMPT");
    kept.stderr_has(&expected);
    let here = repository.command(&["run", "claude", "look"]);
    here.stderr_has("resume with: teamster run claude --resume session-1");
}

#[test]
fn a_chat_shows_how_to_resume_only_in_a_worktree_that_stays() {
    let repository = Repository::new();
    let gone = repository.chat("more", &["--worktree"]);
    assert!(!gone.stderr.contains("resume with"), "{}", gone.stderr);
    let kept = repository.chat("touch", &["--worktree"]);
    kept.stderr_has("resume with: teamster chat claude --cwd ");
}

#[test]
fn a_session_collects_its_files_and_is_pushed_at_its_end() {
    let repository = Repository::new();
    let ok = |args: &[&str]| {
        let ended = repository.command(args);
        assert_eq!(ended.code, Some(0), "{args:?}: {}", ended.stderr);
        ended
    };
    let more = ["--worktree", "--artifact", "touched", "--push", "origin"];
    let start = [&["chat", "--detach", "claude"], &more[..]].concat();
    let id = ok(&start).stdout.trim().to_owned();
    ok(&["say", &id, "touch", "--quiet"]);
    ok(&["cancel", &id]);
    ok(&["wait", &id]);
    let files = ok(&["runs", "files", &id]).stdout;
    assert!(files.contains("touched"), "{files}");
    let log = ok(&["attach", &id]).stderr;
    assert!(log.contains("so nothing was pushed"), "{log}");

    // There is nothing to push from the user's own directory.
    repository
        .command(&["chat", "claude", "--push", "origin"])
        .fails(2, "--worktree");
}
