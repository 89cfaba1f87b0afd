//! Images that a person adds to a message.

use std::fs::{self, File};
use std::io::Read;
use std::path::{Path, PathBuf};

use anyhow::{Context, anyhow, bail};
use teamster::{ErrorDetail, Image};
use teamster_core::ImageSource;
use teamster_host::params;

use super::paths;
use crate::words;

/// Maximum size of an image, and of all images of a message together, in bytes.
const MAX_SIZE: u64 = 20 << 20;
/// Maximum number of images of a message.
const MAX_IMAGES: usize = 8;

/// Reads the image of `/image FILE`. A relative path is one of the directory in which the program runs. Fails if the
/// type of the file is not supported, or if it cannot be read.
pub(crate) fn read(file: &str) -> anyhow::Result<Image> {
    let words = shell_words::split(file).ok();
    let file = match words.as_deref() {
        Some([one]) => one.as_str(),
        _ => file,
    };
    let path = paths::expanded(file);
    // Only the problem: no option is named here.
    params::image(&path).map_err(|error| match error.detail.as_deref() {
        Some(ErrorDetail::Parameter { problem, .. }) => anyhow!("{problem}"),
        _ => error.into(),
    })?;
    read_file(&path, MAX_SIZE)
}

/// Reads the image of a file that has at most `most` bytes. Fails if the type of the file is not supported, or if it is
/// larger or cannot be read.
pub(crate) fn read_file(path: &Path, most: u64) -> anyhow::Result<Image> {
    let image = params::image(path)?;
    let cannot = || format!("cannot read {}", path.display());
    // To open a FIFO would block forever.
    if !fs::metadata(path).with_context(cannot)?.is_file() {
        bail!("{} is not a file", path.display());
    }
    let file = File::open(path).with_context(cannot)?;
    let mut bytes = Vec::new();
    file.take(most.saturating_add(1))
        .read_to_end(&mut bytes)
        .with_context(cannot)?;
    if bytes.len() as u64 > most {
        bail!(
            "{} has more than {} MiB; give a smaller image",
            path.display(),
            most >> 20
        );
    }
    Ok(Image::bytes(image.media_type, bytes))
}

/// Returns why an image cannot be added to those of a message.
pub(crate) fn refusal(images: &[Image], more: &Image) -> Option<String> {
    let total: u64 = images.iter().chain([more]).map(size).sum();
    let limit = if images.len() >= MAX_IMAGES {
        format!("{MAX_IMAGES} images")
    } else if total > MAX_SIZE {
        format!("{} MiB of images", MAX_SIZE >> 20)
    } else {
        return None;
    };
    Some(format!(
        "a message takes at most {limit}: send it, or remove them with `/image`"
    ))
}

/// Returns the path of an image if it is all of a line, as terminals type it when a file is dropped on them.
pub(crate) fn dropped(line: &str) -> Option<PathBuf> {
    let line = line.trim();
    if line.contains('\n') {
        return None;
    }
    let words = shell_words::split(line).ok()?;
    let [word] = words.as_slice() else {
        return None;
    };
    let word = word.strip_prefix("file://").unwrap_or(word);
    let path = paths::expanded(word);
    let is_image = path.is_absolute() && params::image(&path).is_ok();
    (is_image && path.is_file()).then_some(path)
}

/// Returns the size of an image that was read, in bytes.
pub(crate) fn size(image: &Image) -> u64 {
    match &image.source {
        ImageSource::Bytes(bytes) => bytes.len() as u64,
        _ => 0,
    }
}

/// Returns the line about an image that was added.
pub(crate) fn added(file: &str, image: &Image) -> String {
    format!(
        "{} ({}) goes with the next message",
        words::one_line(file),
        words::bytes(size(image))
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_has_a_limited_number_and_size_of_images() {
        let image = |size: u64| {
            let size = usize::try_from(size).unwrap();
            Image::bytes("image/png", vec![0; size])
        };
        assert_eq!(refusal(&[], &image(MAX_SIZE)), None);
        assert_eq!(refusal(&vec![image(1); MAX_IMAGES - 1], &image(1)), None);
        let many = refusal(&vec![image(1); MAX_IMAGES], &image(1)).unwrap();
        assert!(many.contains("at most 8 images"), "{many}");
        let large = refusal(&[image(MAX_SIZE)], &image(1)).unwrap();
        assert!(
            large.contains("20 MiB") && large.contains("`/image`"),
            "{large}"
        );
    }

    #[test]
    fn a_dropped_file_is_an_image_that_is_all_of_the_line() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("a b.PNG");
        fs::write(&file, b"png").unwrap();
        let text = file.display().to_string();
        for line in [
            format!("'{text}' "),
            text.replace(' ', "\\ "),
            format!("file://{}", text.replace(' ', "\\ ")),
        ] {
            assert_eq!(dropped(&line), Some(file.clone()), "{line}");
        }
        let other = folder.path().join("c.txt");
        fs::write(&other, b"x").unwrap();
        for line in [
            other.display().to_string(),
            format!("see '{text}'"),
            folder.path().join("gone.png").display().to_string(),
            "a.png".to_owned(),
            "it's".to_owned(),
            String::new(),
        ] {
            assert_eq!(dropped(&line), None, "{line}");
        }
        let image = read(&format!("'{text}'")).unwrap();
        assert_eq!(
            (&*image.media_type, size(&image)),
            ("image/png", 3),
            "{image:?}"
        );
        assert_eq!(
            added("a b.PNG", &image),
            "a b.PNG (3 bytes) goes with the next message"
        );
        let error = |file: &Path| format!("{:#}", read(&file.display().to_string()).unwrap_err());
        let text = format!("{} is not an image", other.display());
        assert!(error(&other).starts_with(&text), "{}", error(&other));
        let gone = error(&folder.path().join("gone.png"));
        assert!(
            gone.contains("cannot read") && gone.contains("No such file"),
            "{gone}"
        );
        let large = folder.path().join("large.png");
        File::create(&large).unwrap().set_len(MAX_SIZE + 1).unwrap();
        assert!(error(&large).ends_with("has more than 20 MiB; give a smaller image"));
        let directory = folder.path().join("d.png");
        fs::create_dir(&directory).unwrap();
        assert!(error(&directory).ends_with("d.png is not a file"));
    }
}
