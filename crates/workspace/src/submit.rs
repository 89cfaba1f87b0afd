//! Submitting a repository: to a service of runs, which may be that of another machine.

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::sync::Arc;

use teamster_api::{
    BUNDLE, FileManifest, INCLUDED, ProblemCode, RunService, ServiceError, Workspace,
};
use teamster_core::AgentError;
use tokio::task::{JoinSet, spawn_blocking};

use crate::Source;

/// Number of parts that are sent at a time.
const AT_ONCE: usize = 4;
/// Limit of the size of all files that are not committed, in bytes.
const UNCOMMITTED: u64 = 1 << 30;

/// A repository that was submitted.
#[derive(Debug)]
#[non_exhaustive]
pub struct Submitted {
    /// The agent's workspace, for the spec of the run.
    pub workspace: Workspace,
    /// Number of files that are not committed, which the agent sees too.
    pub uncommitted: usize,
    /// Number of files that git ignores and `.worktreeinclude` names, which the agent sees too.
    pub included: usize,
    /// Number of bytes that were sent.
    pub sent: u64,
    /// Warnings, such as of what was left out.
    pub warnings: Vec<String>,
}

/// Progress of a submission.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Progress {
    /// git packs what the machine does not have.
    Packing,
    /// So many bytes of a file are there.
    #[non_exhaustive]
    Sending {
        /// Bytes that are there.
        sent: u64,
        /// Size of the file, in bytes.
        total: u64,
    },
}

/// Submits the repository that contains `directory`, for the run with this id, which is started next with the returned
/// workspace. The machine gets the commits that it does not have, and the files that are not committed.
///
/// Repeating it with the same id continues where an earlier call broke off. What the service refuses is withdrawn.
///
/// # Errors
///
/// Fails if there is no repository that can be submitted (the parameter is `repo`), or as
/// [`RunService::offer`] and [`RunService::write_part`] do. The repository is unchanged in any case.
pub async fn submit(
    service: &Arc<dyn RunService>,
    id: &str,
    directory: &Path,
    progress: &(dyn Fn(Progress) + Sync),
) -> Result<Submitted, ServiceError> {
    // Removed at the end.
    let folder = tempfile::tempdir().map_err(|error| local(&error.into()))?;
    progress(Progress::Packing);
    let (directory, inside) = (directory.to_owned(), folder.path().to_owned());
    let (source, taken) = blocking(move || {
        let source = Source::find(&directory)?;
        source.check_uncommitted(UNCOMMITTED)?;
        let taken = source.take(&inside)?;
        Ok((source, taken))
    })
    .await?;
    let known = service.known_commits(source.root(), taken.offers.clone());
    let known = known.await?;
    let (taken, files) = blocking(move || {
        let mut taken = taken;
        let bundle = taken.pack(&known)?;
        let bundle = bundle.as_deref().map(|it| BundleFile::open(BUNDLE, it));
        let included = taken.included.as_ref();
        let included = included.map(|it| BundleFile::open(INCLUDED, &it.bundle));
        let files: Result<Vec<_>, _> = bundle.into_iter().chain(included).collect();
        Ok((taken, files?))
    })
    .await?;
    let mut sent = 0;
    for file in &files {
        match send(service, id, file, progress).await {
            Ok(bytes) => sent += bytes,
            Err(error) => {
                give_up(service, id, &error).await;
                return Err(error);
            }
        }
    }
    let included = taken.included.as_ref();
    Ok(Submitted {
        workspace: source.workspace(taken.base, included),
        uncommitted: taken.uncommitted,
        included: included.map_or(0, |it| it.files),
        sent,
        warnings: taken.warnings,
    })
}

/// Withdraws what was submitted for the run with this id, after an error that is final: the upload, or the start of the run,
/// was refused. After a break of the connection it stays, as the same call can be repeated.
pub async fn give_up(service: &Arc<dyn RunService>, id: &str, error: &ServiceError) {
    let is_final = error.code.is_some_and(|code| {
        !error.retryable && !matches!(code, ProblemCode::Internal | ProblemCode::RunExists)
    });
    if is_final {
        // What cannot be withdrawn is removed after a day.
        let _ = service.withdraw(id).await;
    }
}

/// A bundle with its hashes.
struct BundleFile {
    file: Arc<File>,
    manifest: FileManifest,
}

impl BundleFile {
    fn open(name: &str, path: &Path) -> anyhow::Result<Self> {
        let file = File::open(path)?;
        Ok(Self {
            manifest: FileManifest::read(name, &file)?,
            file: Arc::new(file),
        })
    }
}

/// Sends the parts that are missing. Returns the number of bytes.
async fn send(
    service: &Arc<dyn RunService>,
    id: &str,
    file: &BundleFile,
    progress: &(dyn Fn(Progress) + Sync),
) -> Result<u64, ServiceError> {
    let manifest = &file.manifest;
    let size = |number: u32| manifest.range(number).map_or(0, |(_, size)| size);
    let missing = service.offer(id, manifest.clone()).await?;
    let to_send: u64 = missing.iter().map(|number| size(*number)).sum();
    let total = manifest.bytes;
    let mut sent = total - to_send;
    progress(Progress::Sending { sent, total });
    let mut under_way = JoinSet::new();
    let mut missing = missing.into_iter();
    loop {
        // The others are dropped with the first error.
        while under_way.len() < AT_ONCE
            && let Some(number) = missing.next()
        {
            let (service, id, file) = (service.clone(), id.to_owned(), file.file.clone());
            let name = manifest.name.clone();
            let (start, size) = manifest.range(number).unwrap_or_default();
            under_way.spawn(async move {
                let part = blocking(move || {
                    let mut part = vec![0; usize::try_from(size)?];
                    file.read_exact_at(&mut part, start)?;
                    Ok(part)
                });
                let part = part.await?;
                service.write_part(&id, &name, number, part).await?;
                Ok::<_, ServiceError>(size)
            });
        }
        let Some(done) = under_way.join_next().await else {
            break;
        };
        sent += done.map_err(|error| local(&error.into()))??;
        progress(Progress::Sending { sent, total });
    }
    Ok(to_send)
}

/// Runs work with git or a file.
async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> anyhow::Result<T> + Send + 'static,
) -> Result<T, ServiceError> {
    match spawn_blocking(work).await {
        Ok(done) => done.map_err(|error| local(&error)),
        Err(error) => Err(local(&error.into())),
    }
}

/// Returns the error of this machine.
fn local(error: &anyhow::Error) -> ServiceError {
    AgentError::refused("repo", format!("{error:#}")).into()
}
