//! How long a loop sleeps, by what its agent did.

use crate::soak::truth::Set;

/// How a tick ended, as far as it was seen.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Over {
    /// It came to its end, or was interrupted.
    Ended,
    /// It did not: what is set stays set.
    Died,
    Unknown,
}

#[derive(Debug)]
pub(crate) struct Sleeps {
    set: Set,
    /// `did-work` is set.
    work: bool,
    /// It was before the last rest, in which it was answered.
    worked: bool,
    known: bool,
    /// The last sleep, in seconds.
    current: u64,
    /// No message came since the last rest.
    rested: bool,
}

impl Sleeps {
    pub(crate) fn new(set: Set) -> Self {
        Self {
            set,
            work: false,
            worked: false,
            known: true,
            current: set.min_sleep,
            rested: true,
        }
    }

    /// `did-work` is about to be set: it may be there from now on or not.
    pub(crate) fn will_work(&mut self) {
        self.known &= self.work;
    }

    pub(crate) fn work(&mut self) {
        self.work = true;
        self.known = true;
    }

    /// A tick begins. If no rest was seen after the last one, the loop was woken in it, and it ended so.
    pub(crate) fn tick(&mut self, last: Over) {
        self.unseen(last);
        self.rested = false;
        self.worked = false;
    }

    fn unseen(&mut self, last: Over) {
        if !self.rested {
            match last {
                Over::Ended => self.next(),
                Over::Died => {}
                Over::Unknown => self.known = false,
            }
        }
    }

    /// The loop is gone. Another that continues its work begins with the shortest sleep.
    pub(crate) fn loop_is_over(&mut self, goes_on: bool) {
        self.current = self.set.min_sleep;
        if goes_on {
            // The tick may have come to its end in its eyes or not, and what was answered may be set again.
            self.known &= !self.worked && (self.rested || !self.work);
        } else {
            self.work = false;
            self.known = true;
        }
        self.rested = true;
    }

    fn next(&mut self) {
        self.current = if self.work {
            self.set.min_sleep
        } else {
            (self.current + self.set.idle_step).min(self.set.max_sleep)
        };
        self.work = false;
    }

    /// The loop rests after a failure, in which nothing is answered. It may be that no message came since a
    /// tick that ended so.
    pub(crate) fn rest_after_a_failure(&mut self, last: Over) {
        self.unseen(last);
        self.rested = true;
    }

    /// The loop rests so long; whether `did-work` was answered with that, or what is wrong.
    pub(crate) fn rest(&mut self, seconds: u64) -> Result<bool, String> {
        let (before, known) = (self.current, self.known);
        self.worked = self.work || (!known && seconds == self.set.min_sleep);
        self.next();
        let wanted = self.current;
        // From here on what it was does not matter.
        (self.current, self.known, self.rested) = (seconds, true, true);
        if known && wanted != seconds {
            let with = if self.worked { "with" } else { "without" };
            return Err(format!(
                "after a sleep of {before} s, {with} did-work, the sleep is {seconds} s"
            ));
        }
        Ok(known && self.worked)
    }
}
