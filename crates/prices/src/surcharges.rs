//! Prices that are not in the table: those of faster services and of web searches.

use crate::table::Rates;

/// Price of a web search by Anthropic's service in USD, as counted by Claude Code 2.1.330.
pub(crate) const WEB_SEARCH: f64 = 0.01;

/// Price factor of tokens if the service is limited to the United States, as counted by Claude Code 2.1.330.
pub(crate) const US_ONLY: f64 = 1.1;

/// Claude's fast mode: models, then input, output and cache reads in USD per million tokens. A cache write costs 1.25
/// times the input, or twice the input for an hour. The prices are those in Claude Code 2.1.330.
const FAST_CLAUDE: [(&[&str], f64, f64, f64); 4] = [
    (&["claude-opus-4-6", "claude-opus-4-7"], 30.0, 150.0, 3.0),
    (&["claude-opus-4-8", "claude-opus-5"], 10.0, 50.0, 1.0),
    (&["claude-opus-5-5"], 8.0, 40.0, 0.4),
    (&["claude-fable-5-2", "claude-mythos-5-2"], 16.0, 80.0, 0.4),
];

/// OpenAI's priority processing: models, then input, output and cache reads in USD per million tokens. The prices are
/// those of <https://openai.com/api-priority-processing/>.
const PRIORITY: [(&[&str], f64, f64, f64); 6] = [
    (&["gpt-5.5"], 12.5, 75.0, 1.25),
    (&["gpt-5.4"], 5.0, 30.0, 0.5),
    (&["gpt-5.4-mini"], 1.5, 9.0, 0.15),
    (&["gpt-5.2"], 3.5, 28.0, 0.35),
    (
        &["gpt-5", "gpt-5-codex", "gpt-5.1", "gpt-5.1-codex"],
        2.5,
        20.0,
        0.25,
    ),
    (&["gpt-5-mini"], 0.45, 3.6, 0.045),
];

/// Returns the prices of a model's faster service, if known. `name` has no vendor and no date.
pub(crate) fn fast(name: &str) -> Option<Rates> {
    let of = |list: &'static [(&[&str], f64, f64, f64)]| {
        list.iter().find(|(names, ..)| names.contains(&name))
    };
    if let Some((_, input, output, cache_read)) = of(&FAST_CLAUDE) {
        return Some(Rates {
            input: *input,
            output: *output,
            cache_read: *cache_read,
            cache_write: input * 1.25,
            cache_write_1h: input * 2.0,
        });
    }
    let (_, input, output, cache_read) = of(&PRIORITY)?;
    Some(Rates {
        input: *input,
        output: *output,
        cache_read: *cache_read,
        cache_write: *input,
        cache_write_1h: *input,
    })
}
