use super::*;

fn contained() -> Contained {
    Contained {
        engine: ContainerEngine::Docker,
        image: "agents:1".to_owned(),
        client: "/usr/bin/docker".into(),
        name: "teamster-1-2-3".to_owned(),
        run_id: "1-2-3".to_owned(),
        program: "cli".into(),
        directory: "/w".into(),
        mounts: vec![Mount::new("/w", "/w"), Mount::new("/a", "/b").read_only()],
        user: vec!["--user".into(), "7:8".into()],
        has_home: false,
    }
}

#[test]
fn values_of_variables_are_not_in_the_command_line() {
    let variables = [
        ("API_KEY", "secret"),
        ("HOME", "/h"),
        ("TEAMSTER_RUN_ID", "1-2-3"),
        ("XDG_CONFIG_HOME", "/x"),
    ];
    let variables = variables.map(|(name, value)| (OsString::from(name), OsString::from(value)));
    let (line, client) = contained().command_line(BTreeMap::from(variables), vec!["-p".into()]);
    let line: Vec<_> = line.iter().map(|it| it.to_str().unwrap()).collect();
    let line: Vec<_> = line
        .into_iter()
        // On a machine with SELinux.
        .filter(|it| !["--security-opt", "label=disable"].contains(it))
        .collect();
    let expected = "
        run --rm --interactive --init --pull=never --stop-timeout=0 --name teamster-1-2-3
        --label teamster.run=1-2-3 --workdir /w --user 7:8 --mount type=bind,source=/w,target=/w
        --mount type=bind,source=/a,target=/b,readonly --env API_KEY --env HOME=/h --env
        XDG_CONFIG_HOME=/x --entrypoint cli agents:1 -p
    ";
    let expected: Vec<_> = expected.split_ascii_whitespace().collect();
    assert_eq!(line, expected);
    let expected = BTreeMap::from([(OsString::from("API_KEY"), OsString::from("secret"))]);
    assert_eq!(client, expected);
}

#[test]
fn podman_passes_no_proxy_of_this_machine_on() {
    let mut contained = contained();
    let has_flag = |contained: &Contained| {
        let (line, _) = contained.command_line(BTreeMap::new(), Vec::new());
        line.contains(&OsString::from("--http-proxy=false"))
    };
    // Docker does not know the flag.
    assert!(!has_flag(&contained));
    contained.engine = ContainerEngine::Podman;
    assert!(has_flag(&contained));
}

#[test]
fn user_of_the_files_is_the_user_in_the_container() {
    let mut own: Vec<OsString> = vec!["--user".into()];
    own.push(format!("{}:{}", getuid(), getgid()).into());
    assert_eq!(user(ContainerEngine::Docker, false), own);
    assert_eq!(user(ContainerEngine::Docker, true), [""; 0]);
    assert_eq!(user(ContainerEngine::Podman, false), own);
    own.push("--userns=keep-id".into());
    assert_eq!(user(ContainerEngine::Podman, true), own);
}

/// The texts are those of Docker 28.2, tini 0.19, Podman 4.3 and catatonit 0.1.7.
#[test]
fn exit_codes_of_the_client_are_errors_of_the_start() {
    let error = |code, stderr| contained().not_started(code, stderr);
    let podman = "Error: crun: executable file `cli` not found in $PATH: No such file or directory: OCI runtime \
                  attempted to invoke a command that was not found\n";
    let missing = error(127, podman).unwrap();
    assert_eq!(missing.code, ErrorCode::CliNotFound);
    let begin = "the image agents:1 has no program `cli`: crun: executable file `cli` not found";
    assert!(missing.message.starts_with(begin), "{missing}");
    let docker = "docker: Cannot connect to the Docker daemon at unix:///var/run/docker.sock. Is the docker daemon \
                  running?\n\nRun 'docker run --help' for more information\n";
    let failed = error(125, docker).unwrap();
    assert_eq!(
        failed.message,
        "Docker could not start a container of agents:1: Cannot connect to the Docker daemon at \
         unix:///var/run/docker.sock. Is the docker daemon running?"
    );
    for (code, init) in [
        (
            127,
            "[FATAL tini (7)] exec cli failed: No such file or directory\n",
        ),
        (
            1,
            "ERROR (catatonit:2): failed to exec pid1: No such file or directory\n",
        ),
    ] {
        let missing = error(code, init).unwrap();
        let begin = "the image agents:1 has no program `cli`: No such file or directory;";
        assert!(missing.message.starts_with(begin), "{missing}");
        assert_eq!(missing.parameter(), Some("container"));
    }
    let denied = error(126, "[FATAL tini (7)] exec cli failed: Permission denied\n").unwrap();
    assert_eq!(
        denied.message,
        "the program `cli` of the image agents:1 cannot be started: Permission denied"
    );
    // Those of the CLI itself.
    assert_eq!(error(127, "sh: nothing: not found\n"), None);
    assert_eq!(error(1, podman), None);
}

#[test]
fn an_address_of_loopback_is_known() {
    for url in [
        "http://127.0.0.1:80/mcp",
        "http://localhost/",
        "https://u:p@LOCALHOST:1",
        "http://[::1]:8/x",
        "http://127.1.2.3?x",
    ] {
        assert!(is_loopback(url), "{url}");
    }
    for url in [
        "https://example.com/127.0.0.1",
        "http://[fe80::1]:8",
        "http://localhost.example.com",
    ] {
        assert!(!is_loopback(url), "{url}");
    }
}
