//! The conformance suite of the test kit. The runs are made up, because the CLI does not exist.

use teamster_core::{ErrorKind, RunStatus, ToolKind};
use teamster_magpie::Magpie;
use teamster_testkit::conformance::{ArgvModel, Parser, Sent, Suite, Tool, Understood};

fn suite() -> Suite {
    let ask = ArgvModel::new(Parser::Pflag)
        .one("--session --model")
        .switches("--yes");
    Suite::new(Magpie, concat!(env!("CARGO_MANIFEST_DIR"), "/fixtures"))
        .run_is_over(|lines| lines.iter().any(|line| line["type"] == "end"))
        .command_line(
            ArgvModel::new(Parser::Pflag).command("ask", ask),
            understand,
        )
        .text("text", "Hello, world!")
        .call("tool", ToolKind::Execute)
        .tool("tool", Tool::shell("echo a", "a\n"))
        .tool("tool", Tool::failed_shell("exit 3", "no"))
        .status("text", RunStatus::Completed, None)
        .status("error", RunStatus::Failed, Some(ErrorKind::Auth))
}

fn understand(sent: &Sent<'_>) -> Understood {
    let words = sent.args.positionals.iter();
    let words = words.map(|word| word.to_string_lossy().into_owned());
    Understood {
        prompt: words.chain(sent.stdin()).collect(),
        session_id: sent.args.text("--session"),
        model: sent.args.text("--model"),
        ..Understood::default()
    }
}

teamster_testkit::conformance_tests!(suite());
