//! Hand-made parameters and what becomes of them.
