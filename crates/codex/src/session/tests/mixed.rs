//! Output into whose lines another program wrote.

use super::shown::shown;
use super::*;

#[test]
fn terminal_codes_and_missing_line_ends_change_nothing() {
    let turn = |change: fn(&mut Peer)| {
        let mut peer = Peer::recorded("app_two_turns", &bypassing());
        change(&mut peer);
        let (events, result) = peer.turn("hi");
        assert_eq!(result.diagnostics.malformed, 0);
        shown(&events)
    };
    let expected = turn(|_| {});
    let codes = turn(|peer| {
        for line in &mut peer.lines {
            *line = format!("\u{1b}[2K\u{1b}]0;title\u{7}{line}\0");
        }
    });
    assert_eq!(codes, expected);
    let joined = turn(|peer| {
        // Up to the answer to the request that follows it.
        let first = peer.lines.pop_front().unwrap();
        peer.lines[0].insert_str(0, &first);
    });
    assert_eq!(joined, expected);
}
