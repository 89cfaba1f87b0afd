//! A small disk of a server, which can be filled.

use std::fs::{self, File};
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::Command;

const SIZE: &str = "size=96m";

/// A file system in memory, until this is dropped.
pub(crate) struct Disk {
    pub(crate) place: PathBuf,
}

impl Disk {
    /// Mounts a disk. Returns `None` where that is not possible: it needs the rights of root, on Linux.
    pub(crate) fn mount(place: &Path) -> Option<Self> {
        fs::create_dir_all(place).unwrap();
        let mut mount = Command::new("mount");
        mount.args(["-t", "tmpfs", "-o", SIZE, "tmpfs"]).arg(place);
        let is_there = mount.output().is_ok_and(|output| output.status.success());
        is_there.then(|| Self {
            place: place.to_owned(),
        })
    }

    /// Writes until there is no space.
    pub(crate) fn fill(&self) {
        let mut file = File::create(self.place.join("filled")).unwrap();
        let junk = vec![1_u8; 1 << 16];
        let mut size = junk.len();
        while size > 0 {
            if file.write_all(&junk[..size]).is_err() {
                size /= 2;
            }
        }
    }

    /// Gives the space back.
    pub(crate) fn empty(&self) {
        let _ = fs::remove_file(self.place.join("filled"));
    }
}

impl Drop for Disk {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg("-l").arg(&self.place).status();
    }
}
