//! Tests that the changes of a process that is killed at any moment are undone by the next one.

use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use teamster_core::provider::ConfigFormat;
use teamster_mcp_config::lease::disk::Step;
use teamster_mcp_config::lease::{Lease, Released, pending, restore};

use crate::lease::agent::{Agent, Answer};
use crate::lease::support::{WORLDS, World};

/// Actions of the killed process, and of others meanwhile.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Plan {
    /// The process takes a lease and releases it.
    Alone,
    /// As `Alone`, on a file system without hard links.
    Copied,
    /// As `Alone`, while another process holds a lease.
    Beside,
    /// Another process, which was first, releases its lease before.
    Last,
    /// The user edits the file while the process holds the lease.
    Edited,
    /// The user edits the file while the process and another one hold leases.
    EditedBeside,
    /// The user changes the mode of the file while the process holds the lease.
    Mode,
    /// A process was killed at the operation with this number. The next process, which restores the file or takes a
    /// lease, is killed as well.
    Restoring(usize),
}

/// Kills so far.
#[derive(Default)]
struct Tally {
    kills: AtomicUsize,
    steps: Mutex<BTreeSet<String>>,
}

impl Tally {
    fn add(&self, step: String) {
        self.kills.fetch_add(1, Ordering::Relaxed);
        self.steps.lock().unwrap().insert(step);
    }
}

/// Returns an edit of the user's, both for the original and for the content of a lease.
fn edited(text: &str) -> Option<String> {
    [
        ("\"dark\"", "\"light and long\""),
        ("[1, 2,]", "[1, 2, 3] /* x */"),
        ("# the best", "# the worst"),
    ]
    .into_iter()
    .find(|(from, _)| text.contains(from))
    .map(|(from, to)| text.replace(from, to))
}

/// The process that is killed, with the operation at which it died.
struct Victim {
    agent: Agent,
    toml: bool,
    died: Option<String>,
}

impl Victim {
    fn new(world: &World, at: usize, links: bool) -> Self {
        Self {
            agent: Agent::start(at, links),
            toml: world.format == ConfigFormat::Toml,
            died: None,
        }
    }

    fn order(&mut self, what: &str, world: &World) {
        if self.died.is_some() {
            return;
        }
        match self.agent.order(what, &world.file, self.toml, "victim") {
            Answer::Ok(_) => {}
            Answer::Died(step) => self.died = Some(step),
            Answer::Error(error) => panic!("{}: {what}: {error}", world.name),
        }
    }

    fn end(self) -> Option<String> {
        if self.died.is_none() {
            self.agent.end();
        }
        self.died
    }
}

/// Kills a process at one operation and restores everything. Returns the operation, or `None` if the process ended
/// before it.
fn kill_one(name: &'static str, plan: Plan, at: usize) -> Option<String> {
    let world = World::new(name);
    let when = format!("{plan:?}, killed at {at}");
    let users = world.servers();
    let original = world.text();
    let mut first = None;
    let mut expected = original.clone();
    let died = match plan {
        Plan::Restoring(before) => {
            let mut victim = Victim::new(&world, before, true);
            victim.order("acquire", &world);
            victim.order("release", &world);
            victim.end()?;
            let mut victim = Victim::new(&world, at, true);
            if before.is_multiple_of(2) {
                victim.order("restore", &world);
            } else {
                victim.order("acquire", &world);
                victim.order("release", &world);
            }
            victim.end()
        }
        _ => {
            let beside = [Plan::Beside, Plan::Last, Plan::EditedBeside].contains(&plan);
            first = beside.then(|| Lease::acquire(&world.edit(&["first"])).unwrap());
            let mut victim = Victim::new(&world, at, plan != Plan::Copied);
            victim.order("acquire", &world);
            match plan {
                Plan::Last => {
                    first.take().unwrap().release().unwrap();
                }
                Plan::Edited | Plan::EditedBeside => {
                    let text = world.text().as_deref().and_then(edited)?;
                    // Only root can write to a read-only file.
                    fs::write(&world.file, text).ok()?;
                    expected = original.as_deref().and_then(edited);
                }
                Plan::Mode if world.file.exists() => {
                    let mode = fs::Permissions::from_mode(0o620);
                    fs::set_permissions(&world.file, mode).unwrap();
                }
                _ => {}
            }
            victim.order("release", &world);
            victim.end()
        }
    };

    // In every case the file can be parsed and has all of its original content.
    let servers = world.servers();
    assert!(users.iter().all(|user| servers.contains(user)), "{when}");
    if let Some(first) = first {
        assert!(servers.contains(&"first".to_owned()), "{name}: {when}");
        if at.is_multiple_of(2) {
            let next = Lease::acquire(&world.edit(&["next"])).unwrap();
            let there = |server: &str| world.servers().contains(&server.to_owned());
            assert!(there("first") && there("next"), "{name}: {when}");
            assert!(died.is_none() || !there("victim"), "{name}: {when}");
            assert_eq!(next.release().unwrap(), Released::Shared);
        }
        first.release().unwrap();
    } else if at.is_multiple_of(2) {
        assert_ne!(restore(&world.file).unwrap(), Released::Shared);
    } else {
        let next = Lease::acquire(&world.edit(&["next"])).unwrap();
        let mut servers = users.clone();
        servers.push("next".to_owned());
        servers.sort();
        assert_eq!(world.servers(), servers, "{name}: {when}");
        next.release().unwrap();
    }
    match plan {
        Plan::Edited | Plan::EditedBeside => {
            assert_eq!(world.text(), expected, "{name}: {when}");
            world.assert_no_litter(&when);
        }
        Plan::Mode => {
            assert_eq!(world.text(), original, "{name}: {when}");
            if let Ok(meta) = fs::metadata(&world.file) {
                // The user's change may have come after the process died.
                assert_eq!(meta.permissions().mode() & 0o777, 0o620, "{name}: {when}");
            }
            world.assert_no_litter(&when);
        }
        Plan::Copied => world.assert_copied_as_before(&when),
        _ => world.assert_as_before(&when),
    }
    assert_eq!(pending(&world.file).unwrap(), None, "{name}: {when}");
    died
}

/// Kills a process at every `stride`th operation until it has no more. Returns the number of kills.
fn kill_all(name: &'static str, plan: Plan, start: usize, stride: usize, tally: &Tally) -> usize {
    let mut killed = 0;
    for at in (1 + start % stride..).step_by(stride) {
        let Some(step) = kill_one(name, plan, at) else {
            break;
        };
        tally.add(step);
        killed += 1;
    }
    killed
}

/// Runs all plans: completely, or at a subset of operations that differs between the worlds.
fn campaign(full: bool) {
    let tally = Tally::default();
    let next = AtomicUsize::new(0);
    let plans = [
        (Plan::Alone, 1),
        (Plan::Beside, 3),
        (Plan::Last, 3),
        (Plan::Copied, 2),
        (Plan::Edited, 3),
        (Plan::EditedBeside, 3),
        (Plan::Mode, 3),
        (Plan::Restoring(0), 1),
    ];
    let jobs: Vec<_> = WORLDS
        .iter()
        .enumerate()
        .flat_map(|(salt, name)| plans.map(|(plan, stride)| (*name, plan, stride, salt)))
        .collect();
    let work = || {
        while let Some((name, plan, stride, salt)) = jobs.get(next.fetch_add(1, Ordering::Relaxed))
        {
            let salt = *salt;
            let stride = if full { 1 } else { *stride };
            if let Plan::Restoring(_) = plan {
                let (step, stride) = if full { (1, 1) } else { (9, 3) };
                for before in (1 + salt % step..).step_by(step) {
                    // Beyond its last operation the process is no longer killed.
                    if kill_one(name, Plan::Alone, before).is_none() {
                        break;
                    }
                    kill_all(name, Plan::Restoring(before), salt + before, stride, &tally);
                }
            } else {
                kill_all(name, *plan, salt, stride, &tally);
            }
        }
    };
    thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(work);
        }
    });
    let steps = tally.steps.into_inner().unwrap();
    let kills = tally.kills.into_inner();
    println!(
        "{kills} processes killed, at {} different points",
        steps.len()
    );
    let missed: Vec<_> = Step::ALL
        .iter()
        .filter(|step| !steps.contains(&format!("{} Before", step.name())))
        .collect();
    assert!(missed.is_empty(), "never killed at {missed:?}");
    for step in ["WriteIgnore", "WriteCopy", "WriteJournal", "WriteNew"] {
        let step = format!("{step} Middle");
        assert!(steps.contains(&step), "never killed at {step}");
    }
    assert!(kills >= if full { 1_000 } else { 300 }, "{kills}");
}

#[test]
fn a_process_killed_at_any_step_loses_nothing() {
    campaign(crate::lease::soak());
}
