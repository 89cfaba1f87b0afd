//! `--remote ssh:HOST`: a script takes the place of `ssh` and starts the command on a machine with a home and a PATH of
//! its own, after what the profile of a shell prints. The last test uses a real server of ssh.

use std::fs::{self, Permissions};
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;

use nix::sys::signal::Signal;
use nix::unistd::Pid;
use serde_json::Value;
use teamster_client::Client;
use teamster_testkit::proc::{wait_gone, wait_until};
use teamster_testkit::run_service::{CLAUDE, ScriptedClaude, contract};
use tempfile::TempDir;
use tokio::runtime::Runtime;

use crate::cli::{Claude, Ended, LIMIT, Running, TEAMSTER, run, run_id, teamster};

/// A machine behind `ssh`.
struct OtherMachine {
    folder: TempDir,
}

impl OtherMachine {
    /// A machine with an agent whose program this is.
    fn new(program: &Path) -> Self {
        let folder = TempDir::new().unwrap();
        let path = |name: &str| folder.path().join(name);
        for name in ["bin", "home"] {
            fs::create_dir(path(name)).unwrap();
        }
        symlink(TEAMSTER, path("bin/teamster")).unwrap();
        let script = format!(
            "#!/bin/sh\n\
             for command; do :; done\n\
             cd {home} && echo $$ >> ../pids\n\
             echo 'Welcome to the box!'; printf '$ '\n\
             echo 'Last login: never' >&2\n\
             exec env -i PATH={bin}:/usr/bin:/bin HOME={home} XDG_STATE_HOME={home}/state \\\n\
             TEAMSTER_REMOTE=ssh:third TEAMSTER_STORE={home}/store.db TEAMSTER_CLAUDE_BIN={program} sh -c \"exec $command\"\n",
            home = path("home").display(),
            bin = path("bin").display(),
            program = program.display(),
        );
        fs::write(path("ssh"), script).unwrap();
        fs::set_permissions(path("ssh"), Permissions::from_mode(0o755)).unwrap();
        Self { folder }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// A command here, for that machine.
    fn command<'a>(&self, args: impl IntoIterator<Item = &'a str>) -> Command {
        let mut command = teamster(args);
        command
            .env("TEAMSTER_REMOTE", "ssh:me@box")
            .env("TEAMSTER_SSH", self.path("ssh"));
        command
    }

    #[track_caller]
    fn run<'a>(&self, args: impl IntoIterator<Item = &'a str>) -> Ended {
        run(&mut self.command(args))
    }

    /// The same, which succeeds without a warning. Returns stdout.
    #[track_caller]
    fn done<'a>(&self, args: impl IntoIterator<Item = &'a str>) -> String {
        let ended = self.run(args).quiet();
        ended.stdout
    }

    /// The processes that took the place of `ssh`, oldest first.
    fn pids(&self) -> Vec<u32> {
        let text = fs::read_to_string(self.path("pids")).unwrap_or_default();
        text.lines().map(|pid| pid.parse().unwrap()).collect()
    }

    /// Waits until no connection is left.
    #[track_caller]
    fn nothing_is_left(&self) {
        for pid in self.pids() {
            assert!(wait_gone(pid, LIMIT), "{pid} is left");
        }
    }
}

#[test]
fn runs_behind_ssh_keep_the_contract_over_one_connection() {
    let folder = tempfile::tempdir().unwrap();
    let program = folder.path().join("claude");
    fs::write(&program, CLAUDE).unwrap();
    fs::set_permissions(&program, Permissions::from_mode(0o755)).unwrap();
    let machine = OtherMachine::new(&program);
    let client = Client::new("ssh://me@box:2222", None).unwrap();
    let client = client.with_ssh_command(machine.path("ssh").display().to_string());
    let service = ScriptedClaude::new(Arc::new(client));
    let runtime = Runtime::new().unwrap();
    runtime.block_on(contract(&service));
    drop((service, runtime));
    assert_eq!(machine.pids().len(), 1);
    machine.nothing_is_left();
}

/// No connection, and so no process there, outlives the program that made it; a run does.
#[test]
fn a_run_goes_on_and_its_log_is_read_on_when_ssh_is_killed() {
    let claude = Claude::silent();
    let machine = OtherMachine::new(&claude.path("claude"));
    let mut running = Running::start(&mut machine.command(["run", "claude", "x", "--json"]));
    let mut seen = running.until(r#""type":"text""#);
    let id = run_id(&seen);
    let pid = machine.pids()[0];
    nix::sys::signal::kill(Pid::from_raw(pid.cast_signed()), Signal::SIGKILL).unwrap();
    // Ctrl-C at a terminal goes to all of its processes: the command reaches the run over another connection.
    assert!(wait_until(LIMIT, || machine.pids().len() == 2));
    running.signal(Signal::SIGINT);
    let ended = running.end();
    assert_eq!((ended.code, &*ended.stderr), (Some(130), ""));
    seen += &ended.stdout;
    let file = machine.path(&format!("home/state/teamster/runs/{id}/events.ndjson"));
    assert_eq!(seen, fs::read_to_string(file).unwrap());
    machine.nothing_is_left();

    let id = machine.done(["run", "-d", "claude", "x"]);
    let id = id.trim_end();
    let mut watcher = Running::start(&mut machine.command(["attach", id, "--json"]));
    watcher.until(r#""type":"text""#);
    watcher.signal(Signal::SIGKILL);
    watcher.end();
    machine.nothing_is_left();
    let live = machine.done(["runs", "list", "--live", "--json"]);
    assert!(live.contains(&id[..13]), "{live}");
    machine.done(["cancel", id]);
    assert_eq!(machine.run(["wait", id]).code, Some(130));
}

#[test]
fn the_doctor_shows_the_agents_there_before_anything_is_started() {
    let claude = Claude::plays("text", 0);
    let machine = OtherMachine::new(&claude.path("claude"));
    let report: Value = serde_json::from_str(&machine.done(["doctor", "--json"])).unwrap();
    assert_eq!(report["version"], env!("CARGO_PKG_VERSION"));
    let agent = &report["providers"][0];
    assert_eq!(
        (
            &agent["id"],
            &agent["usable"],
            &agent["version"],
            &agent["login"]["state"]
        ),
        (
            &"claude".into(),
            &true.into(),
            &"2.1.197".into(),
            &"no".into()
        )
    );
    assert_eq!(report.get("PATH"), None);
    let text = machine.done(["doctor"]);
    let head = format!(
        "teamster {} on ssh:me@box\n\n✗ Claude Code  2.1.197, not logged in\n",
        env!("CARGO_PKG_VERSION")
    );
    assert!(text.starts_with(&head), "{text}");
    assert!(text.contains("    login    no: "), "{text}");
    assert!(
        text.trim_end().ends_with("agents ready, 1 needs a login"),
        "{text}"
    );
    for flag in [&["--kill-leftovers"][..], &["--try", "acp:x"]] {
        let refused = machine.run([&["doctor"], flag].concat());
        assert_eq!(refused.code, Some(2), "{}", refused.stderr);
        refused.stderr_has(flag[0]);
    }
    assert!(!claude.path("report.json").exists(), "an agent was started");
}

#[test]
fn missing_remote_program_is_an_error_with_the_next_step() {
    let claude = Claude::plays("text", 0);
    let machine = OtherMachine::new(&claude.path("claude"));
    fs::rename(machine.path("bin"), machine.path("home/own bin")).unwrap();
    let missing = machine.run(["runs", "list"]);
    assert_eq!((missing.code, &*missing.stdout), (Some(1), ""));
    for word in [
        "cannot reach ssh:me@box",
        "teamster was not found",
        "not found",
        "~/.cargo/bin/teamster",
    ] {
        missing.stderr_has(word);
    }
    assert_eq!(missing.stderr.lines().count(), 1, "{}", missing.stderr);
    // The address names it.
    let listed = machine.run(["--remote", "ssh:box/~/own bin/teamster", "requests"]);
    assert_eq!(
        (listed.code, &*listed.stderr),
        (Some(0), "no pending requests\n")
    );

    for (url, word) in [
        ("ssh:-oProxyCommand=x", "is not the address of a machine"),
        ("ssh://me:secret@box", "password"),
        ("ssh:", "expected ssh:HOST"),
    ] {
        let refused = run(&mut teamster(["--remote", url, "runs", "list"]));
        refused.fails(2, word);
        assert!(!refused.stderr.contains("secret"), "{}", refused.stderr);
    }
    let mut without = teamster(["--remote", "ssh:box", "runs", "list"]);
    let empty = tempfile::tempdir().unwrap();
    symlink("/bin/sh", empty.path().join("sh")).unwrap();
    let without = run(without.env("PATH", empty.path()));
    assert_eq!(without.code, Some(1));
    let word = "ssh is not installed on this machine";
    without.stderr_has(word);
}

#[test]
fn only_a_program_is_served_on_standard_streams() {
    let listens = run(&mut teamster([
        "serve",
        "--stdio",
        "--listen",
        "127.0.0.1:0",
    ]));
    assert_eq!(listens.code, Some(2), "{}", listens.stderr);
    // Nothing is sent: it ends with its input, and makes no file.
    let folder = tempfile::tempdir().unwrap();
    let mut command = teamster(["serve", "--stdio"]);
    let ended = run(command.env("XDG_STATE_HOME", folder.path())).quiet();
    let greeting = format!("teamster-stdio 1 {}\n", env!("CARGO_PKG_VERSION"));
    assert!(ended.stdout.starts_with(&greeting), "{:?}", ended.stdout);
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0);
}

/// The same with the programs of OpenSSH, without a port: the client starts a server for each connection.
#[test]
fn a_real_server_of_ssh_takes_runs_and_leaves_nothing() {
    let claude = Claude::silent();
    let machine = OtherMachine::new(&claude.path("claude"));
    let path = |name: &str| machine.path(name).display().to_string();
    let Some(server) = server_of_ssh(&machine, &claude.path("claude")) else {
        eprintln!("not tested: this system has no sshd that starts here");
        return;
    };
    let user = nix::unistd::User::from_uid(nix::unistd::getuid());
    let user = user.unwrap().unwrap().name;
    let config = format!(
        "Host box\nUser {user}\nIdentityFile {}\nIdentitiesOnly yes\nIdentityAgent none\nUserKnownHostsFile {}\n\
         GlobalKnownHostsFile none\nHostKeyAlias box\nStrictHostKeyChecking yes\nProxyCommand {server} -i -f {}\n",
        path("user"),
        path("known"),
        path("sshd_config"),
    );
    fs::write(path("config"), config).unwrap();
    let ssh = format!("ssh -F {}", path("config"));
    let command = |args: &[&str]| {
        let mut command = machine.command(args.iter().copied());
        let url = format!("ssh:box{}", path("bin/teamster"));
        command
            .env("TEAMSTER_REMOTE", url)
            .env("TEAMSTER_SSH", &ssh);
        command
    };
    let done = |args: &[&str]| {
        let ended = run(&mut command(args));
        assert_eq!((ended.code, &*ended.stderr), (Some(0), ""), "{args:?}");
        ended.stdout
    };
    let id = done(&["run", "-d", "claude", "x"]);
    let id = id.trim_end();
    let mut watcher = Running::start(&mut command(&["attach", id, "--json"]));
    let mut seen = watcher.until(r#""type":"text""#);
    let connections = pids_with(&format!("{ssh} -T"));
    assert!(!connections.is_empty());
    for pid in connections {
        // The shell may have ended with `ssh`.
        let _ = nix::sys::signal::kill(Pid::from_raw(pid.cast_signed()), Signal::SIGKILL);
    }
    done(&["cancel", id]);
    let ended = watcher.end();
    assert_eq!(ended.code, Some(130), "{}", ended.stderr);
    seen += &ended.stdout;
    let file = machine.path(&format!("home/state/teamster/runs/{id}/events.ndjson"));
    assert_eq!(seen, fs::read_to_string(file).unwrap());
    let there = || pids_with(&path("bin/teamster"));
    assert!(wait_until(LIMIT, || there().is_empty()), "{:?}", there());

    // A key that is not allowed there, and another host.
    fs::remove_file(path("authorized")).unwrap();
    let denied = run(&mut command(&["runs", "list"]));
    assert_eq!((denied.code, denied.stderr.lines().count()), (Some(1), 1));
    denied.stderr_has("Permission denied (publickey)");
    fs::write(path("known"), "").unwrap();
    let unknown = run(&mut command(&["runs", "list"]));
    assert_eq!((unknown.code, unknown.stderr.lines().count()), (Some(1), 1));
    unknown.stderr_has("Host key verification failed");
}

/// Writes keys and the configuration of a server of ssh in the folder of a machine. Returns the program, if there is one
/// that starts with them.
fn server_of_ssh(machine: &OtherMachine, claude: &Path) -> Option<String> {
    let path = |name: &str| machine.path(name).display().to_string();
    let folders = std::env::var_os("PATH").unwrap_or_default();
    let more = ["/usr/sbin", "/usr/local/sbin", "/sbin"].map(PathBuf::from);
    let program = std::env::split_paths(&folders)
        .chain(more)
        .map(|folder| folder.join("sshd"))
        .find(|file| file.is_file())?;
    for name in ["host", "user"] {
        let made = Command::new("ssh-keygen")
            .args(["-q", "-t", "ed25519", "-N", "", "-f", &path(name)])
            .status();
        if !made.is_ok_and(|made| made.success()) {
            return None;
        }
    }
    fs::copy(path("user.pub"), path("authorized")).unwrap();
    let key = fs::read_to_string(path("host.pub")).unwrap();
    fs::write(path("known"), format!("box {key}")).unwrap();
    let home = path("home");
    let config = format!(
        "HostKey {}\nAuthorizedKeysFile {}\nStrictModes no\nPidFile none\nUsePAM no\nPasswordAuthentication no\n\
         KbdInteractiveAuthentication no\nPermitRootLogin prohibit-password\nPrintMotd no\n\
         SetEnv HOME={home} XDG_STATE_HOME={home}/state TEAMSTER_STORE=off TEAMSTER_CLAUDE_BIN={}\n",
        path("host"),
        path("authorized"),
        claude.display(),
    );
    fs::write(path("sshd_config"), config).unwrap();
    fs::write(machine.path("home/.bashrc"), "echo Welcome\n").unwrap();
    let tried = Command::new(&program)
        .args(["-t", "-f", &path("sshd_config")])
        .output();
    tried
        .is_ok_and(|tried| tried.status.success())
        .then(|| program.display().to_string())
}

/// Returns the processes with this text in an argument, without those of this test.
fn pids_with(text: &str) -> Vec<u32> {
    let listed = Command::new("ps")
        .args(["-e", "-o", "pid=,args="])
        .output()
        .unwrap();
    let listed = String::from_utf8_lossy(&listed.stdout).into_owned();
    let lines = listed.lines().filter(|line| line.contains(text));
    let pids = lines.filter_map(|line| line.split_whitespace().next()?.parse().ok());
    pids.filter(|pid| *pid != std::process::id()).collect()
}
