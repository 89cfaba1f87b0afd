//! The current text of a file that a tool call would write whole, so that a person is shown the difference.

use std::fs::{self, File};
use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

use teamster_api::tool_input;
use teamster_core::{PermissionRequest, ToolKind};
use teamster_process::open_unlinked_file;
use tokio::task::spawn_blocking;
use tokio::time::timeout;

/// Maximum size of a file that is read, in bytes.
const MAX_SIZE: usize = 256 << 10;
/// Time limit of the reading. A file system may hang.
const READ_LIMIT: Duration = Duration::from_secs(2);

/// Returns the current text of the file that the call of this request would write whole. `None` if there is none, if it is
/// outside of the directory, larger than the limit, or not text.
pub(crate) async fn old_text(request: &PermissionRequest, directory: PathBuf) -> Option<String> {
    // Another tool may use paths of another machine.
    let file =
        (request.kind == ToolKind::Edit).then(|| tool_input::written_file(&request.input))?;
    let file = PathBuf::from(file?);
    let reading = spawn_blocking(move || read_below(&directory, &file));
    timeout(READ_LIMIT, reading).await.ok()?.ok()?
}

fn read_below(directory: &Path, file: &Path) -> Option<String> {
    let directory = directory.canonicalize().ok()?;
    let file = directory.join(file).canonicalize().ok()?;
    // Opening a device can have an effect.
    let is_read = file.starts_with(&directory) && fs::symlink_metadata(&file).ok()?.is_file();
    let file = is_read.then(|| open_unlinked_file(File::options().read(true), &file))?;
    let mut text = String::new();
    let mut start = file.ok()?.take(MAX_SIZE as u64 + 1);
    start.read_to_string(&mut text).ok()?;
    (text.len() <= MAX_SIZE).then_some(text)
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use nix::sys::stat::Mode;
    use nix::unistd::mkfifo;
    use serde_json::json;
    use teamster_api::Answer;
    use teamster_core::{PermissionAnswer, PermissionPolicy};

    use super::*;
    use crate::RequestChannel;

    async fn text_of(directory: &Path, kind: ToolKind, path: &str) -> Option<String> {
        let input = json!({"file_path": path, "content": "new"});
        let request = PermissionRequest::new(1, "Write", kind, input);
        old_text(&request, directory.to_owned()).await
    }

    #[tokio::test]
    async fn text_of_a_regular_file_in_the_directory_is_read() {
        let dir = tempfile::tempdir().unwrap();
        let all = dir.path();
        let work = all.join("work");
        fs::create_dir(&work).unwrap();
        fs::write(work.join("a.txt"), "old\n").unwrap();
        fs::write(work.join("large"), vec![b'x'; MAX_SIZE + 1]).unwrap();
        fs::write(work.join("most"), vec![b'x'; MAX_SIZE]).unwrap();
        fs::write(work.join("binary"), b"\xff\xfe").unwrap();
        fs::write(all.join("secret"), "secret").unwrap();
        symlink(all.join("secret"), work.join("out")).unwrap();
        symlink("a.txt", work.join("in")).unwrap();
        // Without a writer, opening it as a file would wait.
        mkfifo(&work.join("pipe"), Mode::S_IRWXU).unwrap();

        let absolute = work.join("a.txt").to_str().unwrap().to_owned();
        let of_edit = async |path: &str| text_of(&work, ToolKind::Edit, path).await;
        for path in ["a.txt", "in", &absolute] {
            assert_eq!(of_edit(path).await.as_deref(), Some("old\n"), "{path}");
        }
        assert_eq!(of_edit("most").await.map(|it| it.len()), Some(MAX_SIZE));
        for path in [
            "large",
            "binary",
            "out",
            "../secret",
            "pipe",
            "none",
            ".",
            "/dev/null",
        ] {
            assert_eq!(of_edit(path).await, None, "{path}");
        }
        assert_eq!(text_of(&work, ToolKind::Mcp, "a.txt").await, None);
    }

    #[tokio::test]
    async fn request_to_write_a_whole_file_has_its_text() {
        let dir = tempfile::tempdir().unwrap();
        fs::write(dir.path().join("a"), "old").unwrap();
        let mut channel = RequestChannel::new("r").in_directory(Some(dir.path().to_owned()));
        let requests = channel.requests();
        let PermissionPolicy::Ask(ask) = requests.policy("claude", None) else {
            panic!("the policy asks");
        };
        let input = json!({"path": "a", "content": "new"});
        let asked = ask(PermissionRequest::new(1, "write", ToolKind::Edit, input));
        let asked = tokio::spawn(asked);
        assert!(channel.next().await.is_some());
        let pending = requests.pending();
        let texts: Vec<_> = pending.iter().map(|it| it.old_text.as_deref()).collect();
        assert_eq!(texts, [Some("old")]);
        requests.answer("r/1", Answer::Allow).unwrap();
        assert_eq!(asked.await.unwrap(), PermissionAnswer::Allow);
    }
}
