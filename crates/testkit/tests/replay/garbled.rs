//! What one CLI prints, garbled or not, is no danger to the decoders of the others.
//!
//! That a decoder stands its own CLI's lines is for the conformance suite, in each provider's tests.

use teamster_testkit::conformance::{Corpus, Verdict, check_garbled};
use teamster_testkit::replay::replay_bytes;

use super::{FIXTURES, check_stream};

#[test]
fn lines_of_any_cli_are_read_by_every_decoder() -> Verdict {
    let corpus = Corpus::new(FIXTURES.iter().map(|(fixture, _)| fixture));
    check_garbled(&corpus, |stdout, exit| {
        for provider in teamster::providers() {
            let replay = replay_bytes(&*provider, [stdout], exit.clone());
            check_stream(&replay, provider.info().id);
        }
        Ok(())
    })
}
