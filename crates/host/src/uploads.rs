//! Files that runs take along, until the run is started.
//!
//! A file is a folder with its manifest and its content, in the folder of its run's id. A part is written at its place, and
//! what is missing is found by the hashes: after a crash, no note about parts can be wrong.

use std::fs::{self, File};
use std::io;
use std::os::unix::fs::{DirBuilderExt, FileExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use sha2::{Digest, Sha256};
use teamster_api::{
    FileManifest, ProblemCode, ServiceError, is_new_run_id, is_owned_run_id, is_run_id,
};
use teamster_process::{FileMode, replace_file};

use crate::{environment, value};

const MANIFEST: &str = "manifest.json";
const CONTENT: &str = "content";
/// Time after which a file is removed whose run was not started.
const KEPT: Duration = Duration::from_hours(24);
/// Variable for the limit of all files together.
const SIZE: &str = "TEAMSTER_UPLOADS_SIZE";
/// The default of that limit, in bytes.
const DEFAULT_SIZE: u64 = 8 << 30;

/// The files of a machine that runs take along.
#[derive(Debug, Clone)]
pub(crate) struct Uploads {
    root: PathBuf,
}

impl Uploads {
    pub(crate) fn at(root: PathBuf) -> Self {
        Self { root }
    }

    /// Declares a file of a run. Returns the numbers of missing parts.
    pub(crate) fn offer(
        &self,
        id: &str,
        manifest: &FileManifest,
    ) -> Result<Vec<u32>, ServiceError> {
        manifest.check()?;
        let folder = self.folder(id, &manifest.name)?;
        let limit = limit()?;
        // Others that are declared at the same time count too.
        let lock = self.lock().map_err(|error| unwritable(&error))?;
        self.sweep(SystemTime::now());
        let others = self.bytes_besides(&folder);
        if others.saturating_add(manifest.bytes) > limit {
            let message = format!(
                "the file has {} bytes, and with the {others} bytes of other runs that were not started the limit is \
                 {limit}: wait until they are, or raise `{SIZE}` on that machine",
                manifest.bytes
            );
            return Err(ServiceError::new(ProblemCode::OverQuota, message));
        }
        let mut is_new = false;
        let mut write = || -> io::Result<File> {
            fs::DirBuilder::new()
                .recursive(true)
                .mode(0o700)
                .create(&folder)?;
            is_new = !folder.join(CONTENT).exists();
            let content = open(&folder)?;
            content.set_len(manifest.bytes)?;
            let json = serde_json::to_vec(manifest)?;
            replace_file(&folder.join(MANIFEST), &json, FileMode::Private)?;
            Ok(content)
        };
        let content = write().map_err(|error| unwritable(&error))?;
        // Explicitly: a process that is being spawned may hold the file open for a moment.
        let _ = lock.unlock();
        if is_new {
            // Nothing to be read.
            return Ok((0..u32::try_from(manifest.parts.len()).unwrap_or(u32::MAX)).collect());
        }
        missing(&content, manifest).map_err(|error| unwritable(&error))
    }

    pub(crate) fn write_part(
        &self,
        id: &str,
        name: &str,
        number: u32,
        part: &[u8],
    ) -> Result<(), ServiceError> {
        let folder = self.folder(id, name)?;
        let manifest = manifest(&folder)?.ok_or_else(|| not_offered(name))?;
        manifest.check_part(number, part)?;
        let (start, _) = manifest.range(number).ok_or_else(|| not_offered(name))?;
        let write = || open(&folder)?.write_all_at(part, start);
        write().map_err(|error: io::Error| unwritable(&error))
    }

    /// Returns the path of a file's content, all of which is there.
    pub(crate) fn complete(&self, id: &str, name: &str) -> Result<PathBuf, ServiceError> {
        let folder = self.folder(id, name)?;
        let manifest = manifest(&folder)?.ok_or_else(|| {
            let message = format!(
                "the file \"{name}\" of the run was not uploaded, or was removed after a day"
            );
            ServiceError::new(ProblemCode::FileNotFound, message)
        })?;
        let content = open(&folder).map_err(|error| unwritable(&error))?;
        let missing = missing(&content, &manifest).map_err(|error| unwritable(&error))?;
        if missing.is_empty() {
            return Ok(folder.join(CONTENT));
        }
        let message = format!(
            "{} of {} parts of the file \"{name}\" are missing: upload them first",
            missing.len(),
            manifest.parts.len()
        );
        Err(ServiceError::new(ProblemCode::FileDamaged, message))
    }

    /// Removes the files of a run.
    pub(crate) fn remove(&self, id: &str) {
        if is_run_id(id) {
            // What cannot be removed now is removed after a day.
            let _ = fs::remove_dir_all(self.root.join(id));
        }
    }

    /// Waits until no other process declares a file.
    fn lock(&self) -> io::Result<File> {
        fs::DirBuilder::new()
            .recursive(true)
            .mode(0o700)
            .create(&self.root)?;
        let lock = File::options()
            .write(true)
            .create(true)
            .truncate(false)
            .mode(0o600)
            .open(self.root.with_extension("lock"))?;
        lock.lock()?;
        Ok(lock)
    }

    fn folder(&self, id: &str, name: &str) -> Result<PathBuf, ServiceError> {
        if !(is_new_run_id(id) || is_owned_run_id(id)) {
            let message = format!(
                "\"{}\" cannot be the id of a run",
                teamster_core::text::one_line(id)
            );
            return Err(ServiceError::new(ProblemCode::InvalidParams, message));
        }
        // A name may be longer than that of a file.
        let name = format!("{:x}", Sha256::digest(name));
        Ok(self.root.join(id).join(name))
    }

    /// Returns the size of all files but the one in this folder, in bytes.
    fn bytes_besides(&self, folder: &Path) -> u64 {
        let files = entries(&self.root).flat_map(|run| entries(&run).collect::<Vec<_>>());
        let others = files.filter(|other| other != folder);
        others
            .filter_map(|other| manifest(&other).ok()?)
            .map(|manifest| manifest.bytes)
            .sum()
    }

    /// Removes the files of runs that were not started for a day.
    fn sweep(&self, now: SystemTime) {
        for run in entries(&self.root) {
            let newest = entries(&run)
                .chain([run.clone()])
                .filter_map(|path| {
                    let written = |path: &Path| fs::metadata(path).ok()?.modified().ok();
                    written(&path.join(CONTENT)).or_else(|| written(&path))
                })
                .max();
            let is_old = |at: SystemTime| now.duration_since(at).is_ok_and(|age| age > KEPT);
            if newest.is_some_and(is_old) {
                let _ = fs::remove_dir_all(run);
            }
        }
    }
}

fn entries(folder: &Path) -> impl Iterator<Item = PathBuf> + use<> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    entries.map(|entry| entry.path())
}

fn open(folder: &Path) -> io::Result<File> {
    File::options()
        .read(true)
        .write(true)
        .create(true)
        .truncate(false)
        .mode(0o600)
        .open(folder.join(CONTENT))
}

fn manifest(folder: &Path) -> Result<Option<FileManifest>, ServiceError> {
    match fs::read(folder.join(MANIFEST)) {
        Ok(json) => serde_json::from_slice(&json)
            .map(Some)
            .map_err(|error| unwritable(&error.into())),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(unwritable(&error)),
    }
}

/// Returns the numbers of the parts that are not as the manifest has them.
fn missing(content: &File, manifest: &FileManifest) -> io::Result<Vec<u32>> {
    let mut missing = Vec::new();
    let mut part = Vec::new();
    for number in 0..u32::try_from(manifest.parts.len()).unwrap_or(u32::MAX) {
        let Some((start, size)) = manifest.range(number) else {
            break;
        };
        part.resize(usize::try_from(size).unwrap_or_default(), 0);
        content.read_exact_at(&mut part, start)?;
        if manifest.check_part(number, &part).is_err() {
            missing.push(number);
        }
    }
    Ok(missing)
}

fn not_offered(name: &str) -> ServiceError {
    let message = format!("the file \"{name}\" was not declared for this run");
    ServiceError::new(ProblemCode::FileNotFound, message)
}

fn unwritable(error: &io::Error) -> ServiceError {
    let next = match error.kind() {
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => {
            ": free space on its disk, and repeat the command"
        }
        _ => "",
    };
    let message = format!("the machine cannot keep the file: {error}{next}");
    ServiceError::new(ProblemCode::Internal, message)
}

/// Returns the limit of all files together, in bytes.
fn limit() -> Result<u64, ServiceError> {
    match environment::text(SIZE).as_deref() {
        None => Ok(DEFAULT_SIZE),
        Some("off") => Ok(u64::MAX),
        Some(size) => value::size(size).map_err(|error| {
            let message = format!("{SIZE}: {error}; `off` is no limit");
            ServiceError::new(ProblemCode::Internal, message)
        }),
    }
}

#[cfg(test)]
mod tests {
    use teamster_api::PART_BYTES;

    use super::*;

    fn uploads() -> (tempfile::TempDir, Uploads) {
        let root = tempfile::tempdir().unwrap();
        let uploads = Uploads::at(root.path().join("uploads"));
        (root, uploads)
    }

    fn content() -> Vec<u8> {
        (0..2 * PART_BYTES + 5).map(|it| (it % 251) as u8).collect()
    }

    #[test]
    fn upload_is_complete_with_its_last_part() {
        let (_root, uploads) = uploads();
        let content = content();
        let manifest = FileManifest::of("bundle", &content);
        let part = |number: u32| {
            let (start, size) = manifest.range(number).unwrap();
            let (start, size) = (
                usize::try_from(start).unwrap(),
                usize::try_from(size).unwrap(),
            );
            &content[start..start + size]
        };
        uploads.offer("run1", &manifest).unwrap();
        uploads.write_part("run1", "bundle", 2, part(2)).unwrap();
        uploads.write_part("run1", "bundle", 0, part(0)).unwrap();
        let early = uploads.complete("run1", "bundle").unwrap_err();
        assert!(early.message.contains("1 of 3 parts"), "{early}");
        uploads.write_part("run1", "bundle", 1, part(1)).unwrap();
        let path = uploads.complete("run1", "bundle").unwrap();
        assert_eq!(fs::read(path).unwrap(), content);
        uploads.remove("run1");
        let gone = uploads.complete("run1", "bundle").unwrap_err();
        assert_eq!(gone.code, Some(ProblemCode::FileNotFound));
    }

    #[test]
    fn invalid_upload_is_refused() {
        let (_root, uploads) = uploads();
        let manifest = FileManifest::of("bundle", b"x");
        let code = |result: Result<(), ServiceError>| result.unwrap_err().code;
        for id in ["", "../x", "a/b", "run.1"] {
            let refused = uploads.offer(id, &manifest).map(drop);
            assert_eq!(code(refused), Some(ProblemCode::InvalidParams), "{id}");
        }
        // The limit is that of all uploads together.
        uploads.offer("run1", &manifest).unwrap();
        let mut huge = FileManifest::of("huge", b"");
        huge.bytes = DEFAULT_SIZE;
        huge.parts = vec!["0".repeat(64); (DEFAULT_SIZE / PART_BYTES) as usize];
        let refused = uploads.offer("run2", &huge).map(drop);
        assert_eq!(code(refused), Some(ProblemCode::OverQuota));
    }

    #[test]
    fn files_that_are_declared_at_the_same_time_share_the_limit() {
        let (_root, uploads) = uploads();
        let mut large = FileManifest::of("large", b"");
        large.bytes = DEFAULT_SIZE / 2 + 1;
        let parts = usize::try_from(large.bytes.div_ceil(PART_BYTES)).unwrap();
        large.parts = vec!["0".repeat(64); parts];
        let runs: Vec<_> = (0..8).map(|number| format!("run{number}")).collect();
        let begin = std::sync::Barrier::new(runs.len());
        let taken = std::thread::scope(|scope| {
            let offers = runs.iter().map(|run| {
                scope.spawn(|| {
                    begin.wait();
                    uploads.offer(run, &large)
                })
            });
            let offers: Vec<_> = offers.collect();
            let offers = offers.into_iter().map(|it| it.join().unwrap());
            offers.flatten().count()
        });
        assert_eq!(taken, 1);
        // A refused one leaves nothing.
        assert_eq!(entries(&uploads.root).count(), 1);
    }

    #[test]
    fn files_of_runs_that_were_not_started_are_removed_after_a_day() {
        let (_root, uploads) = uploads();
        let manifest = FileManifest::of("bundle", b"x");
        uploads.offer("run1", &manifest).unwrap();
        uploads.sweep(SystemTime::now() + KEPT - Duration::from_mins(1));
        assert_eq!(uploads.bytes_besides(Path::new("")), 1);
        uploads.sweep(SystemTime::now() + KEPT + Duration::from_mins(1));
        assert_eq!(uploads.bytes_besides(Path::new("")), 0);
    }
}
