//! What every target may ask of what came of its bytes.

use serde::Serialize;
use serde::de::DeserializeOwned;
use teamster_testkit::replay::Replay;

/// Bytes of events for a byte of output, and beside it. An event has what its line has and its own names; the end of a
/// run has its text, and a line that is repeated as a notice is escaped.
const EVENTS_FOR_A_BYTE: usize = 64;
const EVENTS_BESIDE: usize = 16 << 10;

/// Length to which some inputs are repeated, in bytes: what takes more than linear time does not end in time then.
const LONG: usize = 512 << 10;

/// Checks a stream: its grammar, that each event is read back from its JSON, and that it is not out of proportion to the
/// output.
pub fn check_stream(replay: &Replay, output: &[u8]) {
    if let Err(violation) = &replay.grammar {
        panic!("{violation}");
    }
    if let Err(problem) = replay.read_back() {
        panic!("{problem}");
    }
    let written: usize = replay.events.iter().map(|event| json(event).len()).sum();
    let limit = output.len() * EVENTS_FOR_A_BYTE + EVENTS_BESIDE;
    assert!(
        written <= limit,
        "{} bytes became {written} bytes of events",
        output.len()
    );
}

/// Returns the data, or one in 256 times so many copies of it that they are long. libFuzzer stops what hangs.
pub fn maybe_long(data: &[u8]) -> Vec<u8> {
    if hash(data) % 256 != 0 || data.is_empty() {
        return data.to_vec();
    }
    let mut line = data.to_vec();
    line.push(b'\n');
    line.repeat(LONG.div_ceil(line.len()))
}

/// Returns pieces of the data whose lengths depend on it.
pub fn pieces(data: &[u8]) -> Vec<&[u8]> {
    let mut state = hash(data);
    let (mut rest, mut pieces) = (data, Vec::new());
    while !rest.is_empty() {
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1);
        let length = usize::try_from(state >> 58)
            .unwrap_or(1)
            .clamp(1, rest.len());
        let (piece, after) = rest.split_at(length);
        pieces.push(piece);
        rest = after;
    }
    pieces
}

/// Returns a number that is the same for the same data (FNV-1a).
pub fn hash(data: &[u8]) -> u64 {
    data.iter().fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3)
    })
}

pub fn json(value: &impl Serialize) -> String {
    serde_json::to_string(value).unwrap_or_else(|error| panic!("cannot be written: {error}"))
}

/// Checks that a value that was read is written as one that is read as the same.
pub fn check_read_back<T: Serialize + DeserializeOwned + PartialEq>(value: &T) {
    let written = json(value);
    let read: T = serde_json::from_str(&written)
        .unwrap_or_else(|error| panic!("{written} is not read back: {error}"));
    assert!(read == *value, "{written} is read back as {}", json(&read));
}
