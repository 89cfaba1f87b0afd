//! `read`, `write` and `edit`.

use std::borrow::Cow;
use std::fs::{self, File};
use std::io::Read;
use std::path::Path;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::Value;
use teamster_core::provider::media_placeholder;
use teamster_core::{ChangeKind, Image};
use teamster_process::{FileMode, replace_file};

use super::{Output, count, text};
use crate::conversation::Input;

/// Maximum size of a file to read, in bytes.
const LARGEST: u64 = 32 << 20;
/// Maximum size of an image for the model, in bytes.
const LARGEST_IMAGE: u64 = 8 << 20;
/// Default number of lines to read.
const LINES: usize = 2000;

pub(super) fn read(real: &Path, input: &Value) -> Result<Output, String> {
    let path = text(input, "path").unwrap_or_default();
    let bytes = bytes(path, real)?;
    if let Some(media_type) = Image::type_of(&bytes) {
        return image(path, media_type, &bytes);
    }
    let text = String::from_utf8(bytes)
        .map_err(|_| format!("{path} is not UTF-8 text; read it with a command"))?;
    let first = count(input, "offset").unwrap_or(1);
    let most = count(input, "limit").unwrap_or(LINES);
    let lines: Vec<_> = text.split_inclusive('\n').collect();
    if first > lines.len().max(1) {
        return Err(format!("{path} has {} lines only", lines.len()));
    }
    let piece: String = lines.iter().skip(first - 1).take(most).copied().collect();
    let next = first.saturating_add(most);
    let left = (lines.len() + 1).saturating_sub(next);
    if left == 0 {
        return Ok(Output::text(piece));
    }
    let note = format!("[… {left} more lines; read on with offset {next}]");
    Ok(Output::text(format!("{piece}{note}")))
}

fn image(path: &str, media_type: &str, bytes: &[u8]) -> Result<Output, String> {
    if bytes.len() as u64 > LARGEST_IMAGE {
        return Err(format!("{path} is larger than {LARGEST_IMAGE} bytes"));
    }
    let data = STANDARD.encode(bytes);
    let shown = media_placeholder("image", Some(media_type), Some(&data));
    Ok(Output {
        for_model: Some(vec![Input::Image {
            media_type: media_type.to_owned(),
            data,
        }]),
        ..Output::text(shown)
    })
}

fn bytes(path: &str, real: &Path) -> Result<Vec<u8>, String> {
    let failed = |error: std::io::Error| format!("{path}: {error}");
    let about = real.metadata().map_err(failed)?;
    if about.is_dir() {
        return Err(format!("{path} is a folder; find its files with glob"));
    }
    if !about.is_file() {
        // A pipe or device may never end.
        return Err(format!("{path} is not a regular file"));
    }
    if about.len() > LARGEST {
        return Err(format!(
            "{path} has {} bytes, too many to read; search it with grep, or cut it with a command",
            about.len()
        ));
    }
    let mut bytes = Vec::new();
    let file = File::open(real).map_err(failed)?;
    file.take(LARGEST).read_to_end(&mut bytes).map_err(failed)?;
    Ok(bytes)
}

pub(super) fn write(real: &Path, input: &Value) -> Result<Output, String> {
    let path = text(input, "path").unwrap_or_default();
    let content = text(input, "content").unwrap_or_default();
    let is_new = !real.exists();
    if real.is_dir() {
        return Err(format!("{path} is a folder"));
    }
    if let Some(folder) = real.parent() {
        fs::create_dir_all(folder).map_err(|error| format!("{path}: {error}"))?;
    }
    replace(path, real, content)?;
    let (change, verb) = if is_new {
        (ChangeKind::Add, "made")
    } else {
        (ChangeKind::Update, "overwritten")
    };
    Ok(Output {
        change: Some((real.display().to_string(), change)),
        ..Output::text(format!("{path} was {verb} ({} bytes).", content.len()))
    })
}

pub(super) fn edit(real: &Path, input: &Value) -> Result<Output, String> {
    let path = text(input, "path").unwrap_or_default();
    let (old, new) = (
        text(input, "old_string").unwrap_or_default(),
        text(input, "new_string").unwrap_or_default(),
    );
    let all = input["all"].as_bool().unwrap_or_default();
    if old.is_empty() {
        return Err("`old_string` is empty; a whole file is written with write".to_owned());
    }
    if old == new {
        return Err("`old_string` and `new_string` are the same".to_owned());
    }
    let content =
        String::from_utf8(bytes(path, real)?).map_err(|_| format!("{path} is not UTF-8 text"))?;
    let (old, new) = in_line_ends_of(&content, old, new);
    let found = content.matches(&*old).count();
    match (found, all) {
        (0, _) => {
            return Err(format!(
                "`old_string` is not in {path}; read the file and copy the piece exactly"
            ));
        }
        (2.., false) => {
            return Err(format!(
                "`old_string` is in {path} {found} times; make it longer until it is there once, or set `all`"
            ));
        }
        _ => {}
    }
    replace(path, real, &content.replace(&*old, &new))?;
    let places = if found == 1 {
        "1 place".to_owned()
    } else {
        format!("{found} places")
    };
    Ok(Output {
        change: Some((real.display().to_string(), ChangeKind::Update)),
        ..Output::text(format!("{path} was changed in {places}."))
    })
}

/// Returns the texts of an edit with the ends of lines that the file has. Models write LF also in files with CRLF.
fn in_line_ends_of<'t>(content: &str, old: &'t str, new: &'t str) -> (Cow<'t, str>, Cow<'t, str>) {
    let crlf = |text: &str| Cow::Owned(text.replace("\r\n", "\n").replace('\n', "\r\n"));
    let has_crlf = content.contains("\r\n");
    let has_lf = content.replace("\r\n", "").contains('\n');
    if has_crlf && (!has_lf || !content.contains(old)) {
        (crlf(old), crlf(new))
    } else if !has_crlf && !content.contains(old) {
        let lf = |text: &str| Cow::Owned(text.replace("\r\n", "\n"));
        (lf(old), lf(new))
    } else {
        (old.into(), new.into())
    }
}

/// Replaces a file atomically and keeps its mode.
fn replace(path: &str, real: &Path, content: &str) -> Result<(), String> {
    replace_file(real, content.as_bytes(), FileMode::Kept)
        .map_err(|error| format!("{path}: {error}"))
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::super::Roots;
    use super::*;
    use serde_json::json;

    fn roots() -> (tempfile::TempDir, Roots) {
        let temp = tempfile::tempdir().unwrap();
        let roots = Roots::new(vec![temp.path().canonicalize().unwrap()]);
        (temp, roots)
    }

    #[test]
    fn a_file_is_written_read_and_changed() {
        let (temp, roots) = roots();
        let real = roots.new_or_existing("a/b.txt").real.unwrap();
        let wrote = write(
            &real,
            &json!({"path": "a/b.txt", "content": "one\ntwo\nthree\n"}),
        )
        .unwrap();
        let shown = real.display().to_string();
        assert_eq!(wrote.change, Some((shown, ChangeKind::Add)));
        assert_eq!(wrote.text, "a/b.txt was made (14 bytes).");
        let read = |input: Value| read(&real, &input).map(|output| output.text);
        assert_eq!(
            read(json!({"path": "a/b.txt"})).unwrap(),
            "one\ntwo\nthree\n"
        );
        assert_eq!(
            read(json!({"path": "a/b.txt", "offset": 2, "limit": 1})).unwrap(),
            "two\n[… 1 more lines; read on with offset 3]"
        );
        assert_eq!(
            read(json!({"path": "a/b.txt", "offset": 9})).unwrap_err(),
            "a/b.txt has 3 lines only"
        );
        let file = temp.path().join("a/b.txt");
        fs::set_permissions(&file, fs::Permissions::from_mode(0o751)).unwrap();
        let change = |old: &str, new: &str, all: bool| {
            let input =
                json!({"path": "a/b.txt", "old_string": old, "new_string": new, "all": all});
            edit(&real, &input).map(|output| output.text)
        };
        assert_eq!(
            change("two", "2", false).unwrap(),
            "a/b.txt was changed in 1 place."
        );
        assert_eq!(file.metadata().unwrap().permissions().mode() & 0o777, 0o751);
        assert!(change("two", "3", false).unwrap_err().contains("is not in"));
        assert!(change("e", "E", false).unwrap_err().contains("3 times"));
        assert_eq!(
            change("e", "E", true).unwrap(),
            "a/b.txt was changed in 3 places."
        );
        assert_eq!(fs::read_to_string(&file).unwrap(), "onE\n2\nthrEE\n");
        assert!(change("", "x", false).is_err());
    }

    #[test]
    fn an_edit_keeps_the_ends_of_lines() {
        let (temp, roots) = roots();
        let file = temp.path().join("a.txt");
        for (before, old, new, after) in [
            ("a\r\nb\r\nc\r\n", "a\nb", "x\ny\nz", "x\r\ny\r\nz\r\nc\r\n"),
            ("a\r\nb\r\n", "a\r\nb", "a\r\nx", "a\r\nx\r\n"),
            ("a\r\nb\r\n", "b", "x\ny", "a\r\nx\r\ny\r\n"),
            ("a\nb\n", "a\nb", "x\ny", "x\ny\n"),
            ("a\nb\n", "a\r\nb", "x\r\ny", "x\ny\n"),
            // Both kinds of ends.
            ("a\r\nb\nc\n", "b\nc", "x\ny", "a\r\nx\ny\n"),
            ("a\r\nb\nc\n", "a\nb", "x\ny", "x\r\ny\nc\n"),
        ] {
            fs::write(&file, before).unwrap();
            let input = json!({"path": "a.txt", "old_string": old, "new_string": new});
            edit(&roots.existing("a.txt").real.unwrap(), &input).unwrap();
            assert_eq!(
                fs::read_to_string(&file).unwrap(),
                after,
                "{before:?} {old:?}"
            );
        }
    }

    #[test]
    fn binary_files_are_reported() {
        let (temp, roots) = roots();
        fs::write(temp.path().join("b.bin"), b"\xff\xfe").unwrap();
        fs::write(temp.path().join("p.png"), b"\x89PNG\r\n\x1a\n").unwrap();
        fs::write(temp.path().join("j.png"), b"\xff\xd8\xff").unwrap();
        fs::write(temp.path().join("t.png"), "a pointer").unwrap();
        let read = |path: &str| read(&roots.existing(path).real?, &json!({"path": path}));
        assert!(read("b.bin").unwrap_err().contains("is not UTF-8 text"));
        assert!(read(".").unwrap_err().contains("is a folder"));
        assert!(read("none").unwrap_err().starts_with("none: No such file"));
        let image = read("p.png").unwrap();
        assert_eq!(image.text, "[image: image/png, 8 bytes]");
        assert!(
            matches!(&image.content()[..], [Input::Image { media_type, .. }] if media_type == "image/png")
        );
        // A name is not believed: services refuse an image of another type, with each later request.
        assert_eq!(read("j.png").unwrap().text, "[image: image/jpeg, 3 bytes]");
        assert_eq!(read("t.png").unwrap().text, "a pointer");
    }
}
