//! `teamster runs open`.

use std::io::{self, Write};
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;

use anyhow::bail;

use super::args::RunsOpenArgs;
use super::found::Found;
use crate::remote::Machine;
use crate::{exit_code, words};

pub(super) async fn main(args: &RunsOpenArgs, machine: &Machine) -> anyhow::Result<u8> {
    let found = Found::find(machine, &args.run).await?;
    let id = words::one_line(found.run.id());
    let teamster = crate::global::typed();
    if !machine.is_here() {
        bail!(
            "the directory of run {id} is on the server's machine: `{teamster} runs diff {id}` shows its changes, and \
             `{teamster} runs fetch {id}` makes a branch of them here"
        );
    }
    let own = found
        .workspace
        .as_ref()
        .and_then(|it| it.directory.as_ref());
    let directories = [found.directory.clone(), own.map(PathBuf::from)];
    let known: Vec<_> = directories.into_iter().flatten().collect();
    let Some(directory) = known.iter().find(|path| path.is_dir()) else {
        let Some(gone) = known.first() else {
            bail!("the directory of run {id} is unknown");
        };
        let gone = words::printable(&gone.to_string_lossy());
        bail!(
            "the directory of run {id} is gone: {gone}; `{teamster} runs diff {id}` shows its changes, if it made any"
        );
    };
    let line = [directory.as_os_str().as_bytes(), b"\n"].concat();
    exit_code::of_printed(io::stdout().write_all(&line))
}
