//! Notice of the removal of a log.

use std::path::{Path, PathBuf};
use std::time::Duration;

use tokio::time::sleep;

/// Interval of the looks at a log whose removal the system does not report.
const LOOK_EVERY: Duration = Duration::from_secs(5);

/// Wakes its task when a log may have been removed: without a timer where the system reports that, so that a session at rest
/// does not wake up.
#[derive(Debug)]
pub(crate) struct Watch {
    path: PathBuf,
    reports: Option<reports::Reports>,
}

impl Watch {
    /// Begins to watch the log of this path. MUST be called in a Tokio runtime.
    pub(crate) fn of(path: &Path) -> Self {
        Self {
            path: path.to_owned(),
            // A user has a limited number of them.
            reports: reports::Reports::of(path),
        }
    }

    /// Waits until the log may have been removed. Cancel-safe.
    pub(crate) async fn changed(&self) {
        match &self.reports {
            Some(reports) => reports.next(&self.path).await,
            None => sleep(LOOK_EVERY).await,
        }
    }
}

#[cfg(target_os = "linux")]
mod reports {
    use std::future::pending;
    use std::os::fd::{AsFd, AsRawFd, RawFd};
    use std::path::Path;

    use nix::sys::inotify::{AddWatchFlags, InitFlags, Inotify};
    use tokio::io::Interest;
    use tokio::io::unix::AsyncFd;

    /// Reports of the kernel about one file.
    #[derive(Debug)]
    pub(super) struct Reports(AsyncFd<Instance>);

    #[derive(Debug)]
    struct Instance(Inotify);

    impl AsRawFd for Instance {
        fn as_raw_fd(&self) -> RawFd {
            self.0.as_fd().as_raw_fd()
        }
    }

    impl Instance {
        /// Lets the kernel report that the number of the file's names has changed.
        fn watch(&self, path: &Path) -> Option<()> {
            let watched = self.0.add_watch(path, AddWatchFlags::IN_ATTRIB);
            watched.ok().map(drop)
        }
    }

    impl Reports {
        pub(super) fn of(path: &Path) -> Option<Self> {
            let flags = InitFlags::IN_CLOEXEC | InitFlags::IN_NONBLOCK;
            let instance = Instance(Inotify::init(flags).ok()?);
            instance.watch(path)?;
            // SAFETY: `Inotify` owns its descriptor: it is open until it is dropped, with the `AsyncFd`, and `Instance`
            // returns no other one.
            #[expect(unsafe_code, reason = "no safe function registers a descriptor")]
            let reports = unsafe { AsyncFd::register_with_interest(instance, Interest::READABLE) };
            reports.ok().map(Self)
        }

        pub(super) async fn next(&self, path: &Path) {
            let Ok(mut ready) = self.0.readable().await else {
                // The runtime ends.
                return pending().await;
            };
            let instance = self.0.get_ref();
            while instance.0.read_events().is_ok() {}
            ready.clear_ready();
            // A log that was shortened is another file. One that is gone needs no watch.
            let _ = instance.watch(path);
        }
    }
}

#[cfg(not(target_os = "linux"))]
mod reports {
    use std::future::Pending;
    use std::path::Path;

    /// There are none.
    #[derive(Debug)]
    pub(super) enum Reports {}

    impl Reports {
        pub(super) fn of(_path: &Path) -> Option<Self> {
            None
        }

        pub(super) fn next(&self, _path: &Path) -> Pending<()> {
            match *self {}
        }
    }
}
