//! Files that a run takes along and brings back.

use teamster_api::{BUNDLE, DiffQuery, FileHasher, PATCH, ProblemCode, ServiceError};

use super::Shared;
use super::outside::Outside;
use crate::files::RESULTS;
use crate::large::{LOG, Packer};
use crate::names::RunKey;
use crate::records::next;
use crate::runs::DIFF;

/// Gives the uploads of a run to this machine.
pub(super) async fn uploads(shared: &Shared, key: &RunKey) -> Result<(), ServiceError> {
    let run = key.local();
    for manifest in shared.fleet.uploads(key).await? {
        let name = manifest.name.clone();
        for number in shared.runs.offer(&run, manifest).await? {
            let part = shared.fleet.upload_part(key, &name, number).await?;
            shared.runs.write_part(&run, &name, number, part).await?;
        }
    }
    Ok(())
}

/// Brings the changes and the files of an ended run to the fleet, before its end is known there.
pub(super) async fn results(shared: &Shared, key: &RunKey) -> Result<(), ServiceError> {
    let run = &key.local();
    match shared.runs.diff(run, DiffQuery::default()).await {
        Ok(diff) => {
            let json = serde_json::to_vec(&diff).unwrap_or_default();
            shared.fleet.put_file(key, RESULTS, DIFF, &json).await?;
        }
        Err(error) if is_none(&error) => {}
        Err(error) => return Err(error),
    }
    let files = match shared.runs.files(run).await {
        Ok(list) => list.files,
        Err(error) if is_none(&error) => Vec::new(),
        Err(error) => return Err(error),
    };
    for file in files {
        bring_file(shared, key, &file.name).await?;
    }
    // Last: if there is no room for it, the copy of the log is left.
    log(shared, key).await
}

/// Brings the whole log, which is complete on this machine.
async fn log(shared: &Shared, key: &RunKey) -> Result<(), ServiceError> {
    let mut lines = shared.runs.follow(&key.local(), 0);
    let outside = Outside::of(key);
    let mut packer = Packer::default();
    while let Some(line) = next(&mut lines).await {
        packer.add(&outside.line(line?));
    }
    let packed = packer.finish();
    shared.fleet.put_file(key, RESULTS, LOG, &packed).await
}

/// Brings one file, part by part.
async fn bring_file(shared: &Shared, key: &RunKey, name: &str) -> Result<(), ServiceError> {
    let run = &key.local();
    let manifest = shared.runs.manifest(run, name).await?;
    let size = usize::try_from(manifest.part_bytes).unwrap_or(usize::MAX);
    let mut hasher = FileHasher::new(name);
    let mut content = Vec::new();
    let mut parts = 0..u32::MAX;
    let mut put = async |part: Vec<u8>| {
        hasher.update(&part);
        let number = parts.next().unwrap_or(u32::MAX);
        shared.fleet.put_result(key, name, number, part).await
    };
    for number in 0..u32::try_from(manifest.parts.len()).unwrap_or(u32::MAX) {
        let part = shared.runs.read_part(run, name, number).await?;
        if number == 0 && name == BUNDLE {
            content = Outside::of(key).bundle(&part);
        } else {
            content.extend(part);
        }
        while content.len() >= size {
            let rest = content.split_off(size);
            put(std::mem::replace(&mut content, rest)).await?;
        }
    }
    if !content.is_empty() {
        put(content).await?;
    }
    let manifest = hasher.finish();
    shared.fleet.put_result_manifest(key, &manifest).await
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
