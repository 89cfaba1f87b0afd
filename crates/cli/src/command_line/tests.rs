#[cfg(all(repository, feature = "fleet"))]
mod documented;

use clap::CommandFactory;

use super::*;

#[test]
fn a_mistyped_command_suggests_the_nearest_one() {
    for (typed, nearest) in [
        ("rnu", "'run'"),
        ("docter", "'doctor'"),
        ("mcpp", "'mcp'"),
        ("agent", "'agents'"),
    ] {
        let args = ["teamster", typed].map(OsString::from);
        let error = Cli::read(args).unwrap_err().to_string();
        assert!(error.contains(&format!("exists: {nearest}")), "{error}");
    }
}

#[test]
fn a_missing_argument_says_where_its_value_is() {
    for (args, tip) in [
        (&["attach"][..], "tip: `teamster runs list` lists the runs"),
        (
            &["runs", "show"],
            "tip: `teamster runs list` lists the runs",
        ),
        (&["cancel"], "tip: `teamster runs list --live` lists those"),
        (&["answer"], "tip: `teamster requests` lists the requests"),
        (&["answer", "0199d1c2"], "not provided:\n  <ANSWER>..."),
    ] {
        let args = std::iter::once(&"teamster").chain(args);
        let error = Cli::read(args.map(OsString::from)).unwrap_err();
        assert!(error.to_string().contains(tip), "{error}");
    }
    let args = ["teamster", "say", "0199d1c2"].map(OsString::from);
    let error = Cli::read(args).unwrap_err().to_string();
    assert!(
        error.contains("<PROMPT>") && !error.contains("tip:"),
        "{error}"
    );
    let args = ["teamster", "chat"].map(OsString::from);
    let error = Cli::read(args).unwrap_err().to_string();
    let agents = [
        "tip: agents that are installed here: ",
        "tip: `teamster doctor` lists the agents",
    ];
    assert!(agents.iter().any(|tip| error.contains(tip)), "{error}");
}

#[test]
fn unknown_option_is_no_id() {
    let error = |args: &str| {
        let args = args.split(' ').map(OsString::from);
        Cli::read(args).unwrap_err().to_string()
    };
    let tip = "tip: to pass '--foo' as a value";
    for args in ["runs again x --foo", "mcp check --foo", "loop . --foo"] {
        let shown = error(&format!("teamster {args}"));
        assert!(!shown.contains("tip:"), "{shown}");
    }
    for args in ["say x --foo", "answer x --foo", "acp claude --foo"] {
        let shown = error(&format!("teamster {args}"));
        assert!(shown.contains(tip), "{shown}");
    }
    let shown = error("teamster runs --live list");
    assert!(shown.contains("tip: 'list --live' exists"), "{shown}");
}

#[test]
fn the_name_of_an_agent_suggests_the_command_before_it() {
    let error = |args: &[&str]| {
        let args = std::iter::once("teamster").chain(args.iter().copied());
        Cli::read(args.map(OsString::from)).unwrap_err().to_string()
    };
    let shown = error(&["claude", "hi"]);
    assert!(shown.contains("`teamster run claude PROMPT`"), "{shown}");
    assert!(!shown.contains("similar"), "{shown}");
    let renamed = Cli::read(["tm", "claude"].map(OsString::from))
        .unwrap_err()
        .to_string();
    assert!(
        renamed.contains("`teamster run claude PROMPT`"),
        "{renamed}"
    );
    let nested = error(&["runs", "claude"]);
    assert!(!nested.contains("teamster run claude"), "{nested}");
}

#[test]
fn words_of_other_programs_are_reported_with_what_does_the_same() {
    for (args, tip) in [
        (&["-p", "x"][..], "the prompt follows the agent"),
        (&["Fix the bug"], "`teamster run AGENT PROMPT`"),
        (&["ps"], "`teamster runs list`"),
        (&["status"], "`teamster runs list`"),
        (&["logs", "x"], "`teamster attach ID`"),
        (&["stop", "x"], "`teamster cancel ID`"),
        (&["resume", "x"], "--resume ID"),
        (&["run", "claude", "x", "--yolo"], "`--permission bypass`"),
        (&["run", "claude", "x", "--timeout=5m"], "`--max-time`"),
        (
            &["run", "claude", "-p", "x"],
            "the prompt follows the agent",
        ),
        (
            &["chat", "claude", "--dangerously-skip-permissions"],
            "`--permission bypass`",
        ),
    ] {
        let args = std::iter::once("teamster").chain(args.iter().copied());
        let error = Cli::read(args.map(OsString::from)).unwrap_err().to_string();
        assert!(error.contains(tip), "{error}");
        assert_eq!(error.matches("tip:").count(), 1, "{error}");
    }
}

#[test]
fn short_help_fits_one_screen_of_80_columns() {
    let mut program = Cli::command().term_width(80);
    program.build();
    let commands = program.get_subcommands().cloned();
    let commands = commands.flat_map(|it| {
        let inner: Vec<_> = it.get_subcommands().cloned().collect();
        std::iter::once(it).chain(inner)
    });
    let mut too_long = Vec::new();
    for mut command in std::iter::once(program.clone()).chain(commands) {
        let help = command.clone().term_width(80).render_help().to_string();
        let lines = help.lines().count();
        // These have a line for each command.
        let most = match command.get_name() {
            "teamster" => 40,
            "help" | "runs" => 35,
            _ => 30,
        };
        if lines > most {
            too_long.push((command.get_name().to_owned(), lines));
        }
        let long = command.render_long_help().to_string();
        assert!(long.lines().count() >= lines, "{long}");
    }
    assert_eq!(too_long, []);
}

#[test]
fn the_definition_is_sound() {
    Cli::command().debug_assert();
}
