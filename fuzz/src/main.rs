//! Coverage-guided tests of what reads the output of others: CLIs, editors, services, files of users and logs.
//!
//! One program has all targets, so that it is linked once: the variable `TEAMSTER_FUZZ` names the target, and `list`
//! prints all of them with their seeds. `.ci/fuzz` builds and runs it.
//!
//! A target is a function that takes bytes and panics if what came of them is not as it must be.
#![no_main]

mod harness;
mod targets;

use std::sync::LazyLock;

use libfuzzer_sys::{fuzz_mutator, fuzz_target, fuzzer_mutate};
use teamster_testkit::mutate::Mutator;

use targets::Target;

static TARGET: LazyLock<Target> = LazyLock::new(|| {
    let name = std::env::var("TEAMSTER_FUZZ").unwrap_or_default();
    let mut targets = targets::all();
    if name == "list" {
        for target in targets {
            println!("{}\t{}", target.name, target.seeds.join("\t"));
        }
        std::process::exit(0);
    }
    let found = targets.iter().position(|target| target.name == name);
    let Some(found) = found else {
        eprintln!("TEAMSTER_FUZZ={name:?} is no target: set it to `list` for all of them");
        std::process::exit(2);
    };
    targets.swap_remove(found)
});

fuzz_target!(init: { LazyLock::force(&TARGET); }, |data: &[u8]| {
    (TARGET.run)(data);
});

// Half of the changes are those of text that is JSON lines, which flipped bytes seldom reach.
fuzz_mutator!(|data: &mut [u8], size: usize, max_size: usize, seed: u32| {
    if seed % 2 == 0 {
        return fuzzer_mutate(data, size, max_size);
    }
    let mut changed = Mutator::new(u64::from(seed)).change(&data[..size]);
    changed.truncate(max_size.min(data.len()));
    data[..changed.len()].copy_from_slice(&changed);
    changed.len()
});
