//! Keeps the loops of many agents running.
