//! Image files of runs and turns. Reading one may block for any time: it can be a pipe, or on a network.

use std::fs::{self, File};
use std::io::{self, Read};
use std::path::Path;
use std::thread;
use std::time::Duration;

use nix::unistd::{AccessFlags, access};
use teamster_core::provider::RunAssembler;
use teamster_core::{AbortHandle, AgentError, ErrorCode, ErrorKind, Image, ImageSource, Timeouts};
use tokio::sync::oneshot;

use crate::engine::engine_of_run;
use crate::trace::in_span;

/// Size of the largest image file in bytes. The services take less; this bounds the memory for a wrong file.
const LARGEST: u64 = 64 << 20;
/// Number of bytes that are read before the next look at whether the image is still wanted.
const CHUNK: u64 = 1 << 20;

/// Reads image files into memory, of at most 64 MiB each. Neither an abort nor the end of the Tokio runtime waits for
/// a file that cannot be read on. The time limit is that of the start, [`Timeouts::startup`].
///
/// # Errors
///
/// Fails if a file cannot be read or is too large, after the time limit, and after an abort.
pub async fn load_images(
    images: Vec<Image>,
    timeouts: Timeouts,
    abort: &AbortHandle,
) -> Result<Vec<Image>, AgentError> {
    prepare(images, |_| true, limit(timeouts), abort).await
}

/// Returns the time limit for reading the images of a run or turn.
pub(crate) fn limit(timeouts: Timeouts) -> Duration {
    let startup = timeouts.or(Timeouts::DEFAULT).startup;
    startup.unwrap_or(Duration::MAX)
}

/// Reads the image files for which `reads` returns true, and checks that the others can be read by the CLI.
pub(crate) async fn prepare(
    mut images: Vec<Image>,
    reads: impl Fn(&Path) -> bool,
    limit: Duration,
    abort: &AbortHandle,
) -> Result<Vec<Image>, AgentError> {
    images.iter_mut().for_each(correct_type);
    if images.iter().all(|image| file(image).is_none()) {
        return Ok(images);
    }
    let read: Vec<bool> = (images.iter())
        .map(|image| file(image).is_some_and(&reads))
        .collect();
    let (reply, prepared) = oneshot::channel();
    let timer = {
        let _entered = engine_of_run()?.enter();
        tokio::time::sleep(limit)
    };
    // A thread of its own: a Tokio runtime waits at its end for those of its blocking pool.
    let work = in_span(move || {
        let prepared = prepare_each(images, &read, || reply.is_closed());
        // Fails if the images are no longer wanted.
        let _ = reply.send(prepared);
    });
    let thread = thread::Builder::new().name("teamster-images".into());
    thread.spawn(work).map_err(|error| {
        let message = format!("no thread could be started to read the images: {error}");
        AgentError::new(ErrorCode::Io, ErrorKind::Internal, message)
    })?;
    tokio::select! {
        biased;
        prepared = prepared => prepared.unwrap_or_else(|_| {
            let message = "the images could not be read: the thread for that panicked";
            Err(AgentError::new(ErrorCode::Io, ErrorKind::Internal, message))
        }),
        () = abort.aborted() => Err(RunAssembler::aborted_error()),
        () = timer => {
            let message = format!("the images could not be read within {limit:?}; give files that are complete");
            Err(AgentError::new(ErrorCode::StartupTimeout, ErrorKind::Timeout, message))
        }
    }
}

fn prepare_each(
    mut images: Vec<Image>,
    read: &[bool],
    unwanted: impl Fn() -> bool,
) -> Result<Vec<Image>, AgentError> {
    for (image, &is_read) in images.iter_mut().zip(read) {
        let Some(path) = file(image) else { continue };
        readable(path).map_err(|error| Image::unreadable(path, &error))?;
        if is_read {
            let bytes = read_file(path, &unwanted)?;
            if bytes.is_empty() {
                let problem = format!("{} is empty", path.display());
                return Err(AgentError::refused("images", problem));
            }
            image.source = ImageSource::Bytes(bytes);
            correct_type(image);
        }
    }
    Ok(images)
}

fn read_file(path: &Path, unwanted: impl Fn() -> bool) -> Result<Vec<u8>, AgentError> {
    let unreadable = |error| Image::unreadable(path, &error);
    let mut file = File::open(path).map_err(unreadable)?.take(LARGEST + 1);
    let mut bytes = Vec::new();
    loop {
        if unwanted() {
            return Err(RunAssembler::aborted_error());
        }
        let chunk = file.by_ref().take(CHUNK).read_to_end(&mut bytes);
        if chunk.map_err(unreadable)? == 0 {
            break;
        }
    }
    if bytes.len() as u64 > LARGEST {
        let problem = format!(
            "{} has more than {} MiB; give a smaller image",
            path.display(),
            LARGEST >> 20
        );
        return Err(AgentError::refused("images", problem));
    }
    Ok(bytes)
}

/// Gives an image in memory the type of its bytes. Services refuse one of another type than its name has, with each later
/// request of the session.
fn correct_type(image: &mut Image) {
    if let ImageSource::Bytes(bytes) = &image.source
        && let Some(media_type) = Image::type_of(bytes)
    {
        media_type.clone_into(&mut image.media_type);
    }
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

/// Returns the file of an image that is not in memory.
pub(crate) fn file(image: &Image) -> Option<&Path> {
    match &image.source {
        ImageSource::Path(path) => Some(path),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn prepared(bytes: &[u8]) -> Result<Image, AgentError> {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.png");
        fs::write(&path, bytes).unwrap();
        let images = vec![Image::file("image/png", path)];
        prepare_each(images, &[true], || false).map(|mut images| images.remove(0))
    }

    #[tokio::test]
    async fn type_of_an_image_is_that_of_its_bytes() {
        for (bytes, media_type) in [
            (&b"\x89PNG\r\n\x1a\n..."[..], "image/png"),
            (&b"\xff\xd8\xff\xe0..."[..], "image/jpeg"),
            (&b"GIF89a..."[..], "image/gif"),
            (&b"RIFF\x01\x00\x00\x00WEBPVP8 "[..], "image/webp"),
            (&b"something else"[..], "image/png"),
        ] {
            let image = prepared(bytes).unwrap();
            assert_eq!(image.media_type, media_type);
            assert_eq!(image.in_memory().unwrap(), bytes);
            let in_memory = vec![Image::bytes("image/png", bytes)];
            let abort = AbortHandle::default();
            let images = prepare(in_memory, |_| true, Duration::MAX, &abort).await;
            assert_eq!(images.unwrap()[0].media_type, media_type);
        }
    }

    #[test]
    fn empty_image_is_refused() {
        let error = prepared(b"").unwrap_err();
        assert_eq!(error.parameter(), Some("images"));
        assert!(error.message.ends_with("a.png is empty"), "{error}");
    }
}
