//! The machine of a conversation: one for all its runs, and one run at a time.

/// The machine of a conversation, as the bucket has it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Home<T> {
    /// The worker that has the session.
    pub worker: T,
    /// The last run that a worker has taken for it. It may not have been started.
    pub run: T,
}

/// An entry as it was read, which may be an older one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct SeenHome<T> {
    /// The revision; 0 if there never was an entry.
    pub revision: u64,
    /// The entry; `None` if there is none, or no more.
    pub home: Option<Home<T>>,
}

/// What a run wants of its conversation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Conversation {
    /// Continue it, or begin it.
    Key,
    /// Begin it, also elsewhere if its machine is gone.
    NewSession,
    /// Continue it: it exists.
    Session,
}

/// What is known of the last run of a conversation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum LastRun {
    /// It has ended, or there is no record of it.
    Over,
    /// It waits for a worker.
    Queued,
    /// It was claimed or started.
    Live,
}

/// What a worker does with a run of a conversation before it claims the run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Settle<T> {
    /// Write that the conversation is here and the run its last one, if the revision of the entry is still this one. Then
    /// claim the run; if it was refused, or there was no answer, read again.
    Take(u64),
    /// Leave it to this worker, which has the session.
    Forward(T),
    /// Wait: another run of the conversation is in progress here.
    Busy(T),
    /// No session of this owner has the id.
    Unknown,
    /// Nothing: another worker has claimed the run meanwhile.
    Taken,
}

/// Decides what a worker does with a run of a conversation. It MUST have no other run of the conversation under way in its
/// process.
///
/// `is_absent` tells whether the worker of the entry is gone, as far as the store knows; it may be wrong. Then a
/// conversation is moved only if its last run is over: one that is only queued, even this one, might still be claimed there.
///
/// `own` and `last` are the states of the run and of the last one of the conversation. They MUST be read after the entry.
pub fn settle<T: Clone + PartialEq>(
    seen: &SeenHome<T>,
    worker: &T,
    run: &T,
    wants: Conversation,
    own: LastRun,
    last: LastRun,
    is_absent: bool,
) -> Settle<T> {
    // Or a conversation is moved for a run that is over.
    if own != LastRun::Queued {
        return Settle::Taken;
    }
    let Some(home) = &seen.home else {
        return match wants {
            Conversation::Session => Settle::Unknown,
            Conversation::Key | Conversation::NewSession => Settle::Take(seen.revision),
        };
    };
    if home.worker == *worker {
        return match last {
            LastRun::Live if home.run != *run => Settle::Busy(home.run.clone()),
            // Also what is here already: the entry that was read may be an older one.
            _ => Settle::Take(seen.revision),
        };
    }
    if wants == Conversation::NewSession && is_absent && last == LastRun::Over {
        return Settle::Take(seen.revision);
    }
    Settle::Forward(home.worker.clone())
}
