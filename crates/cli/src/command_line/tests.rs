#[cfg(repository)]
mod documented;

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
            "help" | "runs" => 33,
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
