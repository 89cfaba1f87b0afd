//! Image files of runs and turns. Reading one may block for any time: it can be a pipe, or on a network.

use std::fs;
use std::io;
use std::path::Path;

use nix::unistd::{AccessFlags, access};
use teamster_core::{AbortHandle, AgentError, Image, ImageSource};

use crate::engine::blocking;

/// Reads image files into memory. An abort does not wait for that.
pub(crate) async fn load(
    mut images: Vec<Image>,
    abort: &AbortHandle,
) -> Result<Vec<Image>, AgentError> {
    if images.iter().all(|image| file(image).is_none()) {
        return Ok(images);
    }
    blocking(abort, move || {
        for image in &mut images {
            if let Some(path) = file(image) {
                let bytes = readable(path).and_then(|()| fs::read(path));
                let bytes = bytes.map_err(|error| Image::unreadable(path, &error))?;
                image.source = ImageSource::Bytes(bytes);
            }
        }
        Ok(images)
    })
    .await
}

/// Returns the images if their files can be read, for a CLI that opens them itself. An abort does not wait for that.
pub(crate) async fn find(
    images: Vec<Image>,
    abort: &AbortHandle,
) -> Result<Vec<Image>, AgentError> {
    if images.iter().all(|image| file(image).is_none()) {
        return Ok(images);
    }
    blocking(abort, move || check(&images).map(|()| images)).await
}

/// Checks that image files can be read. It opens none: what a pipe has can be read once.
pub(crate) fn check(images: &[Image]) -> Result<(), AgentError> {
    let mut files = images.iter().filter_map(file);
    files.try_for_each(|path| readable(path).map_err(|error| Image::unreadable(path, &error)))
}

fn readable(path: &Path) -> io::Result<()> {
    if fs::metadata(path)?.is_dir() {
        return Err(io::ErrorKind::IsADirectory.into());
    }
    Ok(access(path, AccessFlags::R_OK)?)
}

fn file(image: &Image) -> Option<&Path> {
    match &image.source {
        ImageSource::Path(path) => Some(path),
        _ => None,
    }
}
