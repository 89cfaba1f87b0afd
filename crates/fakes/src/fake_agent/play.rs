//! Playback of a recorded file.

use std::fs::File;
use std::io::{BufRead, BufReader};
use std::time::Duration;

use super::run::{PIECE, Runner};
use super::write::Play;
use super::{Flow, Stop};

const GARBAGE: &[u8] = b"this line is not JSON\n";

pub(super) fn play(runner: &Runner, play: &Play) -> Flow {
    let failed = |error| Stop::failed(format_args!("cannot play {}", play.file.display()), error);
    let mut file = BufReader::with_capacity(PIECE, File::open(&play.file).map_err(failed)?);
    let delay = Duration::from_millis(play.delay_ms);
    let emit = |bytes: &[u8]| {
        runner.sink(play.to).write(bytes)?;
        if delay.is_zero() {
            Ok(())
        } else {
            runner.pause(delay)
        }
    };

    let mut line = Vec::new();
    let mut pending = Vec::new();
    let mut played = 0_u64;
    for number in 1..=play.last.unwrap_or(u64::MAX) {
        line.clear();
        if file.read_until(b'\n', &mut line).map_err(failed)? == 0 {
            break;
        }
        if play.first.is_some_and(|first| number < first) {
            continue;
        }
        // Written before a line, so that it never follows a last line without a newline.
        if play
            .garbage_every
            .is_some_and(|every| played > 0 && played % every == 0)
        {
            pending.extend_from_slice(GARBAGE);
        }
        played += 1;
        pending.extend_from_slice(&line);

        if let Some(chunk) = play.chunk {
            let chunks = pending.chunks_exact(chunk.get());
            let rest = chunks.remainder().to_vec();
            for piece in chunks {
                emit(piece)?;
            }
            pending = rest;
        } else if !delay.is_zero() || pending.len() >= PIECE {
            emit(&pending)?;
            pending.clear();
        }
    }
    if pending.is_empty() {
        Ok(())
    } else {
        emit(&pending)
    }
}
