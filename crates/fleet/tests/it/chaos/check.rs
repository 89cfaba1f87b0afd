//! What must hold when the faults are over. Each violation is a sentence.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use std::time::Duration;

use serde_json::Value;
use teamster_api::{RunHandle, RunService};
use teamster_core::RunResult;
use teamster_fleet::{Fleet, FleetOptions, FleetRuns};
use tokio::time::{Instant, sleep, timeout};

use super::processes::REPOSITORY;
use super::{client, login, submit};

/// Time for which one log is read.
const READ: Duration = Duration::from_secs(30);

/// What was found of a run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Found {
    pub(crate) run: String,
    /// Its submitter knows that it is there.
    pub(crate) is_acknowledged: bool,
    /// The state of its record.
    pub(crate) state: Option<String>,
    /// How often its agent was started.
    pub(crate) starts: usize,
    /// The log of the fleet, or why it cannot be read.
    pub(crate) copy: Result<String, String>,
    /// The logs of the machines.
    pub(crate) originals: Vec<String>,
    /// The status of the result, and its text, or why there is none.
    pub(crate) result: Result<(String, String), String>,
    /// The result that the record has, as JSON.
    pub(crate) kept: Option<Value>,
    /// The result tells that not all files had room, and where they are.
    pub(crate) is_left_out: bool,
    /// What is wrong with the branch and the file; `None` of a run that brings none back.
    pub(crate) files: Option<Result<(), String>>,
    /// The log as it was read while it was written.
    pub(crate) live: String,
}

impl Found {
    /// A run of which nothing is known.
    fn new(run: &str) -> Self {
        Self {
            run: run.to_owned(),
            is_acknowledged: false,
            state: None,
            starts: 0,
            copy: Err("not read".to_owned()),
            originals: Vec::new(),
            result: Err("not read".to_owned()),
            kept: None,
            is_left_out: false,
            files: None,
            live: String::new(),
        }
    }
}

fn type_of(line: &str) -> String {
    let line: Value = serde_json::from_str(line).unwrap_or_default();
    line["type"].as_str().unwrap_or_default().to_owned()
}

/// Returns the result in the end of a log.
fn result_of(line: &str) -> Value {
    let line: Value = serde_json::from_str(line).unwrap_or_default();
    // As this version writes it.
    let result: Option<RunResult> = serde_json::from_value(line["result"].clone()).ok();
    serde_json::to_value(result).unwrap_or_default()
}

/// Returns the first line of a text that is not in another one, in its order. One that is in place of what is gone, may be
/// anywhere.
fn foreign<'a>(text: &'a str, whole: &str) -> Option<&'a str> {
    let mut whole = whole.lines();
    (text.lines()).find(|line| type_of(line) != "reset" && !whole.any(|other| other == *line))
}

/// Returns what is wrong with a run.
pub(crate) fn judge(found: &Found) -> Vec<String> {
    let mut wrong = Vec::new();
    let mut say = |what: String| wrong.push(format!("{}: {what}", found.run));
    if found.starts > 1 {
        say(format!("its agent was started {} times", found.starts));
    }
    let Some(state) = &found.state else {
        if found.is_acknowledged {
            say("it was acknowledged, and has no record".to_owned());
        }
        if found.starts > 0 {
            say("it was carried out, and has no record".to_owned());
        }
        return wrong;
    };
    let is_at_rest = ["ended", "cancelled"].contains(&&**state);
    if !is_at_rest {
        say(format!("its state is {state}"));
        return wrong;
    }
    if state == "cancelled" && found.starts > 0 {
        say("it was cancelled, and carried out".to_owned());
    }
    let (status, text) = match &found.result {
        Ok(result) => result,
        Err(error) => {
            say(format!("no result: {error}"));
            return wrong;
        }
    };
    let copy = match &found.copy {
        Ok(copy) => copy,
        Err(error) => {
            say(format!("no log: {error}"));
            return wrong;
        }
    };
    let is_end = |line: &&str| type_of(line) == "done";
    let ends = copy.lines().filter(is_end).count();
    if ends != 1 || !copy.lines().last().is_some_and(|line| is_end(&line)) {
        say(format!(
            "its log has {ends} ends, of which one must be its last entry"
        ));
    }
    let end = copy.lines().last().map(result_of);
    if found.kept.is_some() && found.kept != end {
        say(format!(
            "its record has another result than the end of its log: {:?}",
            found.kept
        ));
    }
    // The end has what had no room in the fleet.
    let without_end = |log: &str| {
        let end = log.trim_end().rfind('\n').map_or(0, |at| at + 1);
        log[..if found.is_left_out { end } else { log.len() }].to_owned()
    };
    let has_gap = copy.lines().any(|line| type_of(line) == "reset");
    match (&*found.originals, found.starts) {
        ([original], _) if without_end(original) == without_end(copy) => {}
        ([original], _) if has_gap && foreign(&without_end(copy), original).is_none() => {}
        ([original], _) => {
            let same = original.lines().zip(copy.lines());
            let same = same.take_while(|(one, other)| one == other).count();
            say(format!(
                "its log differs from that of its machine after {same} entries of {} and {}",
                copy.lines().count(),
                original.lines().count()
            ));
        }
        // It was ended before an agent was started.
        ([], 0) if copy.lines().count() == 1 => {}
        (originals, starts) => say(format!(
            "{} machines have its log, and its agent was started {starts} times",
            originals.len()
        )),
    }
    let whole = match &*found.originals {
        [original] if !found.is_left_out => original,
        _ => copy,
    };
    let live = found.live.rfind('\n').map_or("", |end| &found.live[..=end]);
    if !has_gap && let Some(line) = foreign(live, whole) {
        say(format!("a reader got what is not in its log: {line}"));
    }
    if let Some(Err(error)) = &found.files
        && status == "completed"
        && !found.is_left_out
    {
        say(format!("its files are not whole: {error}"));
    }
    if status == "completed"
        && (!text.ends_with(&format!("did {}", found.run)) || found.starts != 1)
    {
        say(format!(
            "it is complete with the text {text:?} of {} agents",
            found.starts
        ));
    }
    wrong
}

/// Waits until all records are at rest, and returns what was found of all runs, by their ids.
pub(crate) async fn look(
    url: &str,
    root: &Path,
    owners: &[String],
    machines: &[PathBuf],
    rest: Duration,
) -> Vec<Found> {
    let jetstream = async_nats::jetstream::new(client(url).await);
    let mut all: BTreeMap<String, (String, Found)> = BTreeMap::new();
    for owner in owners {
        let read = |name| fs::read_to_string(root.join(owner).join(name)).unwrap_or_default();
        for run in read(submit::TRIED).lines() {
            all.insert(run.to_owned(), (owner.clone(), Found::new(run)));
        }
        for run in read(submit::ACKNOWLEDGED).lines() {
            if let Some((_, found)) = all.get_mut(run) {
                found.is_acknowledged = true;
            }
        }
    }
    let until = Instant::now() + rest;
    let mut open: Vec<String> = all.keys().cloned().collect();
    loop {
        let mut still = Vec::new();
        for run in open {
            let (owner, found) = all.get_mut(&run).unwrap();
            let state = state(&jetstream, &format!("$KV.tm_runs.{owner}.{run}")).await;
            if let Ok(state) = state {
                found.state = state;
            }
            let is_final = |state: &String| !["queued", "claimed", "started"].contains(&&**state);
            if !found.state.as_ref().is_some_and(is_final) {
                still.push(run);
            }
        }
        open = still;
        // Those without a record may not be there at all.
        let waits = |run: &String| {
            let found = &all[run].1;
            found.is_acknowledged || found.state.is_some()
        };
        if Instant::now() > until || !open.iter().any(waits) {
            break;
        }
        sleep(Duration::from_millis(500)).await;
    }
    let count = fs::read_to_string(root.join("count")).unwrap_or_default();
    for run in count.lines() {
        match all.get_mut(run) {
            Some((_, found)) => found.starts += 1,
            None => {
                let mut found = Found::new(run);
                found.starts = 1;
                all.insert(run.to_owned(), (String::new(), found));
            }
        }
    }
    for owner in owners {
        let options = FleetOptions::new(login(url, owner), owner);
        let fleet = Fleet::connect(options).await.unwrap();
        let service: Arc<dyn RunService> = Arc::new(FleetRuns::new(&fleet));
        for (run, (_, found)) in all.iter_mut().filter(|(_, (of, _))| of == owner) {
            for machine in machines {
                found.originals.extend(original(machine, owner, run));
            }
            if found.state.is_some() && !open.contains(run) {
                (found.copy, found.result) = read(&service, run).await;
                // Branches and paths on the machine have the id that the run has there, which is replaced there, too.
                let local = format!("{owner}@{run}");
                found.copy = std::mem::replace(&mut found.copy, Ok(String::new()))
                    .map(|copy| copy.replace(&local, run));
                if submit::has_files(run) && root.join(submit::COMMIT).exists() {
                    found.files = Some(files(&service, run, root).await);
                }
                let handle = RunHandle::new(service.clone(), &**run);
                if let Ok(Ok(result)) = timeout(READ, handle.result()).await {
                    let kept = serde_json::to_string(&result).unwrap();
                    found.kept = serde_json::from_str(&kept.replace(&local, run)).ok();
                    let error = result.workspace.and_then(|workspace| workspace.error);
                    found.is_left_out = error.is_some_and(|error| error.contains("but on worker"));
                }
            }
            let live = root.join(owner).join(format!("{}{run}", submit::LIVE));
            let live = fs::read_to_string(live).unwrap_or_default();
            found.live = live.replace(&format!("{owner}@{run}"), run);
        }
    }
    all.into_values().map(|(_, found)| found).collect()
}

/// Reads the file and the branch of a run, which must be those that its agent has made.
async fn files(service: &Arc<dyn RunService>, run: &str, root: &Path) -> Result<(), String> {
    let handle = RunHandle::new(service.clone(), run);
    let get = async |name: &str| {
        let mut content = Vec::new();
        let got = timeout(READ, handle.read(name, &mut content)).await;
        got.map_err(|error| error.to_string())?
            .map_err(|error| format!("{name}: {}", error.message))?;
        Ok::<_, String>(content)
    };
    if get(&format!("files/{}", submit::FILE)).await? != submit::file_of(run) {
        return Err("the file has other content".to_owned());
    }
    let bundle = root.join("bundle");
    fs::write(&bundle, get("bundle").await?).unwrap();
    let git = |args: &[&str]| {
        let mut git = Command::new("git");
        git.arg("-C").arg(root.join(REPOSITORY)).args(args);
        let output = git.output().unwrap();
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        if output.status.success() {
            Ok(text)
        } else {
            Err(said)
        }
    };
    let heads = git(&["bundle", "list-heads", bundle.to_str().unwrap()])?;
    let (_, branch) = heads
        .lines()
        .next()
        .and_then(|head| head.split_once(' '))
        .unwrap_or_default();
    git(&["fetch", "-q", bundle.to_str().unwrap(), branch])?;
    let did = git(&["show", "FETCH_HEAD:did.txt"])?;
    if did.trim() == run {
        Ok(())
    } else {
        Err(format!("its branch is that of {did}"))
    }
}

async fn state(
    jetstream: &async_nats::jetstream::Context,
    subject: &str,
) -> Result<Option<String>, ()> {
    let stream = jetstream
        .get_stream_no_info("KV_tm_runs")
        .await
        .map_err(drop)?;
    match stream.direct_get_last_for_subject(subject).await {
        Ok(message) => {
            let record: Value = serde_json::from_slice(&message.payload).unwrap_or_default();
            Ok(record["state"].as_str().map(str::to_owned))
        }
        Err(error) if error.to_string().contains("not found") => Ok(None),
        Err(_) => Err(()),
    }
}

/// Returns the log that a machine has of a run, with the id that the run has outside of it.
fn original(machine: &Path, owner: &str, run: &str) -> Option<String> {
    let local = format!("{owner}@{run}");
    let folder = machine.join("state/teamster/runs").join(&local);
    let log = fs::read_to_string(folder.join("events.ndjson")).ok()?;
    Some(log.replace(&local, run))
}

async fn read(
    service: &Arc<dyn RunService>,
    run: &str,
) -> (Result<String, String>, Result<(String, String), String>) {
    let handle = RunHandle::new(service.clone(), run);
    let mut text = String::new();
    let copied = timeout(READ, async {
        let mut log = handle.follow(0);
        while let Some(line) = log.next().await {
            let line = line.map_err(|error| error.message)?;
            text.push_str(&String::from_utf8_lossy(line.json()));
            text.push('\n');
        }
        Ok(())
    });
    let copied = match copied.await {
        Ok(Ok(())) => Ok(text),
        Ok(Err(error)) => Err(error),
        Err(_) => Err(format!(
            "it has no end after {} entries",
            text.lines().count()
        )),
    };
    let result = match timeout(READ, handle.result()).await {
        Ok(Ok(result)) => {
            let status = serde_json::to_value(result.status).unwrap_or_default();
            Ok((status.as_str().unwrap_or_default().to_owned(), result.text))
        }
        Ok(Err(error)) => Err(error.message),
        Err(_) => Err("it does not come".to_owned()),
    };
    (copied, result)
}

#[cfg(test)]
mod tests {
    use super::*;

    const LOG: &str = "{\"seq\":1,\"type\":\"text\"}\n{\"seq\":2,\"type\":\"done\"}\n";

    fn good() -> Found {
        Found {
            run: "r".to_owned(),
            is_acknowledged: true,
            state: Some("ended".to_owned()),
            starts: 1,
            copy: Ok(LOG.to_owned()),
            originals: vec![LOG.to_owned()],
            result: Ok(("completed".to_owned(), "did r".to_owned())),
            ..Found::new("r")
        }
    }

    /// A change of a run without faults, and what is reported then.
    type Case<'a> = (&'a dyn Fn(&mut Found), &'a str);

    #[test]
    fn each_violation_is_found() {
        assert_eq!(judge(&good()), Vec::<String>::new());
        let with = |change: &dyn Fn(&mut Found)| {
            let mut found = good();
            change(&mut found);
            judge(&found).join("; ")
        };
        let cases: [Case<'_>; 12] = [
            (&|found| found.starts = 2, "started 2 times"),
            (
                &|found| found.state = None,
                "acknowledged, and has no record",
            ),
            (
                &|found| found.state = Some("claimed".to_owned()),
                "its state is claimed",
            ),
            (
                &|found| found.state = Some("conflict".to_owned()),
                "its state is conflict",
            ),
            (
                &|found| found.state = Some("cancelled".to_owned()),
                "cancelled, and carried out",
            ),
            (&|found| found.copy = Ok(LOG.repeat(2)), "2 ends"),
            (
                &|found| found.originals.push(LOG.to_owned()),
                "2 machines have its log",
            ),
            (
                &|found| found.originals[0].push('x'),
                "differs from that of its machine after 2",
            ),
            (
                &|found| found.result = Ok(("completed".to_owned(), String::new())),
                "the text \"\"",
            ),
            (
                &|found| found.files = Some(Err("other".to_owned())),
                "not whole: other",
            ),
            (
                &|found| found.live = "{\"seq\":1,\"type\":\"other\"}\n".to_owned(),
                "a reader got what is not in its log",
            ),
            (
                &|found| found.kept = serde_json::to_value(RunResult::default()).ok(),
                "its record has another result than the end of its log",
            ),
        ];
        for (change, expected) in cases {
            let said = with(change);
            assert!(said.contains(expected), "{said}");
        }
        // Ended before an agent was started: only the fleet has its log.
        let refused = Found {
            starts: 0,
            copy: Ok("{\"seq\":1,\"type\":\"done\"}\n".to_owned()),
            originals: Vec::new(),
            result: Ok(("failed".to_owned(), String::new())),
            ..good()
        };
        assert_eq!(judge(&refused), Vec::<String>::new());
        // What is gone is named, and what is left is as it was.
        let with_gap = |line: &str| {
            let mut found = good();
            found.copy = Ok(format!("{{\"type\":\"reset\"}}\n{line}\n"));
            found.live = "{\"seq\":1".to_owned();
            judge(&found).join("; ")
        };
        assert_eq!(with_gap("{\"seq\":2,\"type\":\"done\"}"), "");
        let other = with_gap("{\"seq\":3,\"type\":\"done\"}");
        assert!(
            other.contains("differs from that of its machine"),
            "{other}"
        );
    }
}
