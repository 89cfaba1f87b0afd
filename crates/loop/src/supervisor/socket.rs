//! Socket and lock of a supervisor.

use std::collections::VecDeque;
use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt, PermissionsExt};
use std::os::unix::net::UnixListener as StdListener;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Weak};
use std::time::Duration;

use teamster_api::agents::{
    Command, ErrorCode, LONGEST_REQUEST, Outcome, Request, Response, VERSION,
};
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::{UnixListener, UnixStream};
use tokio::sync::{mpsc, oneshot};
use tokio::time::{sleep, timeout};
use tokio_util::sync::CancellationToken;

use super::state_folder::private_folder;
use super::updates::{Lines, QUEUE_CAPACITY};
use crate::folder::{Pid, lock_as_process};

/// Maximum number of connections. A further one replaces the oldest idle one.
const MAX_CONNECTIONS: usize = 64;
/// Interval at which the existence of the socket is checked.
const CHECK_INTERVAL: Duration = Duration::from_secs(2);
/// Idle timeout of a client connection.
const IDLE_TIMEOUT: Duration = Duration::from_mins(5);
/// Idle timeout of a connection before its first request, and write timeout of updates.
const FIRST_REQUEST_TIMEOUT: Duration = Duration::from_secs(10);

/// Request from a client, with the channel of its response.
#[derive(Debug)]
pub(crate) struct SocketRequest {
    pub(crate) command: Command,
    pub(crate) reply: oneshot::Sender<Response>,
    /// Channel of the updates of a subscription.
    pub(crate) updates: Option<Lines>,
}

/// Lock of the supervisor of a folder. The system releases it after a crash.
#[derive(Debug)]
pub(crate) struct Lock(File);

impl Lock {
    /// Takes the lock. If another process holds it, returns that process's id, if the lock file has it.
    pub(crate) fn take(path: &Path) -> io::Result<Result<Self, Pid>> {
        let file = OpenOptions::new()
            .create(true)
            .truncate(false)
            .read(true)
            .write(true)
            .mode(0o600)
            .open(path)?;
        Ok(lock_as_process(file)?.map(|(file, _)| Self(file)))
    }
}

impl Drop for Lock {
    fn drop(&mut self) {
        // Unlock explicitly: a child process that is being started may still have the file open. If this fails,
        // closing the file unlocks it.
        let _ = self.0.unlock();
    }
}

/// Listening socket of a supervisor. Its file is removed on drop.
#[derive(Debug)]
pub(crate) struct Socket {
    path: PathBuf,
    listener: UnixListener,
    /// Device and inode of the file.
    id: (u64, u64),
}

impl Socket {
    /// Listens at this path, in a folder that only this user can enter. Replaces an existing socket, which a
    /// killed supervisor left. The caller MUST hold the lock.
    pub(crate) fn bind(path: PathBuf) -> io::Result<Self> {
        let listener = listen(&path)?;
        let id = id(&path)?;
        Ok(Self { path, listener, id })
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Restores the socket if its file was removed. A file of another process is left alone.
    fn mend(&mut self) {
        if fs::symlink_metadata(&self.path).is_ok() {
            return;
        }
        let Some(folder) = self.path.parent() else {
            return;
        };
        // A failure is retried at the next check.
        if private_folder(folder).is_ok()
            && let Ok(listener) = listen(&self.path)
            && let Ok(id) = id(&self.path)
        {
            self.listener = listener;
            self.id = id;
        }
    }

    /// Accepts connections and forwards their requests. Cancel-safe: open connections are served by their own
    /// tasks.
    pub(crate) async fn serve(&mut self, requests: mpsc::Sender<SocketRequest>) {
        /// Pause after a failed accept, for example with too many open files.
        const PAUSE: Duration = Duration::from_millis(100);

        let mut peers = Peers::default();
        let mut check = tokio::time::interval(CHECK_INTERVAL);
        loop {
            let accepted = tokio::select! {
                accepted = self.listener.accept() => accepted,
                _ = check.tick() => {
                    self.mend();
                    continue;
                }
            };
            let Ok((stream, _)) = accepted else {
                sleep(PAUSE).await;
                continue;
            };
            let (peer, requests) = (peers.admit().await, requests.clone());
            tokio::spawn(async move {
                tokio::select! {
                    // The client may be gone.
                    _ = serve_connection(stream, requests, &peer) => {}
                    () = peer.evicted.cancelled() => {}
                }
            });
        }
    }
}

impl Drop for Socket {
    fn drop(&mut self) {
        // On an error the file stays, and the next supervisor replaces it.
        if id(&self.path).is_ok_and(|found| found == self.id) {
            let _ = fs::remove_file(&self.path);
        }
    }
}

fn listen(path: &Path) -> io::Result<UnixListener> {
    // Bound under another name until its mode is set, so that other users can never connect. That name is no
    // longer than the final one, because the length is limited.
    let new = path.with_file_name("new.sock");
    match fs::remove_file(&new) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    let listener = StdListener::bind(&new)?;
    fs::set_permissions(&new, fs::Permissions::from_mode(0o600))?;
    listener.set_nonblocking(true)?;
    fs::rename(&new, path)?;
    UnixListener::from_std(listener)
}

fn id(path: &Path) -> io::Result<(u64, u64)> {
    let found = fs::symlink_metadata(path)?;
    Ok((found.dev(), found.ino()))
}

/// One connection.
#[derive(Debug, Default)]
struct Peer {
    /// A request is being answered.
    is_busy: AtomicBool,
    evicted: CancellationToken,
}

/// Connections, oldest first.
#[derive(Debug, Default)]
struct Peers(VecDeque<Weak<Peer>>);

impl Peers {
    /// Admits a connection. At the limit, evicts the oldest idle connection, or waits for one.
    async fn admit(&mut self) -> Arc<Peer> {
        /// Interval at which a busy server looks for an idle connection.
        const PAUSE: Duration = Duration::from_millis(10);

        loop {
            self.0.retain(|peer| peer.strong_count() > 0);
            if self.0.len() < MAX_CONNECTIONS {
                let peer = Arc::new(Peer::default());
                self.0.push_back(Arc::downgrade(&peer));
                return peer;
            }
            let is_idle = |peer: &Weak<Peer>| {
                let peer = peer.upgrade();
                peer.is_none_or(|peer| !peer.is_busy.load(Ordering::Acquire))
            };
            match self.0.iter().position(is_idle) {
                Some(index) => {
                    if let Some(peer) = self.0.remove(index).and_then(|it| it.upgrade()) {
                        peer.evicted.cancel();
                    }
                }
                None => sleep(PAUSE).await,
            }
        }
    }
}

/// Serves the requests of one connection in sequence.
async fn serve_connection(
    mut stream: UnixStream,
    requests: mpsc::Sender<SocketRequest>,
    peer: &Peer,
) -> io::Result<()> {
    let (read, mut write) = stream.split();
    let mut read = BufReader::new(read);
    let mut line = Vec::new();
    let mut idle_timeout = FIRST_REQUEST_TIMEOUT;
    loop {
        line.clear();
        peer.is_busy.store(false, Ordering::Release);
        let limit = LONGEST_REQUEST as u64 + 1;
        let mut bounded = (&mut read).take(limit);
        let Ok(count) = timeout(idle_timeout, bounded.read_until(b'\n', &mut line)).await else {
            return Ok(());
        };
        if count? == 0 {
            return Ok(());
        }
        idle_timeout = IDLE_TIMEOUT;
        peer.is_busy.store(true, Ordering::Release);
        let mut subscribed = None;
        let too_long = line.len() > LONGEST_REQUEST;
        let response = if too_long {
            Response::refused(
                ErrorCode::BadRequest,
                format!("the request is longer than {LONGEST_REQUEST} bytes"),
            )
        } else if line.trim_ascii().is_empty() {
            continue;
        } else {
            match parse_request(&line) {
                Ok(Command::Subscribe) => {
                    let (sender, updates) = mpsc::channel(QUEUE_CAPACITY);
                    subscribed = Some(updates);
                    send_request(Command::Subscribe, Some(sender), &requests).await
                }
                Ok(command) => send_request(command, None, &requests).await,
                Err(refusal) => refusal,
            }
        };
        let mut text = serde_json::to_vec(&response)?;
        text.push(b'\n');
        match timeout(IDLE_TIMEOUT, write.write_all(&text)).await {
            Ok(written) => written?,
            Err(_) => return Ok(()),
        }
        if let (Some(updates), Outcome::Ok(_)) = (subscribed, &response.outcome) {
            return forward_updates(updates, &mut read, &mut write).await;
        }
        if too_long {
            // The start of the next request is unknown.
            return Ok(());
        }
    }
}

fn parse_request(line: &[u8]) -> Result<Command, Response> {
    #[derive(serde::Deserialize)]
    struct Head {
        version: u32,
    }

    let bad = |error: &serde_json::Error| {
        Response::refused(
            ErrorCode::BadRequest,
            format!(
                "invalid request: {error}; write one such as \
                 {{\"version\": {VERSION}, \"command\": \"status\"}}"
            ),
        )
    };
    // The version comes first: another version may have other commands.
    let head: Head = serde_json::from_slice(line).map_err(|error| bad(&error))?;
    if head.version != VERSION {
        return Err(Response::refused(
            ErrorCode::UnsupportedVersion,
            format!(
                "unsupported version {}: the supervisor has version {VERSION}; use the teamster that \
                 started it, or restart the supervisor",
                head.version
            ),
        ));
    }
    let request: Request = serde_json::from_slice(line).map_err(|error| bad(&error))?;
    Ok(request.command)
}

/// Writes updates until the client disconnects or stops reading.
async fn forward_updates(
    mut updates: mpsc::Receiver<Arc<str>>,
    read: &mut (impl AsyncReadExt + Unpin),
    write: &mut (impl AsyncWriteExt + Unpin),
) -> io::Result<()> {
    let mut ignored = [0; 256];
    loop {
        let line = tokio::select! {
            line = updates.recv() => line,
            count = read.read(&mut ignored) => match count? {
                0 => return Ok(()),
                _ => continue,
            },
        };
        let Some(line) = line else {
            return Ok(());
        };
        match timeout(FIRST_REQUEST_TIMEOUT, write.write_all(line.as_bytes())).await {
            Ok(written) => written?,
            Err(_) => return Ok(()),
        }
    }
}

async fn send_request(
    command: Command,
    updates: Option<Lines>,
    requests: &mpsc::Sender<SocketRequest>,
) -> Response {
    let (reply, response) = oneshot::channel();
    let request = SocketRequest {
        command,
        reply,
        updates,
    };
    if requests.send(request).await.is_ok()
        && let Ok(response) = response.await
    {
        return response;
    }
    Response::refused(ErrorCode::Ending, "the supervisor is ending")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_silent_connection_is_closed() {
        let (ours, _silent) = UnixStream::pair().unwrap();
        let (requests, _receiver) = mpsc::channel(1);
        timeout(
            FIRST_REQUEST_TIMEOUT * 2,
            serve_connection(ours, requests, &Peer::default()),
        )
        .await
        .unwrap()
        .unwrap();
    }

    #[tokio::test(start_paused = true)]
    async fn the_oldest_idle_connection_is_evicted() {
        let mut peers = Peers::default();
        let mut all = Vec::new();
        for _ in 0..MAX_CONNECTIONS {
            all.push(peers.admit().await);
        }
        all[0].is_busy.store(true, Ordering::Release);
        all.push(peers.admit().await);
        let evicted = |index: usize| all[index].evicted.is_cancelled();
        assert_eq!([evicted(0), evicted(1), evicted(2)], [false, true, false]);
        // An ended connection frees its place.
        all.pop();
        all.push(peers.admit().await);
        assert!(!all[2].evicted.is_cancelled());
    }

    #[test]
    fn a_second_process_learns_the_pid_of_the_holder() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("lock");
        fs::write(&path, "a text that is longer than a process id\n").unwrap();
        let lock = Lock::take(&path).unwrap().unwrap();
        let taken = Lock::take(&path).unwrap().unwrap_err();
        assert_eq!(taken, Some(std::process::id()));
        drop(lock);
        assert!(Lock::take(&path).unwrap().is_ok());
    }

    #[tokio::test]
    async fn the_socket_of_a_killed_supervisor_is_replaced_and_private() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("supervisor.sock");
        for name in ["supervisor.sock", "new.sock"] {
            // The listener is closed, but its file remains.
            drop(StdListener::bind(dir.path().join(name)).unwrap());
        }
        let socket = Socket::bind(path.clone()).unwrap();
        let mode = fs::metadata(&path).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
        assert!(StdListener::bind(&path).is_err());
        std::os::unix::net::UnixStream::connect(&path).unwrap();
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 1);
        drop(socket);
        assert!(!path.exists());
    }
}
