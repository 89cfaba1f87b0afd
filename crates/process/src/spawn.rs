//! Start of processes.
//!
//! A start blocks the thread for about a millisecond. A dedicated thread does it, so that starts do not delay the
//! reading of other runs.

use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::process::Stdio;
use std::sync::{Mutex, mpsc};
use std::time::Duration;

use teamster_core::provider::{EventsOn, Stdin};
use teamster_core::sync::lock;
use tokio::io::AsyncRead;
use tokio::process::{Child, ChildStdin, Command};
use tokio::runtime::Handle;
use tokio::sync::oneshot;

use crate::launch::Plan;
use crate::os;
use crate::run_id::RunId;
use crate::stop::Tree;

/// Output pipe of the child.
pub(crate) type Output = Box<dyn AsyncRead + Send + Unpin>;

/// A started process and our ends of its pipes.
pub(crate) struct Spawned {
    pub(crate) child: Child,
    pub(crate) stdin: Option<ChildStdin>,
    pub(crate) events: Option<Output>,
    pub(crate) other: Option<Output>,
}

/// Starts the process. Its pipes are registered with the runtime of `handle`. Dropping the future before it is done
/// leaves no process.
pub(crate) async fn spawn(
    plan: &Plan,
    handle: &Handle,
    die_with_parent: bool,
) -> io::Result<Spawned> {
    let mut command = command(plan);
    if die_with_parent {
        die_with_us(&mut command);
    }
    let (reply, started) = oneshot::channel();
    let (handle, run_id) = (handle.clone(), plan.run_id.clone());
    on_spawner(Box::new(move || {
        if reply.is_closed() {
            return;
        }
        let started = start(&mut command, &handle).map(|child| Unclaimed {
            child: Some(child),
            run_id,
        });
        // If the caller is gone, dropping the unclaimed process ends it.
        let _ = reply.send(started);
    }))?;
    let mut started = started.await.map_err(|_| lost())??;
    let mut child = started.child.take().ok_or_else(lost)?;
    let stdin = child.stdin.take();
    let stdout = child.stdout.take();
    let stderr = child.stderr.take();
    if let Some(stdout) = &stdout {
        os::enlarge_pipe(stdout);
    }
    let (events, other) = match plan.launch.events_on {
        EventsOn::Stderr => {
            if let Some(stderr) = &stderr {
                os::enlarge_pipe(stderr);
            }
            (stderr.map(boxed), stdout.map(boxed))
        }
        _ => (stdout.map(boxed), stderr.map(boxed)),
    };
    Ok(Spawned {
        child,
        stdin,
        events,
        other,
    })
}

/// A started process that its run has not taken yet. Dropping it ends the process and its descendants.
struct Unclaimed {
    child: Option<Child>,
    run_id: RunId,
}

impl Drop for Unclaimed {
    fn drop(&mut self) {
        if let Some(child) = self.child.take() {
            drop(Tree::new(child, &self.run_id));
        }
    }
}

/// Starts the process on this thread.
fn start(command: &mut Command, handle: &Handle) -> io::Result<Child> {
    /// Number of attempts with a busy file, and the pause between them.
    const TRIES: u32 = 10;
    const PAUSE: Duration = Duration::from_millis(5);

    let _context = handle.enter();
    for _ in 1..TRIES {
        match command.spawn() {
            // Another process has the program open for writing: an update that is about to end, or a forked
            // process that has not called `exec` yet.
            Err(error) if error.kind() == io::ErrorKind::ExecutableFileBusy => {
                std::thread::sleep(PAUSE);
            }
            result => return result,
        }
    }
    command.spawn()
}

fn boxed(pipe: impl AsyncRead + Send + Unpin + 'static) -> Output {
    Box::new(pipe)
}

fn command(plan: &Plan) -> Command {
    let mut command = Command::new(&plan.program);
    command
        .args(&plan.launch.args)
        .stdin(match &plan.launch.stdin {
            Stdin::Bytes(_) | Stdin::Open(_) => Stdio::piped(),
            _ => Stdio::null(),
        })
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    command.process_group(0);
    if let Some(directory) = &plan.directory {
        command.current_dir(directory);
    }
    if plan.env.inherit {
        // Before `envs`, so that only inherited variables are removed.
        for name in &plan.env.remove {
            command.env_remove(name);
        }
    } else {
        command.env_clear();
    }
    command.envs(&plan.env.set);
    command
}

/// Makes the kernel end the process when the thread that starts it ends. The thread of [`on_spawner`] lives as long as
/// this process; Tokio's own threads may end earlier.
#[cfg(target_os = "linux")]
fn die_with_us(command: &mut Command) {
    let parent = std::process::id();
    // SAFETY: between fork and exec the closure only makes two system calls; it neither allocates
    // nor takes locks.
    #[expect(unsafe_code, reason = "the only way to set the parent-death signal")]
    unsafe {
        command.pre_exec(move || os::die_with_parent(parent));
    }
}

#[cfg(not(target_os = "linux"))]
fn die_with_us(_: &mut Command) {}

type Job = Box<dyn FnOnce() + Send>;

/// Runs a job on the thread that starts processes, which lives as long as this process.
fn on_spawner(job: Job) -> io::Result<()> {
    static SPAWNER: Mutex<Option<mpsc::Sender<Job>>> = Mutex::new(None);

    let mut spawner = lock(&SPAWNER);
    let jobs = match &mut *spawner {
        Some(jobs) => jobs,
        none => {
            let (jobs, queue) = mpsc::channel::<Job>();
            std::thread::Builder::new()
                .name("teamster-spawner".into())
                .spawn(move || {
                    for job in queue {
                        // A panic closes the channel, which the caller notices.
                        let _ = catch_unwind(AssertUnwindSafe(job));
                    }
                })?;
            none.insert(jobs)
        }
    };
    jobs.send(job).map_err(|_| lost())
}

fn lost() -> io::Error {
    io::Error::other("the thread that starts processes is gone")
}
