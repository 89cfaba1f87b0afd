//! What is too large for a message or outlives the copy of the log: descriptions and whole logs, as files in parts.

use std::io::{self, BufRead, BufReader, Read};
use std::thread;

use async_stream::try_stream;
use bytes::Bytes;
use futures_core::stream::BoxStream;
use ruzstd::decoding::StreamingDecoder;
use ruzstd::encoding::{CompressionLevel, compress_to_vec};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use teamster_api::{LogLine, ProblemCode, ServiceError, Spec};
use teamster_core::text::excerpt;
use tokio::sync::{mpsc, oneshot};
use tokio::task::JoinError;

use crate::Fleet;
use crate::files::Files;
use crate::names::RunKey;
use crate::record::Record;

/// Largest description that is in a record, in bytes of JSON: a message has at most 1 MiB, and a result joins it.
const IN_RECORD: usize = 700 * 1024;
/// Largest description, in bytes of JSON.
const LARGEST: usize = 64 << 20;
/// The version of a record whose description is a file.
pub(crate) const IN_FILE: u32 = Spec::VERSION + 1;
/// Name of the file of a description. It is none that a run's file can have.
const SPEC: &str = "./spec";
/// Name of the file of a whole log.
pub(crate) const LOG: &str = "./log";
/// Largest entry of a log, in bytes with its newline: more than any that an agent can write.
const ENTRY: u64 = 1 << 29;
/// Size at which a block of a log is compressed, in bytes of its entries.
const BLOCK: usize = 4 << 20;

/// Returns whether a file is one of the fleet itself.
pub(crate) fn is_internal(name: &str) -> bool {
    name.starts_with("./")
}

/// The file of a description, among those of its run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct SpecFile {
    pub(crate) sha256: String,
}

impl Record {
    /// Leaves a large description out. Returns it, for the file of the run that has it.
    pub(crate) fn split(&mut self) -> Result<Option<Vec<u8>>, ServiceError> {
        let json = serde_json::to_vec(&self.spec).unwrap_or_default();
        if json.len() <= IN_RECORD {
            return Ok(None);
        }
        if json.len() > LARGEST {
            let message = format!(
                "the run's description has {} bytes, and {LARGEST} are the most: put long texts and images into files",
                json.len()
            );
            return Err(ServiceError::new(ProblemCode::BodyTooLarge, message));
        }
        self.version = IN_FILE;
        self.spec_file = Some(SpecFile {
            sha256: digest(&json),
        });
        shorten(&mut self.spec);
        Ok(Some(json))
    }

    /// Returns whether this is the run's whole description.
    pub(crate) fn has_description(&self, spec: &Spec) -> bool {
        let Ok(spec) = serde_json::to_value(spec) else {
            return false;
        };
        match &self.spec_file {
            Some(file) => serde_json::to_vec(&spec).is_ok_and(|json| digest(&json) == file.sha256),
            None => spec == self.spec,
        }
    }
}

fn digest(json: &[u8]) -> String {
    use sha2::{Digest, Sha256};

    format!("{:x}", Sha256::digest(json))
}

/// Leaves out what makes a description large. What remains is shown, and not carried out.
fn shorten(spec: &mut Value) {
    const LONGEST: usize = 1000;
    let fields = spec.as_object_mut().into_iter();
    let fields = fields.flat_map(|kinds| kinds.values_mut());
    for fields in fields.filter_map(Value::as_object_mut) {
        fields.remove("images");
        fields.remove("outputSchema");
        for field in fields.values_mut() {
            match field {
                Value::String(text) if text.len() > LONGEST => *text = excerpt(text, LONGEST),
                Value::Array(all) if all.len() > LONGEST => all.clear(),
                _ => {}
            }
        }
    }
}

impl Fleet {
    /// Keeps a description that is too large for a record.
    pub(crate) async fn put_spec(&self, key: &RunKey, json: &[u8]) -> Result<(), ServiceError> {
        // Not over that of another run with the same id, which may be waiting.
        let name = format!("{SPEC}-{}", digest(json));
        self.put_file(key, Files::Uploads, &name, json).await
    }

    /// Returns the whole description of a run.
    pub(crate) async fn spec_of(
        &self,
        key: &RunKey,
        record: &Record,
    ) -> Result<Spec, ServiceError> {
        let Some(file) = &record.spec_file else {
            return record.spec();
        };
        let json = self.spec_json(key, file).await?;
        let mut whole = record.clone();
        whole.spec =
            serde_json::from_slice(&json).map_err(|error| crate::wire::internal(&error))?;
        whole.spec()
    }

    /// Gives the description of a run to another one, which is to last longer.
    pub(crate) async fn copy_spec(
        &self,
        from: &RunKey,
        to: &RunKey,
        file: &SpecFile,
    ) -> Result<(), ServiceError> {
        let json = self.spec_json(from, file).await?;
        self.put_spec(to, &json).await
    }

    async fn spec_json(&self, key: &RunKey, file: &SpecFile) -> Result<Vec<u8>, ServiceError> {
        let name = format!("{SPEC}-{}", file.sha256);
        let json = self.get_file(key, Files::Uploads, &name, LARGEST);
        let json = json.await?.filter(|json| digest(json) == file.sha256);
        json.ok_or_else(|| {
            let message = format!(
                "the description of run {} is not in the fleet any more: submit it again",
                key.run
            );
            ServiceError::new(ProblemCode::FileNotFound, message)
        })
    }

    /// Returns the entries of an ended run's whole log, one after the other; none if it is not kept.
    pub(crate) fn whole_log(
        &self,
        key: &RunKey,
        files: Files,
    ) -> BoxStream<'static, Result<LogLine, ServiceError>> {
        let (fleet, key) = (self.clone(), key.clone());
        Box::pin(try_stream! {
            let Some((location, manifest)) = fleet.file_at(&key, files, LOG).await? else {
                return;
            };
            let (send, parts) = mpsc::channel(1);
            let (found, mut lines) = mpsc::channel(1);
            let run = key.run.clone();
            // It reads as a file is read. It ends when nothing takes its lines, or no part comes.
            let unpacked = on_thread(&run.clone(), move || unpack(&mut Parts::new(parts), &run, ENTRY, |line| {
                found.blocking_send(line).is_ok()
            }))?;
            let fetched = tokio::spawn(async move {
                for number in 0..u32::try_from(manifest.parts.len()).unwrap_or(u32::MAX) {
                    let part = fleet.checked_part(&location, &manifest, number).await?;
                    if send.send(part).await.is_err() {
                        break;
                    }
                }
                Ok::<_, ServiceError>(())
            });
            while let Some(line) = lines.recv().await {
                yield line;
            }
            // First: a log that broke off cannot be unpacked.
            let ended = |error: JoinError| ServiceError::new(ProblemCode::Internal, error.to_string());
            fetched.await.map_err(ended)??;
            unpacked.await?;
        })
    }
}

/// Does work that waits for a reader, on a thread of its own: readers that take nothing would use up those of the runtime,
/// which are for all files.
fn on_thread<W>(
    run: &str,
    work: W,
) -> Result<impl Future<Output = Result<(), ServiceError>> + use<W>, ServiceError>
where
    W: FnOnce() -> Result<(), ServiceError> + Send + 'static,
{
    let (send, ended) = oneshot::channel();
    let spawned = thread::Builder::new().name("log".to_owned());
    let spawned = spawned.spawn(move || {
        // Nothing may wait for it any more.
        let _ = send.send(work());
    });
    spawned.map_err(|error| {
        ServiceError::unreachable(format!("a log cannot be unpacked now: {error}"))
    })?;
    // Its owner can write the file: what it does to the decoder is the same the next time.
    let message = format!("the log of run {run} cannot be unpacked: it is damaged");
    let failed = ServiceError::new(ProblemCode::Internal, message);
    Ok(async move { ended.await.unwrap_or(Err(failed)) })
}

/// The parts of a file as one text.
struct Parts {
    parts: mpsc::Receiver<Bytes>,
    part: Bytes,
}

impl Parts {
    fn new(parts: mpsc::Receiver<Bytes>) -> Self {
        Self {
            parts,
            part: Bytes::new(),
        }
    }
}

impl Read for Parts {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        while self.part.is_empty() {
            match self.parts.blocking_recv() {
                Some(part) => self.part = part,
                None => return Ok(0),
            }
        }
        let size = into.len().min(self.part.len());
        into[..size].copy_from_slice(&self.part.split_to(size));
        Ok(size)
    }
}

/// Compresses a log block by block: frames of zstd, one after another, as `zstd -d` reads them.
#[derive(Default)]
pub(crate) struct Packer(Vec<u8>);

impl Packer {
    /// Adds an entry. Returns a block that is full.
    pub(crate) fn add(&mut self, line: &LogLine) -> Option<Vec<u8>> {
        self.0.extend_from_slice(line.json());
        self.0.push(b'\n');
        (self.0.len() >= BLOCK).then(|| self.pack()).flatten()
    }

    /// Returns the last block, if there is something in it.
    pub(crate) fn pack(&mut self) -> Option<Vec<u8>> {
        let block = std::mem::take(&mut self.0);
        (!block.is_empty()).then(|| compress_to_vec(&*block, CompressionLevel::Fastest))
    }
}

/// Reads the entries of a packed log, of at most so many bytes each, until `take` wants no more. Of all that is unpacked,
/// one is in memory.
fn unpack(
    packed: &mut impl Read,
    run: &str,
    most: u64,
    mut take: impl FnMut(LogLine) -> bool,
) -> Result<(), ServiceError> {
    let damaged = |error: &dyn std::fmt::Display| {
        let message = format!("the log of run {run} cannot be unpacked: {error}");
        ServiceError::new(ProblemCode::Internal, message)
    };
    let mut packed = BufReader::new(packed);
    while !packed
        .fill_buf()
        .map_err(|error| damaged(&error))?
        .is_empty()
    {
        let decoder = StreamingDecoder::new(&mut packed).map_err(|error| damaged(&error))?;
        let mut content = BufReader::new(decoder);
        loop {
            let mut line = Vec::new();
            let read = content.by_ref().take(most).read_until(b'\n', &mut line);
            if read.map_err(|error| damaged(&error))? == 0 {
                break;
            }
            if line.pop_if(|byte| *byte == b'\n').is_none() {
                return Err(damaged(&"an entry is too large, or broke off"));
            }
            if let Some(line) = LogLine::from_json(line, run)
                && !take(line)
            {
                return Ok(());
            }
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use teamster_api::RunSpec;

    use super::*;

    #[test]
    fn a_large_description_is_left_out_of_its_record() {
        let small = Spec::from(RunSpec::new("claude", "x".repeat(600 * 1024)));
        assert_eq!(Record::new("default", &small).split().unwrap(), None);
        let mut large = RunSpec::new("claude", "x".repeat(800 * 1024));
        large.model = Some("opus".to_owned());
        large.images = vec![teamster_core::Image::bytes("image/png", vec![7; 1000])];
        let large = Spec::from(large);
        let mut record = Record::new("default", &large);
        let json = record.split().unwrap().unwrap();
        assert!(record.has_description(&large) && !record.has_description(&small));
        assert_eq!(serde_json::from_slice::<Spec>(&json).unwrap(), large);
        assert_eq!(record.version, IN_FILE);
        assert!(serde_json::to_vec(&record).unwrap().len() < 4096);
        let Spec::Run(shown) = record.spec().unwrap() else {
            unreachable!()
        };
        assert_eq!(shown.model.as_deref(), Some("opus"));
        assert!(shown.prompt.len() < 1100 && shown.images.is_empty());
        let huge = Spec::from(RunSpec::new("claude", "x".repeat(LARGEST)));
        let refused = Record::new("default", &huge).split().unwrap_err();
        assert_eq!(refused.code, Some(ProblemCode::BodyTooLarge));
        let again = record.again();
        let mut other = again.clone();
        assert!(again.is_same(&record));
        other.spec_file.as_mut().unwrap().sha256 = "0".repeat(64);
        assert!(!again.is_same(&other));
    }

    #[test]
    fn a_log_that_stops_the_decoder_is_an_error_that_stays() {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .build()
            .unwrap();
        let failed = on_thread("r", || panic!("as a decoder does")).unwrap();
        let failed = runtime.block_on(failed).unwrap_err();
        assert!(!failed.retryable);
        assert_eq!(failed.code, Some(ProblemCode::Internal));
        assert!(failed.message.contains("the log of run r"), "{failed}");
    }

    #[test]
    fn idle_readers_leave_the_threads_of_the_runtime_free() {
        let mut runtime = tokio::runtime::Builder::new_current_thread();
        let runtime = runtime.max_blocking_threads(1).build().unwrap();
        runtime.block_on(async {
            let mut stalled = Vec::new();
            for _ in 0..4 {
                let (send, parts) = mpsc::channel(1);
                let read = on_thread("r", move || {
                    Parts::new(parts).read_to_end(&mut Vec::new()).unwrap();
                    Ok(())
                });
                stalled.push((send, read.unwrap()));
            }
            assert_eq!(tokio::task::spawn_blocking(|| 1).await.unwrap(), 1);
            for (send, read) in stalled {
                drop(send);
                read.await.unwrap();
            }
        });
    }

    #[test]
    fn a_packed_log_is_read_byte_for_byte() {
        let line = |seq: u64, text: &str| {
            let json =
                format!(r#"{{"seq":{seq},"atMs":1,"attempt":1,"type":"text","text":"{text}"}}"#);
            LogLine::from_json(json.into_bytes(), "r").unwrap()
        };
        let lines: Vec<_> = (1..=5).map(|seq| line(seq, &"ä".repeat(1 << 20))).collect();
        let mut packer = Packer::default();
        let mut packed = Vec::new();
        for line in &lines {
            packed.extend(packer.add(line).into_iter().flatten());
        }
        packed.extend(packer.pack().into_iter().flatten());
        let all = |mut packed: &[u8]| {
            let mut found = Vec::new();
            let read = unpack(&mut packed, "r", ENTRY, |line| {
                found.push(line);
                true
            });
            read.map(|()| found)
        };
        assert_eq!(all(&packed).unwrap(), lines);
        assert!(all(&packed[..packed.len() - 3]).is_err());
        assert_eq!(all(&[]).unwrap(), []);
        let mut taken = 0;
        let two = unpack(&mut &*packed, "r", ENTRY, |_| {
            taken += 1;
            taken < 2
        });
        assert!(two.is_ok() && taken == 2);
    }

    #[test]
    fn data_that_unpacks_to_more_than_an_entry_is_refused() {
        let most = 4 << 20;
        let bomb = compress_to_vec(io::repeat(b'x').take(2 * most), CompressionLevel::Fastest);
        assert!(bomb.len() < 1 << 16, "{}", bomb.len());
        let error = unpack(&mut &*bomb, "r", most, |_| true).unwrap_err();
        assert!(error.message.contains("too large"), "{error}");
    }
}
