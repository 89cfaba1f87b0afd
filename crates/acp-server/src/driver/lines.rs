//! The lines of an editor's connection.

use std::io;

use tokio::io::{
    AsyncBufRead, AsyncBufReadExt, AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt, BufReader,
};
use tokio::sync::mpsc;
use tokio::task::JoinHandle;

/// Maximum length of a line from the editor, in bytes. Prompts may contain images.
const MAX_LINE: u64 = 64 << 20;
const QUEUE_CAPACITY: usize = 8;

/// A line from the editor; an error if it was too long.
pub(super) type Line = Result<Vec<u8>, ()>;

/// Starts a task that reads lines to the end.
pub(super) fn read<R>(reader: R) -> (mpsc::Receiver<Line>, JoinHandle<()>)
where
    R: AsyncRead + Send + Unpin + 'static,
{
    let (sender, lines) = mpsc::channel(QUEUE_CAPACITY);
    let task = tokio::spawn(async move {
        let mut reader = BufReader::new(reader);
        // An input that cannot be read has ended.
        while let Ok(Some(line)) = next(&mut reader, MAX_LINE).await {
            if sender.send(line).await.is_err() {
                return;
            }
        }
    });
    (lines, task)
}

/// Reads a line of at most `max` bytes. The rest of a longer one is skipped.
async fn next<R: AsyncBufRead + Unpin>(reader: &mut R, max: u64) -> io::Result<Option<Line>> {
    let mut line = Vec::new();
    let read = (&mut *reader)
        .take(max)
        .read_until(b'\n', &mut line)
        .await?;
    if read == 0 {
        return Ok(None);
    }
    if line.ends_with(b"\n") || (line.len() as u64) < max {
        return Ok(Some(Ok(line)));
    }
    loop {
        let rest = reader.fill_buf().await?;
        let end = rest.iter().position(|byte| *byte == b'\n');
        let length = end.map_or(rest.len(), |end| end + 1);
        reader.consume(length);
        if end.is_some() || length == 0 {
            return Ok(Some(Err(())));
        }
    }
}

/// Starts a task that writes lines until the queue is closed.
pub(super) fn write<W>(mut writer: W) -> (mpsc::Sender<Vec<u8>>, JoinHandle<()>)
where
    W: AsyncWrite + Send + Unpin + 'static,
{
    let (sender, mut lines) = mpsc::channel::<Vec<u8>>(QUEUE_CAPACITY);
    let task = tokio::spawn(async move {
        while let Some(line) = lines.recv().await {
            let written = async {
                writer.write_all(&line).await?;
                writer.flush().await
            };
            if written.await.is_err() {
                return;
            }
        }
    });
    (sender, task)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_line_that_is_too_long_is_skipped_to_its_end() {
        let mut reader = BufReader::with_capacity(3, &b"1234567890\nabc\nlast"[..]);
        let mut lines = Vec::new();
        while let Some(line) = next(&mut reader, 6).await.unwrap() {
            lines.push(line);
        }
        let line = |text: &str| Ok(text.as_bytes().to_vec());
        assert_eq!(lines, [Err(()), line("abc\n"), line("last")]);
    }
}
