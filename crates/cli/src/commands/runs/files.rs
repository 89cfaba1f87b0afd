//! `teamster runs files`.

use std::fs::{self, OpenOptions};
use std::io::{self, Write};
use std::path::{Component, Path, PathBuf};

use anyhow::{Context, anyhow, bail};
use teamster_api::{ARTIFACTS, FileList, ProblemCode, RunFile, file_path};

use super::args::RunsFilesArgs;
use super::found::Found;
use crate::remote::Machine;
use crate::table::Table;
use crate::{exit_code, report, words};

pub(super) async fn main(args: &RunsFilesArgs, machine: &Machine) -> anyhow::Result<u8> {
    let found = Found::find(machine, &args.run).await?;
    let list = match found.run.files().await {
        Ok(list) => list,
        // Nothing is kept of an attached run that has collected nothing.
        Err(error) if error.code == Some(ProblemCode::RunNotFound) => FileList::default(),
        Err(error) => return Err(found.explained(error)),
    };
    if args.json {
        return exit_code::of_json(&list);
    }
    report::warn(&list.missing);
    let collected: Vec<_> = (list.files.iter())
        .filter(|file| file.name.starts_with(ARTIFACTS))
        .collect();
    if collected.is_empty() {
        let id = words::one_line(found.run.id());
        report::note(&format!(
            "run {id} has collected no files: name them with --artifact when you start a run"
        ));
        return Ok(exit_code::SUCCESS);
    }
    if let Some(folder) = &args.output {
        for file in collected {
            copy(&found, file, folder).await?;
        }
        return Ok(exit_code::SUCCESS);
    }
    let mut table = Table::new(["FILE", "SIZE"]).figures_from(1);
    for file in collected {
        let name = file.name.strip_prefix(ARTIFACTS).unwrap_or(&file.name);
        let size = file.bytes.map(words::bytes).unwrap_or_default();
        table.texts([words::one_line(name), size]);
    }
    exit_code::of_printed(table.write(&mut anstream::stdout()))
}

/// Copies a collected file into a folder.
async fn copy(found: &Found, file: &RunFile, folder: &Path) -> anyhow::Result<()> {
    let path = path_in(folder, &file.name)?;
    let shown = words::printable(&path.to_string_lossy());
    let content = found.read(&file.name).await?;
    let mut content = content.ok_or_else(|| anyhow!("the file is gone: {}", file.name))?;
    let cannot = || format!("cannot write {shown}");
    if let Some(parent) = path.parent() {
        fs::create_dir_all(parent).with_context(cannot)?;
    }
    let target = OpenOptions::new().write(true).create_new(true).open(&path);
    let mut target = match target {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
            bail!("{shown} exists already: name another folder");
        }
        target => target.with_context(cannot)?,
    };
    if let Err(error) = io::copy(&mut content, &mut target) {
        // Half a file is none.
        let _ = fs::remove_file(&path);
        return Err(error).with_context(cannot);
    }
    exit_code::of_printed(writeln!(anstream::stdout(), "{shown}"))?;
    Ok(())
}

/// Returns the path of a collected file in a folder: a name of another machine must not lead out of it.
fn path_in(folder: &Path, name: &str) -> anyhow::Result<PathBuf> {
    let path = name
        .strip_prefix(ARTIFACTS)
        .map(file_path)
        .unwrap_or_default();
    let is_inside = path
        .components()
        .all(|part| matches!(part, Component::Normal(_)));
    if path.as_os_str().is_empty() || !is_inside {
        bail!("the server has sent a file with the name {name:?}, which leads elsewhere");
    }
    Ok(folder.join(path))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_stays_in_the_folder() {
        let path = path_in(Path::new("out"), "files/a/100%25.txt").unwrap();
        assert_eq!(path, Path::new("out/a/100%.txt"));
        for name in [
            "files/../x",
            "files//etc/passwd",
            "files/%2e%2e/x",
            "files/",
            "bundle",
        ] {
            assert!(path_in(Path::new("out"), name).is_err(), "{name}");
        }
    }
}
