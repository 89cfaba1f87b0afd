//! What must be so, by what the agents saw.

use std::collections::BTreeMap;

use teamster_testkit::stand_in::Act;
use teamster_testkit::stand_in::witness::{Kind, Seen, TurnFigures, What};

use crate::soak::sleeps::{Over, Sleeps};
use crate::soak::world::{AGENT_KILLED, ENDED, KILLED, STARTED, TOUCHED};

/// How a loop is set, as far as that decides.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Set {
    /// One process for all ticks.
    pub(crate) hot: bool,
    pub(crate) min_sleep: u64,
    pub(crate) idle_step: u64,
    pub(crate) max_sleep: u64,
    pub(crate) clear_min_gap_ms: u64,
}

/// A flag that was set and not answered yet.
#[derive(Debug, Clone)]
struct Asked {
    at_ms: u64,
    /// The session that is to be left.
    session: Option<String>,
    /// The process that is to be left.
    pid: u32,
}

/// How the last turn of a process is going.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Turn {
    None,
    Open {
        whole: bool,
    },
    /// It overran, as it was to.
    Overran,
    /// Its end may or may not have been reported.
    Ending {
        whole: bool,
    },
    Ended,
    Interrupted,
}

#[derive(Debug, Clone)]
struct Process {
    pid: u32,
    session: Option<String>,
    turn: Turn,
    /// It was killed from outside, maybe when a message was on its way.
    killed: bool,
}

#[derive(Debug)]
pub(crate) struct Truth {
    set: Set,
    /// What should not have been.
    pub(crate) wrong: Vec<String>,
    pub(crate) counts: BTreeMap<&'static str, u64>,
    process: Option<Process>,
    clear: Option<Asked>,
    reset: Option<Asked>,
    /// A clear may come: one was about to be requested.
    clear_may_come: bool,
    reset_may_come: bool,
    /// When the last clear was.
    cleared_at: Option<u64>,
    /// It was in this process.
    cleared_here: bool,
    /// The context that got the full prompt: of this process if it is kept, and of this session.
    informed: Option<(u32, Option<String>)>,
    /// A session that the loop must know: a message came in it after the end of a turn.
    known: Option<String>,
    ended_in: Option<String>,
    /// The session that failed, and how often in a row: at least, and at most.
    failed: Option<(String, [u32; 2])>,
    /// The session in which the last message came, or that it was cleared to.
    last: Vec<String>,
    /// Whether the context got the full prompt is not known for sure.
    told_is_open: bool,
    /// How the last turn of the process before ended.
    over: Turn,
    /// A new session may begin.
    may_be_fresh: bool,
    /// A message came in this loop.
    same_loop: bool,
    /// The last turn whose end was reported for sure.
    ended: Option<u64>,
    /// Every turn whose end was reported, and whether its loop sent another message after that.
    pub(crate) turns: Vec<(TurnFigures, bool)>,
    sleeps: Sleeps,
}

impl Truth {
    pub(crate) fn new(set: Set) -> Self {
        Self {
            set,
            wrong: Vec::new(),
            counts: BTreeMap::new(),
            process: None,
            clear: None,
            reset: None,
            clear_may_come: false,
            reset_may_come: false,
            cleared_at: None,
            cleared_here: false,
            informed: None,
            known: None,
            ended_in: None,
            failed: None,
            last: Vec::new(),
            told_is_open: false,
            over: Turn::None,
            may_be_fresh: true,
            same_loop: false,
            ended: None,
            turns: Vec::new(),
            sleeps: Sleeps::new(set),
        }
    }

    pub(crate) fn count(&mut self, what: &'static str) {
        *self.counts.entry(what).or_default() += 1;
    }

    pub(crate) fn must(&mut self, holds: bool, what: impl FnOnce() -> String) {
        if !holds {
            self.wrong.push(what());
        }
    }

    pub(crate) fn see(&mut self, seen: &Seen) {
        match &seen.what {
            What::Start { resumes, alone, .. } => self.start(seen, resumes.as_deref(), *alone),
            What::Refused { session } => {
                self.wrong.push(format!(
                    "a session was resumed that there is not: {session}"
                ));
            }
            What::Message {
                kind: Kind::Clear,
                session,
                ..
            } => {
                self.must(self.clear_may_come, || {
                    format!("{session} is cleared, and nobody had asked for it")
                });
            }
            What::Message {
                kind,
                session,
                flags,
                turn,
                ..
            } => {
                self.count("ticks");
                self.message(seen, *kind, session, flags, turn.unwrap_or_default());
            }
            What::Will { act } => self.will(*act),
            What::Did { act } => {
                if let Some(flag) = act.flag() {
                    self.touched(flag, seen.at_ms);
                }
            }
            What::Cleared { to, .. } => {
                self.count("clears");
                if let Some(at) = self.cleared_at.filter(|_| self.cleared_here) {
                    let gap = seen.at_ms.saturating_sub(at);
                    // The loop counts from a little later.
                    let least = self.set.clear_min_gap_ms.saturating_sub(50);
                    self.must(gap >= least, || format!("a clear after {gap} ms"));
                }
                self.cleared_at = Some(seen.at_ms);
                self.cleared_here = true;
                self.informed = None;
                self.last.push(to.clone());
                if let Some(process) = &mut self.process {
                    process.session = Some(to.clone());
                }
            }
            What::Interrupted => self.count("interrupts"),
            What::Result(figures) => self.result(figures),
            What::Ended { turn } => {
                self.ended = Some(*turn);
                self.ended();
            }
            What::Child { .. } => self.count("processes in the background"),
            What::Outside { did } => self.outside(did, seen.at_ms),
            _ => {}
        }
    }

    fn will(&mut self, act: Act) {
        match act {
            Act::ClearSession => self.clear_may_come = true,
            Act::ResetSession => self.reset_may_come = true,
            Act::DidWork => self.sleeps.will_work(),
            Act::Die | Act::DieAfter | Act::DieAtStart | Act::DieOnClear => self.count("deaths"),
            Act::Hang | Act::Deaf | Act::Late => {
                self.count("turns that overrun");
                if let Some(process) = &mut self.process {
                    process.turn = Turn::Overran;
                }
            }
            _ => {}
        }
    }

    fn touched(&mut self, flag: &str, at_ms: u64) {
        let asked = || Asked {
            at_ms,
            session: self.process.as_ref().and_then(|it| it.session.clone()),
            pid: self.process.as_ref().map_or(0, |it| it.pid),
        };
        match flag {
            "clear-session" => {
                self.clear.get_or_insert(asked());
                self.clear_may_come = true;
                self.count("clear-session touched");
            }
            "reset-session" => {
                self.reset.get_or_insert(asked());
                self.reset_may_come = true;
                self.count("reset-session touched");
            }
            _ => {
                self.sleeps.work();
                self.count("did-work touched");
            }
        }
    }

    fn start(&mut self, seen: &Seen, resumes: Option<&str>, alone: bool) {
        let pid = seen.pid;
        self.count("starts");
        self.must(alone, || format!("{pid} was started beside another agent"));
        let killed = self.process.as_ref().is_some_and(|it| it.killed);
        self.process_is_over();
        let given_up =
            matches!(&self.failed, Some((id, [(2..), _])) if Some(id.as_str()) == resumes);
        self.must(!given_up, || {
            format!("{resumes:?} is resumed, and has failed twice in a row")
        });
        // A new session answers a clear as well.
        let leaves = self.reset_may_come || self.clear_may_come;
        let twice = matches!(self.failed, Some((_, [_, (2..)])));
        match (resumes, &self.known) {
            (None, Some(known)) if !(self.may_be_fresh || leaves || twice) => {
                let what = format!("a new session was begun instead of {known}");
                self.wrong.push(what);
            }
            (Some(session), _) => {
                self.count("resumed");
                let is_last = self.last.iter().any(|it| it == session);
                self.must(is_last, || {
                    format!("an older session is resumed: {session}")
                });
            }
            _ => {}
        }
        if resumes.is_none() {
            if twice {
                self.count("sessions given up");
            }
            self.failed = None;
        }
        self.may_be_fresh = false;
        self.cleared_here = false;
        if self.set.hot {
            // The loop may not have seen the end of one that was killed when it sent the next message, and the
            // process is started again with that. How long it takes to see it depends on the machine.
            self.told_is_open |= killed;
            self.informed = None;
        }
        self.process = Some(Process {
            pid,
            session: resumes.map(str::to_owned),
            turn: Turn::None,
            killed: false,
        });
    }

    /// The process that was there is there no more.
    fn process_is_over(&mut self) {
        let Some(process) = self.process.take() else {
            return;
        };
        self.over = process.turn;
        let [least, most] = match process.turn {
            Turn::Open { .. } => [1, 1],
            // It was started for a tick.
            Turn::None if !self.set.hot => [1, 1],
            // One that got no message, before or while a tick was to be played.
            Turn::None | Turn::Overran | Turn::Ending { .. } => [0, 1],
            Turn::Ended | Turn::Interrupted => [0, process.killed.into()],
        };
        if least == 1 {
            self.informed = None;
        }
        // Killed before its end came through, or before the limit of its turn.
        let was_open = process.killed && process.turn == Turn::Overran;
        self.told_is_open |= was_open || matches!(process.turn, Turn::Ending { .. });
        if most == 1
            && let Some(session) = process.session
        {
            self.failed = match self.failed.take() {
                Some((id, [a, b])) if id == session => Some((id, [a + least, b + most])),
                _ => Some((session, [least, most])),
            };
        }
    }

    fn message(&mut self, seen: &Seen, kind: Kind, session: &str, flags: &[String], turn: u64) {
        let is_set = |flag: &str| flags.iter().any(|it| it == flag);
        if let Some(asked) = self.clear.clone() {
            let same = asked.session.as_deref() == Some(session);
            let held_back = self
                .cleared_at
                .is_some_and(|at| seen.at_ms.saturating_sub(at) < self.set.clear_min_gap_ms + 1000);
            if !same {
                self.clear = None;
                self.clear_may_come = false;
                if !self.cleared_here {
                    // There was no process.
                    self.cleared_at = Some(seen.at_ms);
                }
                self.count("clear-session answered");
            } else if !is_set("clear-session") {
                self.wrong
                    .push(format!("turn {turn}: clear-session is lost"));
                self.clear = None;
            } else if held_back {
                self.count("clear-session held back");
            } else {
                let late = seen.at_ms.saturating_sub(asked.at_ms);
                self.wrong
                    .push(format!("turn {turn}: clear-session is left for {late} ms"));
            }
        }
        if let Some(asked) = self.reset.take() {
            let same = asked.session.as_deref() == Some(session) || asked.pid == seen.pid;
            self.must(!same, || {
                format!("turn {turn}: reset-session is not answered")
            });
            self.count("reset-session answered");
        }
        if !self.last.iter().any(|it| it == session) {
            self.reset_may_come = false;
        }
        let before = self.process.as_ref().map(|it| it.turn);
        self.must(
            !matches!(before, Some(Turn::Open { .. } | Turn::Overran)),
            || format!("turn {turn} begins in another: {before:?}"),
        );
        let place = (
            if self.set.hot { seen.pid } else { 0 },
            Some(session.to_owned()),
        );
        let knows = self.informed.as_ref() == Some(&place);
        let wanted = if knows { Kind::Light } else { Kind::Full };
        let is_open = std::mem::take(&mut self.told_is_open);
        if is_open && kind == Kind::Light {
            self.informed = Some(place);
        }
        self.must(kind == wanted || is_open, || {
            format!("turn {turn}: {kind:?}, and not {wanted:?}")
        });
        self.count(if kind == Kind::Full { "FULL" } else { "LIGHT" });
        let is_known = self.ended_in.as_deref() == Some(session);
        self.known = is_known.then(|| session.to_owned());
        self.last = vec![session.to_owned()];
        if let (Some((figures, before_another)), true) = (self.turns.last_mut(), self.same_loop) {
            // The turn before this one, and not an earlier one.
            *before_another |= figures.turn + 1 == turn && self.ended == Some(figures.turn);
        }
        self.same_loop = true;
        let last = self.last_tick();
        self.sleeps.tick(last);
        if let Some(process) = &mut self.process {
            process.session = Some(session.to_owned());
            process.turn = Turn::Open {
                whole: kind == Kind::Full,
            };
        }
    }

    fn result(&mut self, figures: &TurnFigures) {
        self.turns.push((figures.clone(), false));
        let Some(process) = &mut self.process else {
            return;
        };
        let whole = matches!(process.turn, Turn::Open { whole: true });
        process.turn = if figures.interrupted {
            Turn::Interrupted
        } else {
            Turn::Ending { whole }
        };
        if let (Some((_, [least, _])), false) = (&mut self.failed, figures.interrupted) {
            *least = 0;
        }
    }

    /// The end of the turn was reported for sure.
    fn ended(&mut self) {
        let Some(process) = &mut self.process else {
            return;
        };
        if let Turn::Ending { whole } = process.turn {
            process.turn = Turn::Ended;
            self.failed = None;
            self.ended_in.clone_from(&process.session);
            if whole {
                let pid = if self.set.hot { process.pid } else { 0 };
                self.informed = Some((pid, process.session.clone()));
            }
        }
    }

    fn outside(&mut self, did: &str, at_ms: u64) {
        match did {
            STARTED => self.count("loops"),
            KILLED => {
                self.count("loops killed");
                self.loop_is_over(true);
            }
            ENDED => {
                self.count("loops ended");
                self.loop_is_over(false);
                // The next one starts over, and removes what is left.
                (self.clear, self.reset, self.known) = (None, None, None);
                self.may_be_fresh = true;
                self.informed = None;
            }
            AGENT_KILLED => {
                self.count("agents killed");
                if let Some(process) = &mut self.process {
                    process.killed = true;
                }
            }
            _ => {
                if let Some(flag) = did.strip_prefix(TOUCHED) {
                    self.touched(flag, at_ms);
                }
            }
        }
    }

    fn loop_is_over(&mut self, goes_on: bool) {
        // It may have given up its session just now.
        self.process_is_over();
        self.may_be_fresh |= matches!(self.failed, Some((_, [_, (2..)])));
        // What it had counted is gone with it, and its last input may be.
        self.failed = None;
        self.informed = None;
        self.told_is_open = false;
        self.over = Turn::None;
        self.same_loop = false;
        self.sleeps.loop_is_over(goes_on);
    }

    /// How the last tick ended that a message came for.
    fn last_tick(&mut self) -> Over {
        let over = std::mem::replace(&mut self.over, Turn::None);
        match self.process.as_ref().map_or(Turn::None, |it| it.turn) {
            Turn::Ended | Turn::Interrupted => Over::Ended,
            Turn::Open { .. } => Over::Died,
            // Another process has come.
            Turn::None if over == Turn::Ended => Over::Ended,
            Turn::None if matches!(over, Turn::None | Turn::Open { .. }) => Over::Died,
            _ => Over::Unknown,
        }
    }

    /// The loop rests, so long and for this reason.
    pub(crate) fn rest(&mut self, seconds: u64, reason: &str) {
        if reason.contains("failure") {
            self.count("rests after a failure");
            let last = self.last_tick();
            return self.sleeps.rest_after_a_failure(last);
        }
        self.count("rests");
        match self.sleeps.rest(seconds) {
            Ok(true) => self.count("did-work answered"),
            Ok(false) => {}
            Err(wrong) => self.wrong.push(format!("{wrong} ({reason})")),
        }
    }
}
