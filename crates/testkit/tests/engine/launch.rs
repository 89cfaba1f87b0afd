//! The launch of a process, and errors before it.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::time::{Duration, Instant};

use teamster_core::provider::{PathLocation, PrivateFile};
use teamster_core::{ErrorCode, ErrorDetail, ErrorKind, RunStatus};
use teamster_process::EnvPolicy;
use teamster_testkit::fake_agent::{Report, Script};
use teamster_testkit::proc;

use crate::engine::{END, Run, Scratch, agent, next, refused, shell};

/// Runs an agent that reports its arguments and environment.
async fn report(change: impl FnOnce(Run) -> Run) -> Report {
    let scratch = Scratch::new();
    let file = scratch.path("report.json");
    let script = Script::new().report(&file).line(END);
    let story = change(agent(&script)).finish().await;
    assert_eq!(story.result.status, RunStatus::Completed);
    Report::read(file).unwrap()
}

#[tokio::test]
async fn environment_is_of_parent_then_provider_then_caller() {
    let report = report(|run| {
        run.launch(|launch| {
            launch.env.push(("ONE".into(), "provider".into()));
            launch.env.push(("TWO".into(), "provider".into()));
            launch.env.push(("HOME".into(), "provider".into()));
            launch.env_merged.push(("THREE".into(), "merged".into()));
        })
        .params(|params| {
            params.env.insert("TWO".into(), "caller".into());
            params.env.insert("LANG".into(), "caller".into());
            params.env.insert("THREE".into(), "caller".into());
        })
    })
    .await;
    assert_eq!(report.env["ONE"], "provider");
    assert_eq!(report.env["TWO"], "caller");
    assert_eq!(report.env["THREE"], "merged");
    assert_eq!(report.env["HOME"], "provider");
    assert_eq!(report.env["LANG"], "caller");
    assert_eq!(report.env["PATH"], std::env::var("PATH").unwrap());
}

#[tokio::test]
async fn a_clean_environment_has_only_the_named_variables() {
    let report = report(|run| {
        run.config(|config| {
            config.env_policy = EnvPolicy::Clean {
                allow: vec!["PATH".into(), "NOT_SET_ANYWHERE".into()],
            };
        })
        .launch(|launch| launch.env.push(("ONE".into(), "provider".into())))
        .params(|params| {
            params.env.insert("TWO".into(), "caller".into());
        })
    })
    .await;
    let names: Vec<_> = report.env.keys().map(String::as_str).collect();
    assert_eq!(
        names,
        [
            "ONE",
            "PATH",
            "TEAMSTER_FAKE_SCRIPT",
            "TEAMSTER_RUN_ID",
            "TWO"
        ]
    );
}

#[tokio::test]
async fn our_own_variables_are_not_inherited() {
    let report = report(|run| {
        run.config(|config| config.env_remove = vec!["HOME".into(), "LANG".into()])
            .params(|params| {
                params.env.insert("LANG".into(), "caller".into());
            })
    })
    .await;
    assert_eq!(report.env.get("HOME"), None);
    assert_eq!(report.env["LANG"], "caller");
    assert!(report.env.contains_key("PATH"));
}

#[tokio::test]
async fn nested_session_variables_are_removed_unless_set_by_caller() {
    let gone = report(|run| run.launch(|launch| launch.env_remove = vec!["HOME", "PATH"])).await;
    assert!(!gone.env.contains_key("HOME"));
    assert!(!gone.env.contains_key("PATH"));
    let set = report(|run| {
        run.launch(|launch| {
            launch.env_remove = vec!["HOME", "LANG"];
            launch.env.push(("LANG".into(), "provider".into()));
        })
        .params(|params| {
            params.env.insert("HOME".into(), "/caller".into());
        })
    })
    .await;
    assert_eq!(set.env["HOME"], "/caller");
    assert_eq!(set.env["LANG"], "provider");
}

#[tokio::test]
async fn an_agent_has_a_group_and_a_run_id_of_its_own() {
    let one = report(|run| run).await;
    let two = report(|run| run).await;
    assert_eq!(one.pid, one.pgid);
    assert_eq!(one.ppid, std::process::id());
    let id = &one.env["TEAMSTER_RUN_ID"];
    assert!(id.starts_with(&format!("{}-", std::process::id())), "{id}");
    assert_ne!(*id, two.env["TEAMSTER_RUN_ID"]);
}

#[tokio::test]
async fn an_agent_works_in_its_working_directory() {
    let scratch = Scratch::new();
    let directory = fs::canonicalize(scratch.path(".")).unwrap();
    let report =
        report(|run| run.params(|params| params.working_directory = Some(directory.clone()))).await;
    assert_eq!(report.cwd, directory.to_str().unwrap());
}

#[tokio::test]
async fn a_program_is_searched_on_the_childs_own_path() {
    let scratch = Scratch::new();
    let program = scratch.path("teamster-fake-agent");
    proc::write_program(&program, "#!/bin/sh\necho '{\"end\":false}'\n").unwrap();
    let story = shell("")
        .config(|config| config.program = None)
        .params(|params| {
            let path = scratch.path(".").display().to_string();
            params.env.insert("PATH".into(), path);
        })
        .finish()
        .await;
    assert_eq!(story.result.status, RunStatus::Completed);
}

#[tokio::test]
async fn missing_program_or_directory_and_no_exec_bit_are_distinct() {
    let scratch = Scratch::new();
    let file = scratch.path("file");
    fs::write(&file, "").unwrap();

    let story = shell("").config(|config| config.program = None);
    let story = story.params(|params| {
        params.env.insert("PATH".into(), "/nowhere".into());
    });
    let story = story.finish().await;
    let error = story.error();
    assert_eq!(
        (error.code, error.kind),
        (ErrorCode::CliNotFound, ErrorKind::NotFound)
    );
    let detail = error.detail.as_deref();
    assert_eq!(
        detail,
        Some(&ErrorDetail::missing_program(
            "teamster-fake-agent",
            "cargo install fake"
        ))
    );
    assert_eq!(
        error.message,
        "the program `teamster-fake-agent` was not found: searched /nowhere; \
         to install Fake Agent: cargo install fake"
    );

    let (code, kind, message) =
        refused(shell("").config(|config| config.program = Some(file.clone()))).await;
    assert_eq!((code, kind), (ErrorCode::CliNotFound, ErrorKind::NotFound));
    assert!(message.contains("is not executable"), "{message}");

    let missing = scratch.path("missing");
    let (code, kind, message) =
        refused(shell("").params(|params| params.working_directory = Some(missing.clone()))).await;
    assert_eq!(
        (code, kind),
        (ErrorCode::InvalidParams, ErrorKind::NotFound)
    );
    assert_eq!(
        message,
        format!("working_directory: {} does not exist", missing.display())
    );

    let (code, kind, message) =
        refused(shell("").params(|params| params.working_directory = Some(file.clone()))).await;
    assert_eq!((code, kind), (ErrorCode::InvalidParams, ErrorKind::Invalid));
    assert!(message.ends_with("is not a directory"), "{message}");

    let (code, kind, message) =
        refused(shell("").params(|params| params.add_dirs = vec![missing.clone()])).await;
    assert_eq!(
        (code, kind),
        (ErrorCode::InvalidParams, ErrorKind::NotFound)
    );
    assert_eq!(
        message,
        format!("add_dirs: {} does not exist", missing.display())
    );
}

#[tokio::test]
async fn a_further_directory_is_meant_from_where_the_agent_works() {
    let scratch = Scratch::new();
    fs::create_dir_all(scratch.path("work")).unwrap();
    fs::create_dir_all(scratch.path("beside")).unwrap();
    let mut run = shell(&format!("echo '{END}'")).params(|params| {
        params.working_directory = Some(scratch.path("work"));
        params.add_dirs = vec!["../beside".into()];
    });
    let seen = run.provider.add_dirs.clone();
    assert_eq!(
        run.clone().finish().await.result.status,
        RunStatus::Completed
    );
    assert_eq!(*seen.lock().unwrap(), [scratch.path("work/../beside")]);
    run.params.add_dirs = vec!["beside".into()];
    let (_, kind, message) = refused(run).await;
    assert_eq!(kind, ErrorKind::NotFound, "{message}");
}

#[tokio::test]
async fn a_directory_without_a_skill_is_refused() {
    let scratch = Scratch::new();
    fs::create_dir_all(scratch.path("skill")).unwrap();
    let run = shell(&format!("echo '{END}'")).params(|params| {
        params.skills = vec![scratch.path("skill")];
    });
    let (_, kind, message) = refused(run.clone()).await;
    assert_eq!(kind, ErrorKind::NotFound, "{message}");
    assert_eq!(
        message,
        format!(
            "skills: {} has no SKILL.md; name the directory of one skill",
            scratch.path("skill").display()
        )
    );
    fs::write(scratch.path("skill/SKILL.md"), "").unwrap();
    assert_eq!(run.finish().await.result.status, RunStatus::Completed);
}

#[tokio::test]
async fn a_missing_interpreter_is_reported() {
    let scratch = Scratch::new();
    let program = scratch.path("cli");
    proc::write_program(&program, "#!/nowhere/node\n").unwrap();
    let (code, kind, message) =
        refused(shell("").config(|config| config.program = Some(program))).await;
    assert_eq!((code, kind), (ErrorCode::CliNotFound, ErrorKind::NotFound));
    assert!(message.contains("interpreter"), "{message}");
}

#[tokio::test]
async fn a_program_that_is_being_written_is_waited_for_and_then_named() {
    let scratch = Scratch::new();
    let program = scratch.path("cli");
    proc::write_program(&program, format!("#!/bin/sh\necho '{END}'\n")).unwrap();
    let run = shell("").config(|config| config.program = Some(program.clone()));

    let writer = fs::File::options().append(true).open(&program).unwrap();
    let start = Instant::now();
    let story = run.clone().finish().await;
    assert!(
        start.elapsed() >= Duration::from_millis(45),
        "it tries again"
    );
    assert_eq!(story.error().code, ErrorCode::Io);
    assert!(story.error().retryable);
    assert!(story.error().message.contains("cannot be started"));

    drop(writer);
    assert_eq!(run.finish().await.result.status, RunStatus::Completed);
}

#[tokio::test]
async fn an_argument_of_128_kib_is_refused_before_anything_runs() {
    let scratch = Scratch::new();
    let mark = scratch.path("ran");
    let run = |bytes: usize| {
        shell(&format!("touch {}; echo '{END}'", mark.display())).launch(|launch| {
            launch.args.push("secret".repeat(bytes)[..bytes].into());
        })
    };
    let (code, kind, message) = refused(run(128 << 10)).await;
    assert_eq!(
        (code, kind),
        (ErrorCode::PromptTooLarge, ErrorKind::Invalid)
    );
    assert!(
        message.starts_with("argument 3 of 3 is 131072 bytes long"),
        "{message}"
    );
    assert!(!message.contains("secret"));
    assert!(!mark.exists());

    let story = run((128 << 10) - 1).finish().await;
    assert_eq!(story.result.status, RunStatus::Completed);
    assert!(mark.exists());
}

#[tokio::test]
async fn arguments_that_are_too_large_together_have_the_same_code() {
    let (code, kind, message) = refused(shell("").launch(|launch| {
        launch.args.extend(vec!["x".repeat(100_000).into(); 200]);
    }))
    .await;
    assert_eq!(
        (code, kind),
        (ErrorCode::PromptTooLarge, ErrorKind::Invalid)
    );
    assert!(message.contains("202 arguments"), "{message}");
}

#[tokio::test]
async fn a_variable_that_cannot_be_is_named_without_its_value() {
    for (name, value) in [("A=B", "secret"), ("", "secret"), ("NUL", "secret\0")] {
        let (code, kind, message) = refused(shell("").params(|params| {
            params.env.insert(name.into(), value.into());
        }))
        .await;
        assert_eq!((code, kind), (ErrorCode::InvalidParams, ErrorKind::Invalid));
        assert!(
            message.contains(name) && !message.contains("secret"),
            "{message}"
        );
    }
    let (code, _, message) = refused(shell("").params(|params| {
        params.env.insert("BIG".into(), "secret".repeat(30_000));
    }))
    .await;
    assert_eq!(code, ErrorCode::PromptTooLarge);
    assert!(
        message.contains("BIG") && !message.contains("secret"),
        "{message}"
    );
}

#[tokio::test]
async fn a_private_file_is_there_for_the_run_and_for_this_user_only() {
    let scratch = Scratch::new();
    let (report, go) = (scratch.path("report"), scratch.path("go"));
    let script = Script::new()
        .report(&report)
        .line("{}")
        .wait_for_file(&go)
        .line(END);
    let mut stream = agent(&script)
        .launch(|launch| {
            launch.args.insert(0, "--secret=".into());
            launch.args.insert(1, "--rules=".into());
            launch.args.insert(2, "--plugin=".into());
            launch.private_files = vec![
                PrivateFile {
                    location: PathLocation::Argument(0),
                    content: b"content".to_vec(),
                },
                PrivateFile {
                    location: PathLocation::Variable("SECRET_FILE".into()),
                    content: b"other".to_vec(),
                },
                PrivateFile {
                    location: PathLocation::ArgumentNamed(1, ".toml"),
                    content: b"third".to_vec(),
                },
                PrivateFile {
                    location: PathLocation::ArgumentDirectory(2, "plugin.json"),
                    content: b"fourth".to_vec(),
                },
            ];
        })
        .start();
    next(&mut stream).await;
    let report = Report::read(&report).unwrap();
    let first = report.argv[1].strip_prefix("--secret=").unwrap();
    let second = &report.env["SECRET_FILE"];
    let third = report.argv[2].strip_prefix("--rules=").unwrap();
    let directory = Path::new(report.argv[3].strip_prefix("--plugin=").unwrap());
    let mode = fs::metadata(directory).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o700);
    assert_eq!(fs::read_dir(directory).unwrap().count(), 1);
    let fourth = directory.join("plugin.json");
    let (first, second, third) = (Path::new(first), Path::new(second), Path::new(third));
    assert_eq!(third.extension().unwrap(), "toml");
    for (path, content) in [
        (first, "content"),
        (second, "other"),
        (third, "third"),
        (&*fourth, "fourth"),
    ] {
        assert_eq!(fs::read_to_string(path).unwrap(), content);
        let mode = fs::metadata(path).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
    }
    fs::write(go, "").unwrap();
    assert_eq!(stream.result().await.status, RunStatus::Completed);
    for path in [first, second, third, directory] {
        assert!(!path.exists());
    }
}
