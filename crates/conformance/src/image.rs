//! The image of scenarios with one.

use teamster::{Image, ImageSource};

use crate::scenario::Run;

const PIXEL: &[u8] = include_bytes!("pixel.png");

/// The first bytes of every PNG, in Base64.
pub(crate) const PNG: &str = "iVBORw0KGgo";

/// Returns the images of a run's prompt.
pub(crate) fn of_run(run: &Run) -> Vec<Image> {
    let image = || Image {
        media_type: "image/png".to_owned(),
        source: ImageSource::Bytes(PIXEL.to_vec()),
    };
    run.image.then(image).into_iter().collect()
}
