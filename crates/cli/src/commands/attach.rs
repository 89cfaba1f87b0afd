//! `teamster attach`: shows a detached run or session and sends prompts to it.

pub(crate) mod args;

use std::io;

use anyhow::Context;
use nix::unistd::ttyname;

use crate::args::OutputArgs;
use crate::detached::{
    Questions, Run, Screen, Signals, UserPrompt, View, introduction, report_queue,
};
use crate::dialog::{open_input, terminal};
use crate::remote::Machine;
use crate::runtime::wait_only_for;
use args::AttachArgs;

/// Shows a run or session and returns its exit code.
pub(crate) fn main(args: &AttachArgs, machine: &Machine) -> anyhow::Result<u8> {
    let output: OutputArgs = args.output.into();
    let code = wait_only_for(async {
        let run = Run::find(machine, &args.id).await?;
        if !run.is_here && !output.quiet {
            tokio::spawn(report_queue(run.handle.clone(), true));
        }
        let mut screen = Screen::new(&run, output);
        if args.after == 0
            && !output.json
            && !output.quiet
            && let Some(text) = introduction(&run).await
        {
            screen.print(&text);
        }
        let can_ask = !output.json && Questions::can_ask();
        let mut user_prompt = None;
        if run.is_session() && !output.quiet && can_ask {
            let agent = &run.info.provider;
            let directory = run.info.directory.as_deref().filter(|_| run.is_here);
            let input = open_input(agent, directory, args.no_history, true);
            let input = input.context("cannot read messages")?;
            user_prompt = Some(UserPrompt::with_keys(input, format!("{agent}> ")));
        }
        let signals = Signals::of_client().context("cannot listen for signals")?;
        let view = View::new(run, screen, signals)
            .sender(sender_name())
            .user_prompt(user_prompt)
            .questions(can_ask.then(Questions::default));
        view.show(args.after).await
    });
    terminal::restore();
    code
}

/// Returns the sender's name for this terminal.
fn sender_name() -> String {
    match ttyname(io::stdin()) {
        Ok(path) => {
            let path = path.to_string_lossy();
            format!("terminal {}", path.strip_prefix("/dev/").unwrap_or(&path))
        }
        Err(_) => format!("process {}", std::process::id()),
    }
}
