//! Images: files for a run, base64 text for a session.

use std::path::absolute;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use teamster_core::provider::Args;
use teamster_core::{AgentError, Image, ImageSource};

/// Adds an image of a run as `@PATH`. The CLI detects its type by the file's content, and adds a file that is no
/// image to the prompt as text.
pub(super) fn attach(image: &Image, args: &mut Args) -> Result<(), AgentError> {
    check(image)?;
    match &image.source {
        ImageSource::Path(path) => {
            let mut word = std::ffi::OsString::from("@");
            word.push(absolute(path).map_err(|error| Image::unreadable(path, &error))?);
            args.add(word);
        }
        _ => args.private_file("@", image.in_memory()?),
    }
    Ok(())
}

/// Returns an image of a turn as base64.
pub(crate) fn base64(image: &Image) -> Result<String, AgentError> {
    check(image)?;
    Ok(STANDARD.encode(image.in_memory()?))
}

fn check(image: &Image) -> Result<(), AgentError> {
    const TYPES: [&str; 4] = ["image/png", "image/jpeg", "image/gif", "image/webp"];
    if TYPES.contains(&image.media_type.as_str()) {
        return Ok(());
    }
    Err(AgentError::refused(
        "images",
        format!(
            "Pi takes PNG, JPEG, GIF and WebP, not {:?}",
            image.media_type
        ),
    ))
}
