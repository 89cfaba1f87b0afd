use std::collections::BTreeSet;
use std::time::Duration;

use super::step::Until;
use super::*;

/// Returns a script with every step and every option away from its default.
fn everything() -> Script {
    Script::new()
        .line(
            Text::from("{n}")
                .to(Stream::Stderr)
                .repeat(3)
                .interval(Duration::from_millis(4)),
        )
        .raw(b"\xff\xfe")
        .big_line(
            BigLine::new(5)
                .prefix("<")
                .suffix(">")
                .fill('"')
                .to(Stream::Stderr),
        )
        .play(
            Play::new("a b.ndjson")
                .first(2)
                .last(3)
                .chunk(7)
                .delay(Duration::from_millis(1))
                .garbage_every(3)
                .to(Stream::Stderr),
        )
        .flood(Flood::new(10).to(Stream::Stdout).concurrent())
        .lossy_stdout()
        .exit_on_epipe(1)
        .close(Pipe::Stdin)
        .stdin(Stdin::forever().save("in").echo())
        .wait_for_file("go")
        .touch("here")
        .if_exists("here", Script::new().line("again"))
        .report("report.json")
        .ignore([Signal::Term, Signal::Hup])
        .on_signal(Signal::Int, Script::new().line("bye").exit(0))
        .spawn(
            Spawn::new(SpawnKind::Daemon)
                .hold_pipes(false)
                .clear_env()
                .pid_file("pid")
                .script(
                    Script::new()
                        .spawn(SpawnKind::Child)
                        .sleep(Duration::from_secs(1)),
                ),
        )
        .sleep(Duration::MAX)
        .life_limit(60)
        .forever()
        .exit(255)
        .kill_self(Signal::Kill)
        .abort()
}

/// Returns the names of the steps in a script.
fn names(script: &Script) -> BTreeSet<String> {
    let toml: toml::Table = toml::from_str(&script.to_toml().unwrap()).unwrap();
    toml["step"]
        .as_array()
        .unwrap()
        .iter()
        .flat_map(|step| step.as_table().unwrap().keys().cloned())
        .collect()
}

fn error(toml: &str) -> String {
    Script::parse(toml).unwrap_err().to_string()
}

#[test]
fn a_script_survives_toml() {
    let script = everything();
    assert_eq!(Script::parse(&script.to_toml().unwrap()).unwrap(), script);
}

#[test]
fn the_reference_shows_every_step() {
    let reference = Script::parse(include_str!("reference.toml")).unwrap();
    assert_eq!(names(&reference), names(&everything()));
}

#[test]
fn options_at_their_default_are_not_written() {
    let script = Script::new().line("a").stdin(Stdin::to_eof());
    assert_eq!(
        script.to_toml().unwrap(),
        "[[step]]\n\n[step.line]\ntext = \"a\"\n\n[[step]]\n\n[step.stdin]\nuntil = \"eof\"\n"
    );
}

#[test]
fn options_left_out_have_their_default() {
    let script = Script::parse(
        "step = [
            { spawn = { kind = 'child' } },
            { flood = { bytes = 1 } },
            { big_line = { bytes = 1 } },
            { stdin = { until = 'line' } },
        ]",
    );
    let stdin = Stdin {
        until: Until::Line,
        save: None,
        echo: false,
    };
    assert_eq!(
        script.unwrap(),
        Script::new()
            .spawn(SpawnKind::Child)
            .flood(1)
            .big_line(BigLine::new(1).fill('x'))
            .stdin(stdin)
    );
}

#[test]
fn bytes_that_are_text_stay_text() {
    assert_eq!(Text::from(b"caf\xc3\xa9"), Text::from("café"));
    assert_ne!(Text::from(b"caf\xc3"), Text::from("caf\u{fffd}"));
}

#[test]
fn an_unknown_option_is_named_with_its_place() {
    let message = error("[[step]]\nline = { text = 'a', times = 3 }\n");
    assert!(message.contains("line 2, column 22"), "{message}");
    assert!(message.contains("unknown field `times`"), "{message}");
    let message = error("[[step]]\nforever = { ms = 3 }\n");
    assert!(
        message.contains("unknown field `ms`") || message.contains("unexpected"),
        "{message}"
    );
    let message = error("option = 1\n");
    assert!(message.contains("unknown field `option`"), "{message}");
}

#[test]
fn wrong_values_are_explained() {
    for (step, expected) in [
        ("raw = { hex = 'f' }", "odd number of digits"),
        (
            "raw = { hex = 'fg' }",
            "something else than hexadecimal digits",
        ),
        (
            "big_line = { bytes = 1, fill = 'é' }",
            "not an ASCII character",
        ),
        ("exit = { code = 256 }", "expected u8"),
        ("play = {}", "missing field `file`"),
        ("ignore = { signals = ['TERM'] }", "unknown variant `TERM`"),
    ] {
        let message = error(&format!("[[step]]\n{step}\n"));
        assert!(message.contains("line 2"), "{message}");
        assert!(message.contains(expected), "{message}");
    }
}
