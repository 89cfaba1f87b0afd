//! Compresses the files of the page, which the server sends as they are built, and lists them.

use std::fmt::Write as _;
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
    let files = fs::read_dir(from.join("page"))?.map(|file| file.map(|file| file.path()));
    let mut files = files.collect::<io::Result<Vec<_>>>()?;
    files.sort_unstable();
    let mut list = String::from("[\n");
    for file in files {
        let name = file.file_name().unwrap_or_default().to_string_lossy();
        let Some(media) = media(&file) else { continue };
        let path = match &*name {
            "index.html" => "/".to_owned(),
            // Beside the page, because that is what it is for.
            "service-worker.js" => format!("/{name}"),
            _ => format!("/page/{name}"),
        };
        compress(&file, &to.join(format!("{name}.gz")))?;
        let include = |variable: &str, file: &str| {
            format!("include_bytes!(concat!(env!({variable:?}), {file:?}))")
        };
        let plain = include("CARGO_MANIFEST_DIR", &format!("/page/{name}"));
        let compressed = include("OUT_DIR", &format!("/{name}.gz"));
        writeln!(list, "({path:?}, {media:?}, {plain}, {compressed}),")
            .map_err(io::Error::other)?;
    }
    fs::write(to.join("files.rs"), list + "]")
}

/// Returns the media type of a file of the page.
fn media(file: &Path) -> Option<&'static str> {
    Some(match file.extension()?.to_str()? {
        "html" => "text/html; charset=utf-8",
        "css" => "text/css; charset=utf-8",
        "js" => "text/javascript; charset=utf-8",
        "svg" => "image/svg+xml",
        "png" => "image/png",
        "webmanifest" => "application/manifest+json",
        _ => return None,
    })
}

fn compress(from: &Path, to: &Path) -> io::Result<()> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::best());
    encoder.write_all(&fs::read(from)?)?;
    fs::write(to, encoder.finish()?)
}
