//! `cargo xtask surface`: the public items of the libraries, as text.

use std::fmt::Write as _;
use std::fs;
use std::io::Write;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, bail};
use public_api::Builder;
use serde::Deserialize;

use crate::{Outcome, cargo, complain, generated, published, root, target};

/// Folder of the lists, from the root of the repository.
const FOLDER: &str = "docs/surface";

/// The supported version of rustdoc's JSON. The compiler determines it: Rust 1.95 has 57.
const FORMAT: u32 = 57;

/// List the public items of each library in docs/surface, so that a change of them is seen.
///
/// They are made from rustdoc's JSON, whose form is that of one compiler's version: with another one the
/// task reports that and exits with 3.
#[derive(Debug, Clone, Copy, clap::Args)]
pub(crate) struct Args {
    /// Write nothing; exit with 1 if what is there is not current
    #[arg(long)]
    check: bool,
}

pub(crate) fn run(args: Args, out: &mut impl Write) -> anyhow::Result<Outcome> {
    let target = target();
    let features = published::features()?.join(",");
    let status = cargo()
        .args(["doc", "--workspace", "--exclude", "xtask", "--lib"])
        .args(["--no-deps", "--features", &features])
        .args(["--locked", "--target-dir"])
        .arg(&target)
        .env("RUSTDOC", rustdoc(&target)?)
        .env(
            "RUSTDOCFLAGS",
            "-D warnings -Zunstable-options --output-format=json",
        )
        .current_dir(root())
        .status()
        .context("cannot start cargo")?;
    if !status.success() {
        bail!("rustdoc failed or has warnings");
    }
    let mut problems = false;
    for library in libraries()? {
        let json = target.join(format!("doc/{}.json", library.replace('-', "_")));
        let format = format_of(&json)?;
        if format != FORMAT {
            complain(format_args!(
                "this compiler writes version {format} of rustdoc's JSON, and version {FORMAT} is read"
            ));
            return Ok(Outcome::NotRun);
        }
        let api = Builder::from_rustdoc_json(&json)
            .omit_blanket_impls(true)
            .omit_auto_trait_impls(true)
            .omit_auto_derived_impls(true)
            .build()
            .with_context(|| json.display().to_string())?;
        let mut text = String::new();
        for item in api.items() {
            writeln!(text, "{item}")?;
        }
        let path = format!("{FOLDER}/{library}.txt");
        problems |= !generated::bring(&path, &text, "surface", args.check, out)?;
    }
    Ok(Outcome::problems_if(problems))
}

/// Writes a script that lets a stable rustdoc write JSON, which is unstable. The variable is not set for
/// cargo, because that would cause many rebuilds.
fn rustdoc(target: &Path) -> anyhow::Result<PathBuf> {
    let script = target.join("rustdoc-json");
    fs::create_dir_all(target)?;
    fs::write(
        &script,
        "#!/bin/sh\nRUSTC_BOOTSTRAP=1 exec rustdoc \"$@\"\n",
    )
    .and_then(|()| fs::set_permissions(&script, fs::Permissions::from_mode(0o755)))
    .with_context(|| format!("cannot write {}", script.display()))?;
    Ok(script)
}

fn libraries() -> anyhow::Result<Vec<String>> {
    let crates = published::crates()?.into_iter();
    let libraries = crates.filter(|it| it.folder.join("src/lib.rs").is_file());
    Ok(libraries.map(|it| it.name).collect())
}

fn format_of(json: &Path) -> anyhow::Result<u32> {
    #[derive(Deserialize)]
    struct Format {
        format_version: u32,
    }
    let text = fs::read_to_string(json).with_context(|| json.display().to_string())?;
    let format: Format = serde_json::from_str(&text).with_context(|| json.display().to_string())?;
    Ok(format.format_version)
}
