//! Compresses the files of the page, which the server sends as they are built.

use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::{env, fs, io};

use flate2::Compression;
use flate2::write::GzEncoder;

fn main() -> io::Result<()> {
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rerun-if-changed=page");
    let variable = |name| env::var_os(name).map(PathBuf::from).unwrap_or_default();
    let (from, to) = (variable("CARGO_MANIFEST_DIR"), variable("OUT_DIR"));
    for file in fs::read_dir(from.join("page"))? {
        let file = file?;
        let mut name = file.file_name();
        name.push(".gz");
        compress(&file.path(), &to.join(name))?;
    }
    Ok(())
}

fn compress(from: &Path, to: &Path) -> io::Result<()> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::best());
    encoder.write_all(&fs::read(from)?)?;
    fs::write(to, encoder.finish()?)
}
