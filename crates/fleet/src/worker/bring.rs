//! Files that a run takes along and brings back.

use teamster_api::{BUNDLE, DiffQuery, PATCH, ProblemCode, ServiceError};

use super::Shared;
use super::outside::Outside;
use crate::files::{FileWriter, Files};
use crate::large::{LOG, Packer};
use crate::names::RunKey;
use crate::protocol::Tag;
use crate::records::next;
use crate::runs::DIFF;

/// Gives the uploads of a run to this machine. Those that are not complete leave nothing there.
pub(super) async fn uploads(shared: &Shared, key: &RunKey) -> Result<(), ServiceError> {
    let brought = bring_uploads(shared, key).await;
    if let Err(error) = &brought
        && !error.retryable
    {
        // What was declared counts for a day for the limit that all owners share.
        let _ = shared.runs.withdraw(&key.local()).await;
    }
    brought
}

async fn bring_uploads(shared: &Shared, key: &RunKey) -> Result<(), ServiceError> {
    let run = key.local();
    for manifest in shared.fleet.manifests(key, Files::Uploads).await? {
        let name = manifest.name.clone();
        for number in shared.runs.offer(&run, manifest).await? {
            let part = shared.fleet.upload_part(key, &name, number).await?;
            shared.runs.write_part(&run, &name, number, part).await?;
        }
    }
    Ok(())
}

/// Brings the changes and the files of an ended run to the fleet, before its end is known there. Those are skipped that an
/// earlier process of the worker has brought for this claim: an ended run changes no more, and the room for them may be gone.
pub(super) async fn results(shared: &Shared, key: &RunKey, nonce: Tag) -> Result<(), ServiceError> {
    let files = Files::Results(nonce);
    let run = &key.local();
    if !is_there(shared, key, files, DIFF).await? {
        match shared.runs.diff(run, DiffQuery::default()).await {
            // A new directory has nothing that its content could be compared with, whether it is still there or not.
            Ok(diff) if diff.base.is_empty() => {}
            Ok(diff) => {
                let json = serde_json::to_vec(&diff).unwrap_or_default();
                shared.fleet.put_file(key, files, DIFF, &json).await?;
            }
            Err(error) if is_none(&error) => {}
            Err(error) => return Err(error),
        }
    }
    let list = match shared.runs.files(run).await {
        Ok(list) => list.files,
        Err(error) if is_none(&error) => Vec::new(),
        Err(error) => return Err(error),
    };
    for file in list {
        if !is_there(shared, key, files, &file.name).await? {
            bring_file(shared, key, files, &file.name).await?;
        }
    }
    // Last: if there is no room for it, the copy of the log is left.
    if is_there(shared, key, files, LOG).await? {
        return Ok(());
    }
    log(shared, key, files).await
}

/// Returns whether a file of this claim is complete in the fleet.
async fn is_there(
    shared: &Shared,
    key: &RunKey,
    files: Files,
    name: &str,
) -> Result<bool, ServiceError> {
    let file = shared.fleet.file_at(key, files, name).await?;
    Ok(file.is_some())
}

/// Brings the whole log, which is complete on this machine, block by block.
async fn log(shared: &Shared, key: &RunKey, files: Files) -> Result<(), ServiceError> {
    let mut lines = shared.runs.follow(&key.local(), 0);
    let outside = Outside::of(key);
    let mut file = FileWriter::new(&shared.fleet, key, files, LOG);
    let mut packer = Packer::default();
    while let Some(line) = next(&mut lines).await {
        if let Some(block) = packer.add(&outside.line(line?)) {
            file.add(&block).await?;
        }
    }
    if let Some(block) = packer.pack() {
        file.add(&block).await?;
    }
    file.finish().await
}

/// Brings one file, part by part.
async fn bring_file(
    shared: &Shared,
    key: &RunKey,
    files: Files,
    name: &str,
) -> Result<(), ServiceError> {
    let run = &key.local();
    let manifest = shared.runs.manifest(run, name).await?;
    let mut file = FileWriter::new(&shared.fleet, key, files, name);
    for number in 0..u32::try_from(manifest.parts.len()).unwrap_or(u32::MAX) {
        let mut part = shared.runs.read_part(run, name, number).await?;
        if number == 0 && name == BUNDLE {
            part = Outside::of(key).bundle(&part);
        }
        file.add(&part).await?;
    }
    file.finish().await
}

/// Removes the changes of a run from the fleet. Its collected files stay.
pub(super) async fn forget_changes(shared: &Shared, key: &RunKey) -> Result<(), ServiceError> {
    for name in [DIFF, PATCH, BUNDLE] {
        shared.fleet.forget_result(key, name).await?;
    }
    Ok(())
}

/// Returns whether the run has none.
fn is_none(error: &ServiceError) -> bool {
    matches!(
        error.code,
        Some(ProblemCode::NoWorkspace | ProblemCode::FileNotFound | ProblemCode::RunNotFound)
    )
}
