//! Hand-made lines, in the shapes that were measured, for what no recorded run shows alone.
