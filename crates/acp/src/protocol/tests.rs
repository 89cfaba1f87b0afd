//! The lines here are made up, after what agents print.
