//! Events for `tracing`, where the feature of that name is on; nothing otherwise.

/// An event of this level, with the other arguments of [`tracing::event!`].
macro_rules! trace {
    ($level:ident, $($arg:tt)*) => {
        #[cfg(feature = "tracing")]
        ::tracing::event!(target: "teamster::process", ::tracing::Level::$level, $($arg)*);
    };
}

pub(crate) use trace;

/// Work for another thread, in the span that the caller is in.
pub(crate) fn in_span<T>(work: impl FnOnce() -> T) -> impl FnOnce() -> T {
    #[cfg(feature = "tracing")]
    let work = {
        let span = tracing::Span::current();
        move || span.in_scope(work)
    };
    work
}
