//! Files of runs as parts of 512 KiB, each a message of its own.
//!
//! A part is complete or not there, so an interrupted transfer continues with those that are missing.

use async_nats::HeaderMap;
use async_nats::jetstream::Message;
use async_nats::jetstream::message::PublishMessage;
use bytes::Bytes;
use sha2::{Digest, Sha256};
use teamster_api::{FileHasher, FileManifest, PART_BYTES, ProblemCode, ServiceError};
use tokio::task::JoinSet;

use crate::Fleet;
use crate::large::is_internal;
use crate::names::{FILE, RunKey};
use crate::protocol::Tag;
use crate::wire::internal;

/// Part of the subjects of files that a run takes along.
const UPLOADS: &str = "u";
/// Part of the subjects of files that a run brings back.
const RESULTS: &str = "r";
/// The header of a manifest with the claim of the run that has brought the file back.
const CLAIM: &str = "Tm-Nonce";
/// The number of parts under way.
const AT_ONCE: usize = 8;
/// Name of a manifest among the parts.
const MANIFEST: &str = "m";

/// The files of a run that are meant.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Files {
    /// Those that it takes along.
    Uploads,
    /// Those that it brings back, with the number of its claim: files outlive records, so an id may have those of an earlier
    /// run.
    Results(Tag),
}

impl Files {
    /// The part of their subjects.
    fn part(self) -> &'static str {
        match self {
            Self::Uploads => UPLOADS,
            Self::Results(_) => RESULTS,
        }
    }

    /// Returns whether a manifest with this header is that of one of them.
    fn have(self, headers: &HeaderMap) -> bool {
        let Self::Results(nonce) = self else {
            return true;
        };
        (headers.get(CLAIM)).is_some_and(|claim| claim.as_str() == nonce.to_string())
    }

    /// The place of a file's parts.
    fn location(self, key: &RunKey, name: &str) -> String {
        location(key, self.part(), name)
    }
}

fn location(key: &RunKey, part: &str, name: &str) -> String {
    // A name may be longer than a subject.
    let digest = format!("{:x}", Sha256::digest(name));
    let digest = &digest[..32];
    format!("{}.{part}.{digest}", key.files())
}

impl Fleet {
    /// Declares a file that a run takes along. Returns the numbers of the missing parts.
    pub(crate) async fn offer_file(
        &self,
        key: &RunKey,
        manifest: FileManifest,
    ) -> Result<Vec<u32>, ServiceError> {
        manifest.check()?;
        let location = Files::Uploads.location(key, &manifest.name);
        let is_known = self.manifest_at(&location, Files::Uploads).await?.is_some();
        self.put_manifest(&location, Files::Uploads, &manifest)
            .await?;
        let mut missing = Vec::new();
        for number in numbers(&manifest) {
            let has_it = is_known
                && self
                    .last(FILE, &format!("{location}.{number}"))
                    .await?
                    .is_some_and(|part| manifest.check_part(number, &part.payload).is_ok());
            if !has_it {
                missing.push(number);
            }
        }
        Ok(missing)
    }

    /// Keeps a part of a file that a run takes along.
    pub(crate) async fn write_file_part(
        &self,
        key: &RunKey,
        name: &str,
        number: u32,
        content: Vec<u8>,
    ) -> Result<(), ServiceError> {
        let location = Files::Uploads.location(key, name);
        let manifest = self.manifest_at(&location, Files::Uploads).await?;
        let manifest = manifest.ok_or_else(|| {
            let message = format!("the file \"{name}\" was not declared for this run");
            ServiceError::new(ProblemCode::FileNotFound, message)
        })?;
        manifest.check_part(number, &content)?;
        self.put_part(&location, number, content).await
    }

    /// Keeps a file whose whole content is here.
    pub(crate) async fn put_file(
        &self,
        key: &RunKey,
        files: Files,
        name: &str,
        content: &[u8],
    ) -> Result<(), ServiceError> {
        let mut file = FileWriter::new(self, key, files, name);
        file.add(content).await?;
        file.finish().await
    }

    /// Returns the manifest of a file, and where its parts are; `None` if there is none.
    pub(crate) async fn file_at(
        &self,
        key: &RunKey,
        files: Files,
        name: &str,
    ) -> Result<Option<(String, FileManifest)>, ServiceError> {
        let location = files.location(key, name);
        let manifest = self.manifest_at(&location, files).await?;
        Ok(manifest.map(|manifest| (location, manifest)))
    }

    /// Reads a part of a file, and checks it.
    pub(crate) async fn checked_part(
        &self,
        location: &str,
        manifest: &FileManifest,
        number: u32,
    ) -> Result<Bytes, ServiceError> {
        let part = self.last(FILE, &format!("{location}.{number}")).await?;
        let part = part.ok_or_else(|| missing_part(&manifest.name, number))?;
        manifest.check_part(number, &part.payload)?;
        Ok(part.payload)
    }

    /// Reads a file of at most so many bytes; `None` if there is none.
    pub(crate) async fn get_file(
        &self,
        key: &RunKey,
        files: Files,
        name: &str,
        most: usize,
    ) -> Result<Option<Vec<u8>>, ServiceError> {
        let Some((location, manifest)) = self.file_at(key, files, name).await? else {
            return Ok(None);
        };
        if manifest.bytes > most as u64 {
            let message = format!(
                "\"{name}\" has {} bytes, and {most} are the most",
                manifest.bytes
            );
            return Err(ServiceError::new(ProblemCode::BodyTooLarge, message));
        }
        let mut content = Vec::new();
        for number in numbers(&manifest) {
            let part = self.checked_part(&location, &manifest, number).await?;
            content.extend_from_slice(&part);
        }
        Ok(Some(content))
    }

    async fn put_part(
        &self,
        location: &str,
        number: u32,
        content: Vec<u8>,
    ) -> Result<(), ServiceError> {
        let message = PublishMessage::build().payload(content.into());
        self.keep(&format!("{location}.{number}"), message).await
    }

    async fn put_manifest(
        &self,
        location: &str,
        files: Files,
        manifest: &FileManifest,
    ) -> Result<(), ServiceError> {
        let json = serde_json::to_vec(manifest).map_err(|error| internal(&error))?;
        let mut message = PublishMessage::build().payload(json.into());
        if let Files::Results(nonce) = files {
            message = message.header(CLAIM, &*nonce.to_string());
        }
        self.keep(&format!("{location}.{MANIFEST}"), message).await
    }

    async fn keep(&self, subject: &str, message: PublishMessage) -> Result<(), ServiceError> {
        let Err(error) = self.try_publish(subject, message).await else {
            return Ok(());
        };
        let error = error.to_string();
        if error.contains("maximum bytes exceeded") {
            let message = "the fleet has no more space for files: delete old runs, or let its operator give it more";
            return Err(ServiceError::new(ProblemCode::OverQuota, message));
        }
        Err(self.refusal(subject).unwrap_or_else(|| {
            let message = format!("the fleet's server has not kept the file: {error}");
            ServiceError::unreachable(message)
        }))
    }

    /// Removes the files that a run would have taken along.
    pub(crate) async fn withdraw_files(&self, key: &RunKey) -> Result<(), ServiceError> {
        self.empty(&format!("{}.{UPLOADS}.>", key.files())).await
    }

    /// Removes a file that a run has brought back.
    pub(crate) async fn forget_result(&self, key: &RunKey, name: &str) -> Result<(), ServiceError> {
        self.empty(&format!("{}.>", location(key, RESULTS, name)))
            .await
    }

    /// Replaces messages by empty ones, which anyone may do who may publish them.
    async fn empty(&self, subjects: &str) -> Result<(), ServiceError> {
        for subject in self.subjects(subjects).await? {
            self.keep(&subject, PublishMessage::build()).await?;
        }
        Ok(())
    }

    /// Returns the subjects that have messages. Not by `STREAM.INFO`: who may use that sees the names of all owners' runs.
    async fn subjects(&self, subjects: &str) -> Result<Vec<String>, ServiceError> {
        let read = |message: &Message| Some(message.subject.to_string());
        self.last_of_each(FILE, subjects, true, read).await
    }

    async fn manifest_at(
        &self,
        location: &str,
        files: Files,
    ) -> Result<Option<FileManifest>, ServiceError> {
        let Some(message) = self.last(FILE, &format!("{location}.{MANIFEST}")).await? else {
            return Ok(None);
        };
        if message.payload.is_empty() || !files.have(&message.headers) {
            return Ok(None);
        }
        let manifest: FileManifest =
            serde_json::from_slice(&message.payload).map_err(|error| internal(&error))?;
        // The owner of the run can write it, too.
        let parts = manifest.bytes.div_ceil(PART_BYTES);
        if manifest.part_bytes != PART_BYTES || manifest.parts.len() as u64 != parts {
            let message = "the number of parts of a file does not fit its size";
            return Err(ServiceError::new(ProblemCode::FileDamaged, message));
        }
        Ok(Some(manifest))
    }

    /// Deletes messages of a stream, which only an operator may do.
    pub(crate) async fn purge(&self, stream: &str, subjects: &str) -> Result<(), ServiceError> {
        let request = format!("STREAM.PURGE.{stream}");
        let handle = self.stream(stream).await?;
        let purged = handle.purge().filter(subjects).into_future();
        let purged = self.unless_refused(&request, purged).await?;
        purged
            .map(drop)
            .map_err(|error| self.failed(&request, error))
    }

    pub(crate) async fn empty_files(&self, key: &RunKey) -> Result<(), ServiceError> {
        self.empty(&format!("{}.>", key.files())).await
    }

    pub(crate) async fn manifests(
        &self,
        key: &RunKey,
        files: Files,
    ) -> Result<Vec<FileManifest>, ServiceError> {
        let subjects = format!("{}.{}.*.{MANIFEST}", key.files(), files.part());
        let mut manifests = Vec::new();
        for subject in self.subjects(&subjects).await? {
            let location = subject.trim_end_matches(&format!(".{MANIFEST}"));
            let manifest = self.manifest_at(location, files).await?;
            manifests.extend(manifest.filter(|manifest| !is_internal(&manifest.name)));
        }
        Ok(manifests)
    }

    /// Reads a part of a file that a run takes along.
    pub(crate) async fn upload_part(
        &self,
        key: &RunKey,
        name: &str,
        number: u32,
    ) -> Result<Vec<u8>, ServiceError> {
        self.part(&location(key, UPLOADS, name), name, number).await
    }

    /// Reads a part of a file that a run has brought back. Its hash is in the manifest, which the caller checks.
    pub(crate) async fn result_part(
        &self,
        key: &RunKey,
        name: &str,
        number: u32,
    ) -> Result<Vec<u8>, ServiceError> {
        self.part(&location(key, RESULTS, name), name, number).await
    }

    async fn part(&self, location: &str, name: &str, number: u32) -> Result<Vec<u8>, ServiceError> {
        let subject = format!("{location}.{number}");
        let part = self.last(FILE, &subject).await?;
        part.map(|part| part.payload.to_vec())
            .ok_or_else(|| missing_part(name, number))
    }
}

fn numbers(manifest: &FileManifest) -> std::ops::Range<u32> {
    0..u32::try_from(manifest.parts.len()).unwrap_or(u32::MAX)
}

/// A file that is kept while its content comes, with some parts under way at once.
pub(crate) struct FileWriter<'a> {
    fleet: &'a Fleet,
    files: Files,
    location: String,
    hasher: FileHasher,
    /// Less than a part.
    content: Vec<u8>,
    number: u32,
    under_way: JoinSet<Result<(), ServiceError>>,
}

impl<'a> FileWriter<'a> {
    pub(crate) fn new(fleet: &'a Fleet, key: &RunKey, files: Files, name: &str) -> Self {
        Self {
            fleet,
            files,
            location: files.location(key, name),
            hasher: FileHasher::new(name),
            content: Vec::new(),
            number: 0,
            under_way: JoinSet::new(),
        }
    }

    pub(crate) async fn add(&mut self, mut content: &[u8]) -> Result<(), ServiceError> {
        self.hasher.update(content);
        let size = usize::try_from(PART_BYTES).unwrap_or(usize::MAX);
        while !content.is_empty() {
            let left = size - self.content.len();
            let (now, later) = content.split_at(left.min(content.len()));
            self.content.extend_from_slice(now);
            content = later;
            if self.content.len() == size {
                self.put().await?;
            }
        }
        Ok(())
    }

    /// Keeps a part as soon as there is room for it.
    async fn put(&mut self) -> Result<(), ServiceError> {
        while self.under_way.len() >= AT_ONCE {
            self.until_kept().await?;
        }
        let (fleet, location) = (self.fleet.clone(), self.location.clone());
        let (number, content) = (self.number, std::mem::take(&mut self.content));
        self.number += 1;
        let put = async move { fleet.put_part(&location, number, content).await };
        self.under_way.spawn(put);
        Ok(())
    }

    /// Waits for one part. Returns `false` if none is under way.
    async fn until_kept(&mut self) -> Result<bool, ServiceError> {
        match self.under_way.join_next().await {
            Some(Ok(put)) => put.map(|()| true),
            Some(Err(error)) => Err(ServiceError::unreachable(error.to_string())),
            None => Ok(false),
        }
    }

    /// Declares that all parts are there.
    pub(crate) async fn finish(mut self) -> Result<(), ServiceError> {
        if !self.content.is_empty() {
            self.put().await?;
        }
        while self.until_kept().await? {}
        let manifest = self.hasher.finish();
        let (fleet, files) = (self.fleet, self.files);
        fleet.put_manifest(&self.location, files, &manifest).await
    }
}

fn missing_part(name: &str, number: u32) -> ServiceError {
    let message = format!("\"{name}\" has no part {number}");
    ServiceError::new(ProblemCode::FileNotFound, message)
}
