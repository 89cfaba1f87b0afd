//! `xargs`, which adds words to the command in its arguments.

use super::{MOST_WORDS, SHELLS, TAKE_LINES, WRAPPERS, Word, base, is_file, is_flag};

/// Short options with a value, here or in the next word.
const WITH_VALUE: &str = "IJLnPsdEaRS";
/// Short options whose value, if any, follows at once.
const WITH_OWN_VALUE: &str = "iel";
/// Long options without a value in the next word.
const ALONE: [&str; 8] = [
    "--eof",
    "--exit",
    "--interactive",
    "--max-lines",
    "--no-run-if-empty",
    "--null",
    "--open-tty",
    "--verbose",
];

struct Options {
    /// Position of the program among the arguments. Is their number if there is none.
    program: usize,
    /// Text that `xargs` replaces in the command.
    replaced: Option<String>,
}

/// Reads the options. Returns nothing if the position of the program is uncertain.
fn options(arguments: &[Word]) -> Option<Options> {
    let (mut at, mut replaced) = (0, None);
    while let Some(text) = arguments.get(at).map(|word| word.text.as_str()) {
        if arguments[at].expands {
            return None;
        }
        at += 1;
        if text == "--" {
            break;
        } else if let Some(value) = text.strip_prefix("--replace") {
            replaced = match value.strip_prefix('=') {
                Some(value) => Some(value.to_owned()),
                None if value.is_empty() => Some("{}".to_owned()),
                None => return None,
            };
        } else if text.starts_with("--") {
            // Abbreviated, a `--replace` would look like another one.
            let is_replace = text.starts_with("--r");
            if is_replace || !(ALONE.contains(&text) || text.contains('=')) {
                return None;
            }
        } else if text.starts_with('-') {
            let Some(option) = text.find(|c| WITH_VALUE.contains(c) || WITH_OWN_VALUE.contains(c))
            else {
                continue;
            };
            let (option, mut value) = text[option..].split_at(1);
            if value.is_empty() && WITH_VALUE.contains(option) {
                value = &arguments.get(at)?.text;
                at += 1;
            }
            if "IJi".contains(option) {
                replaced = Some(if value.is_empty() { "{}" } else { value }.to_owned());
            }
        } else {
            at -= 1;
            break;
        }
    }
    Some(Options {
        program: at,
        replaced,
    })
}

/// Marks the words of a command of `xargs` in which it replaces a text.
pub(super) fn mark_replaced(words: &mut [Word]) {
    for name in 0..words.len().min(MOST_WORDS) {
        if base(&words[name].text) != "xargs" {
            continue;
        }
        let arguments = &mut words[name + 1..];
        let Some(Options {
            program,
            replaced: Some(replaced),
        }) = options(arguments)
        else {
            continue;
        };
        for word in &mut arguments[program..] {
            if let Some(at) = word.text.find(&replaced) {
                word.varies_at = Some(word.varies_at.map_or(at, |before| before.min(at)));
                word.expands = true;
            }
        }
    }
}

/// Returns the positions at which a command may begin.
pub(super) fn starts(words: &[Word]) -> Vec<usize> {
    let program = options(&words[1..]).map(|options| options.program + 1);
    match program {
        Some(at) => match words.get(at) {
            None => vec![0],
            Some(word) if word.varies_at.is_none() && !runs_another(&word.text) => vec![0, at],
            Some(_) => (0..words.len()).collect(),
        },
        None => (0..words.len()).collect(),
    }
}

fn runs_another(program: &str) -> bool {
    let program = base(program);
    WRAPPERS.has(program)
        || TAKE_LINES.has(program)
        || program.starts_with("ld-")
        || matches!(program, "eval" | "find" | "fd" | "fdfind" | "source" | ".")
}

/// Returns whether what it runs does not depend on what it reads.
pub(super) fn is_known(arguments: &[Word]) -> bool {
    let Some(options) = options(arguments) else {
        return false;
    };
    let Some((program, rest)) = arguments[options.program.min(arguments.len())..].split_first()
    else {
        return true;
    };
    if program.varies_at.is_some() || runs_another(&program.text) {
        return false;
    }
    if !SHELLS.has(base(&program.text)) {
        return true;
    }
    let has_line = rest.iter().any(|word| is_flag(word, 'c'));
    let operand = rest.iter().find(|word| !word.text.starts_with('-'));
    operand.is_some_and(|word| !word.expands && (has_line || is_file(word)))
}
