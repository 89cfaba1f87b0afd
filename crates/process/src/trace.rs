//! Events for `tracing` if the feature of that name is enabled.

/// Emits an event with this level and the other arguments of [`tracing::event!`].
macro_rules! trace {
    ($level:ident, $($arg:tt)*) => {
        #[cfg(feature = "tracing")]
        ::tracing::event!(target: "teamster::process", ::tracing::Level::$level, $($arg)*);
    };
}

pub(crate) use trace;

/// Wraps work for another thread so that it runs in the caller's span.
pub(crate) fn in_span<T>(work: impl FnOnce() -> T) -> impl FnOnce() -> T {
    #[cfg(feature = "tracing")]
    let work = {
        let span = tracing::Span::current();
        move || span.in_scope(work)
    };
    work
}
