//! The script in the README is valid, and its tables are complete.
#![allow(clippy::expect_used)]

use std::collections::BTreeSet;
use std::mem::{Discriminant, discriminant};

use teamster_mock_model::{Part, Script};

const README: &str = include_str!("../README.md");

fn script() -> Script {
    let (_, rest) = README
        .split_once("```toml\n")
        .expect("there is a script in it");
    let (text, _) = rest.split_once("```").expect("it has an end");
    text.parse().expect("it can be played")
}

#[test]
fn the_script_has_every_part_once() {
    let parts: Vec<Discriminant<Part>> = script()
        .turns
        .iter()
        .flat_map(|turn| &turn.parts)
        .filter(|part| !matches!(part, Part::Text(_)))
        .map(discriminant)
        .collect();
    let all = "thinking shell read_file write_file mcp tool pause_ms stall cut error raw";
    assert_eq!(parts.len(), all.split(' ').count());
    assert!(
        parts
            .iter()
            .enumerate()
            .all(|(at, part)| !parts[..at].contains(part))
    );
}

#[test]
fn the_tables_name_all_that_a_script_can_have() {
    // The error for an unknown name lists the known ones.
    for (wrong, left_out) in [
        ("x = 1", &["turn"][..]),
        ("[[turn]]\nx = 1", &[]),
        ("[[turn]]\nparts = [{ x = 1 }]", &[]),
        ("[[turn]]\nstop = \"x\"", &[]),
        ("[[turn]]\nusage = { x = 1 }", &[]),
        ("[[turn]]\nparts = [{ error = \"x\" }]", &[]),
    ] {
        let message = wrong.parse::<Script>().expect_err(wrong).to_string();
        let (_, expected) = message.split_once("expected").expect(&message);
        let names: BTreeSet<&str> = expected.split('`').skip(1).step_by(2).collect();
        assert!(names.len() >= 3, "{message}");
        for name in names.into_iter().filter(|name| !left_out.contains(name)) {
            let named = ["`NAME`", "[NAME]", "{ NAME =", "\"NAME\""]
                .iter()
                .any(|form| README.contains(&form.replace("NAME", name)));
            assert!(named, "{name} is not in the README");
        }
    }
}
