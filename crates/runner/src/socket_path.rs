//! Short paths of sockets, which the system limits to about 100 bytes.

use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;
use std::path::Path;

/// Calls `act` with a path of the socket `name` in `folder`. On Linux the path is short, however long the
/// folder's path is.
pub(crate) fn with_short_path<T>(
    folder: &Path,
    name: &str,
    act: impl FnOnce(&Path) -> io::Result<T>,
) -> io::Result<T> {
    if cfg!(target_os = "linux") {
        let folder = File::open(folder)?;
        let short = format!("/proc/self/fd/{}/{name}", folder.as_raw_fd());
        // The descriptor is open until `act` is done.
        act(Path::new(&short))
    } else {
        act(&folder.join(name))
    }
}
