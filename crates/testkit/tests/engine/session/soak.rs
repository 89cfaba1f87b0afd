//! Very many turns of one session: what the engine keeps for a turn goes with it.

use std::fs;

use teamster_core::RunStatus;

use crate::engine::session::talker::{prepared, say};

/// Number of turns, unless `cargo xtask soak` sets it.
const TURNS: usize = 100;
/// Share of the turns after which what is there is taken as the beginning: buffers have their size then.
const WARM: usize = 10;
/// Growth of memory from then on, in KiB, that is no leak: of the allocator itself. Measured: 132 KiB in 4500 turns.
const ROOM_KIB: u64 = 2000;

/// Memory, descriptors and threads of a process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Held {
    memory_kib: u64,
    descriptors: usize,
    threads: u64,
}

impl Held {
    fn now() -> Self {
        let status = fs::read_to_string("/proc/self/status").unwrap();
        let figure = |name: &str| {
            let line = status.lines().find_map(|line| line.strip_prefix(name));
            let digits = line
                .unwrap()
                .trim_start_matches(':')
                .split_whitespace()
                .next();
            digits.unwrap().parse().unwrap()
        };
        Self {
            memory_kib: figure("VmRSS"),
            descriptors: fs::read_dir("/proc/self/fd").unwrap().count(),
            threads: figure("Threads"),
        }
    }
}

#[tokio::test]
async fn many_turns_of_a_session_leave_nothing() {
    let asked = std::env::var("TEAMSTER_SOAK_TURNS").ok();
    // With other tests in this process its figures are theirs too.
    let is_alone = asked.is_some();
    let turns = asked.map_or(TURNS, |turns| turns.parse().unwrap());
    let session = prepared().open();
    let process = say(&*session, "pid").await.result.text;
    let mut began = None;
    for turn in 0..turns {
        let prompt = ["pid", "id", "args"][turn % 3];
        let story = say(&*session, prompt).await;
        assert_eq!(story.result.status, RunStatus::Completed, "turn {turn}");
        if prompt == "pid" {
            assert_eq!(story.result.text, process, "another process in turn {turn}");
        }
        if turn == turns / WARM {
            began = Some(Held::now());
        }
    }
    let (began, ended) = (began.unwrap(), Held::now());
    println!(
        "{turns} turns: {began:?} after {}, {ended:?} at the end",
        turns / WARM
    );
    if is_alone {
        let counts = |held: Held| (held.descriptors, held.threads);
        assert_eq!(counts(ended), counts(began));
        let growth = ended.memory_kib.saturating_sub(began.memory_kib);
        assert!(growth < ROOM_KIB, "{growth} KiB of memory more");
    }
    session.close().await;
}
