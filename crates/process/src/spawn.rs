//! Starting the process.

use std::io;
use std::process::Stdio;
use std::time::Duration;

use teamster_core::{EventsOn, Stdin};
use tokio::io::AsyncRead;
use tokio::process::{Child, ChildStdin, Command};
use tokio::runtime::Handle;

use crate::launch::Plan;
use crate::os;

/// A pipe from the child.
pub(crate) type Output = Box<dyn AsyncRead + Send + Unpin>;

/// A started process and our ends of its pipes.
pub(crate) struct Spawned {
    pub(crate) child: Child,
    pub(crate) stdin: Option<ChildStdin>,
    pub(crate) events: Option<Output>,
    pub(crate) other: Option<Output>,
}

/// Starts the process; its pipes belong to the runtime of `handle`.
pub(crate) fn spawn(plan: &Plan, handle: &Handle, die_with_parent: bool) -> io::Result<Spawned> {
    let command = command(plan);
    let mut child = if die_with_parent && cfg!(target_os = "linux") {
        on_lasting_thread(command, handle)?
    } else {
        let mut command = command;
        start(&mut command, handle)?
    };
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

/// Starts the process from this thread.
fn start(command: &mut Command, handle: &Handle) -> io::Result<Child> {
    /// How often a busy file is tried again, and after how long.
    const TRIES: u32 = 10;
    const PAUSE: Duration = Duration::from_millis(5);

    let _context = handle.enter();
    for _ in 1..TRIES {
        match command.spawn() {
            // Somebody has the program open for writing: an update that is about to end, or a
            // process that was forked while this was so and has not become its program yet.
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
    #[cfg(unix)]
    command.process_group(0);
    if let Some(directory) = &plan.directory {
        command.current_dir(directory);
    }
    if plan.env.inherit {
        // Before what is set, so that only inherited variables go.
        for name in &plan.env.remove {
            command.env_remove(name);
        }
    } else {
        command.env_clear();
    }
    command.envs(&plan.env.set);
    command
}

/// Starts a process that the kernel ends when the thread that started it ends: so from a thread
/// that lives as long as we do. Tokio's own threads may end earlier.
#[cfg(target_os = "linux")]
fn on_lasting_thread(mut command: Command, handle: &Handle) -> io::Result<Child> {
    use std::sync::{OnceLock, mpsc};

    type Job = Box<dyn FnOnce() + Send>;
    static SPAWNER: OnceLock<mpsc::Sender<Job>> = OnceLock::new();

    let parent = std::process::id();
    // SAFETY: between fork and exec the closure only makes two system calls; it neither allocates
    // nor takes locks.
    #[expect(unsafe_code, reason = "the only way to set the parent-death signal")]
    unsafe {
        command.pre_exec(move || os::die_with_parent(parent));
    }
    let (reply, answer) = mpsc::sync_channel(1);
    let handle = handle.clone();
    let job: Job = Box::new(move || {
        // The asker waits, so somebody hears it.
        let _ = reply.send(start(&mut command, &handle));
    });
    let lost = || io::Error::other("the thread that starts processes is gone");
    let spawner = match SPAWNER.get() {
        Some(spawner) => spawner,
        None => {
            let (jobs, queue) = mpsc::channel::<Job>();
            std::thread::Builder::new()
                .name("teamster-spawner".into())
                .spawn(move || {
                    for job in queue {
                        job();
                    }
                })?;
            // If another thread was faster, ours ends with its sender, and has started nothing.
            SPAWNER.get_or_init(|| jobs)
        }
    };
    spawner.send(job).map_err(|_| lost())?;
    answer.recv().map_err(|_| lost())?
}

#[cfg(not(target_os = "linux"))]
fn on_lasting_thread(mut command: Command, handle: &Handle) -> io::Result<Child> {
    start(&mut command, handle)
}
