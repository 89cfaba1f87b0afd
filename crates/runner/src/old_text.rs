//! The current text of a file that a tool call would write whole, so that a person is shown the difference.

use std::fs::{self, File};
use std::io::{self, Read as _};
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::Duration;

use nix::fcntl::{OFlag, openat};
use nix::sys::stat::Mode;
use teamster_api::tool_input;
use teamster_core::{PermissionRequest, ToolKind};
use tokio::sync::oneshot;
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
    limited(move || read_below(&directory, &file)).await
}

/// Reads on a thread of its own: a Tokio runtime waits at its end for those of its blocking pool.
async fn limited(read: impl FnOnce() -> Option<String> + Send + 'static) -> Option<String> {
    let (reply, text) = oneshot::channel();
    let work = move || {
        // Fails if the text is no longer wanted.
        let _ = reply.send(read());
    };
    let thread = thread::Builder::new().name("teamster-file".into());
    thread.spawn(work).ok()?;
    timeout(READ_LIMIT, text).await.ok()?.ok()?
}

fn read_below(directory: &Path, file: &Path) -> Option<String> {
    let directory = directory.canonicalize().ok()?;
    let file = directory.join(file).canonicalize().ok()?;
    let below = file.strip_prefix(&directory).ok()?;
    // Opening a device can have an effect.
    if !fs::symlink_metadata(&file).ok()?.is_file() {
        return None;
    }
    let file = open_below(&directory, below).ok()?;
    let metadata = file.metadata().ok()?;
    if !metadata.is_file() || metadata.len() > MAX_SIZE as u64 {
        return None;
    }
    let mut text = String::new();
    // A file of the kernel, such as `/proc/self/environ`, has the size 0.
    let mut content = file.take(metadata.len());
    content.read_to_string(&mut text).ok()?;
    Some(text)
}

/// Opens a file by its path from a directory. A link in the path is an error: the agent may have put it there since the
/// path was resolved, and in a container it could not follow the link itself.
fn open_below(directory: &Path, path: &Path) -> io::Result<File> {
    let mut opened = OwnedFd::from(File::open(directory)?);
    let mut parts = path.components().peekable();
    while let Some(part) = parts.next() {
        // Without O_NONBLOCK, a pipe would be opened when another process opens its other end.
        let kind = match parts.peek() {
            Some(_) => OFlag::O_DIRECTORY,
            None => OFlag::O_NONBLOCK,
        };
        let flags = kind | OFlag::O_RDONLY | OFlag::O_NOFOLLOW | OFlag::O_CLOEXEC;
        opened = openat(&opened, part.as_os_str(), flags, Mode::empty())?;
    }
    Ok(opened.into())
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;
    use std::sync::mpsc;

    use nix::unistd::mkfifo;
    use serde_json::json;
    use teamster_api::Answer;
    use teamster_core::{PermissionAnswer, PermissionPolicy};
    use tokio::runtime::Builder;

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

    #[test]
    fn link_that_replaces_a_directory_of_the_path_is_not_followed() {
        let dir = tempfile::tempdir().unwrap();
        let work = dir.path().join("work");
        for name in ["work/real", "other"] {
            fs::create_dir_all(dir.path().join(name)).unwrap();
            fs::write(dir.path().join(name).join("a"), name).unwrap();
        }
        symlink(dir.path().join("other"), work.join("link")).unwrap();
        assert!(open_below(&work, Path::new("real/a")).is_ok());
        assert!(open_below(&work, Path::new("link/a")).is_err());
    }

    #[cfg(target_os = "linux")]
    #[tokio::test]
    async fn environment_of_this_process_is_no_text_of_a_file() {
        let text = text_of(Path::new("/"), ToolKind::Edit, "/proc/self/environ").await;
        assert_eq!(text.as_deref(), Some(""));
    }

    #[test]
    fn end_of_the_runtime_does_not_wait_for_a_disk_that_hangs() {
        let (end, hangs) = mpsc::channel::<()>();
        let mut builder = Builder::new_current_thread();
        let runtime = builder.enable_time().start_paused(true).build().unwrap();
        let read = move || hangs.recv().ok().map(|()| "late".to_owned());
        assert_eq!(runtime.block_on(limited(read)), None);
        let (ended, has_ended) = mpsc::channel();
        thread::spawn(move || {
            drop(runtime);
            ended.send(())
        });
        let waited = has_ended.recv_timeout(Duration::from_secs(30));
        drop(end);
        assert_eq!(waited, Ok(()));
    }
}
