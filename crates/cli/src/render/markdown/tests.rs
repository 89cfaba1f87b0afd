use std::fs;
use std::path::{Path, PathBuf};

use proptest::prelude::*;
use serde_json::Value;

use super::*;

/// The texts that the page shows, too, with outlines of what a renderer has to show.
fn corpus() -> Vec<(PathBuf, String, Value)> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../clients/tests/markdown");
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_some_and(|it| it == "md") {
            let outline = fs::read(path.with_extension("json")).unwrap();
            let text = fs::read_to_string(&path).unwrap();
            found.push((path, text, serde_json::from_slice(&outline).unwrap()));
        }
    }
    found
}

fn pieces(pieces: impl IntoIterator<Item = String>, width: usize) -> String {
    let mut markdown = Markdown::new();
    let mut shown: String = (pieces.into_iter())
        .map(|piece| markdown.push(&piece, Some(width)))
        .collect();
    shown.push_str(&markdown.finish());
    // Each piece of code has its own style.
    let shown = shown.replace("\u{1b}[0m\u{1b}[36m", "");
    shown.replace("\u{1b}[36m\u{1b}[0m", "")
}

fn raw(text: &str, width: usize) -> String {
    pieces([text.to_owned()], width)
}

fn plain(text: &str, width: usize) -> String {
    let shown = raw(text, width);
    anstream::adapter::strip_str(shown.trim_end_matches('\n')).to_string()
}

/// Collects the words of an outline.
fn words_of(outline: &Value, words: &mut Vec<String>) {
    match outline {
        Value::String(text) => {
            // An address stands between a word and its comma.
            let bare = |word: &str| {
                word.trim_matches(|c: char| c.is_ascii_punctuation())
                    .to_owned()
            };
            let bare = text.split_whitespace().map(bare);
            words.extend(bare.filter(|word| !word.is_empty()));
        }
        Value::Array(all) => all.iter().for_each(|one| words_of(one, words)),
        Value::Object(fields) => {
            // The language of code is shown before it.
            if let Some(language) = fields.get("info") {
                words_of(language, words);
            }
            for (name, value) in fields {
                if !matches!(&**name, "links" | "align" | "list" | "info") {
                    words_of(value, words);
                }
            }
        }
        _ => {}
    }
}

#[test]
fn page_texts_keep_all_their_words_in_any_width() {
    let texts = corpus();
    assert!(texts.len() >= 6);
    for (path, text, outline) in texts {
        let path = path.display();
        let mut words = Vec::new();
        words_of(&outline, &mut words);
        for width in [40, 80, 120] {
            let whole = raw(&text, width);
            let by_character = pieces(text.chars().map(String::from), width);
            assert_eq!(whole, by_character, "{path} {width}");
            let by_line = pieces(text.split_inclusive('\n').map(str::to_owned), width);
            assert_eq!(whole, by_line, "{path} {width}");
            let shown = anstream::adapter::strip_str(&whole).to_string();
            let mut rest = &*shown;
            for word in &words {
                let at = rest.find(&**word);
                let at = at.unwrap_or_else(|| panic!("{path} {width}: {word} in\n{shown}"));
                rest = &rest[at + word.len()..];
            }
            for line in shown.lines() {
                let columns = console::measure_text_width(line);
                assert!(columns < width, "{path} {width}: {line}");
            }
        }
    }
}

#[test]
fn lists_quotes_code_and_tables() {
    let shown = |name: &str| {
        let texts = corpus().into_iter();
        let mut texts = texts.filter(|(path, ..)| path.file_stem().unwrap() == name);
        plain(&texts.next().unwrap().1, 40)
    };
    assert_eq!(
        shown("lists"),
        "\
1. First
   • inner
     1. innermost
   • inner again
2. Second

   A paragraph of it.

   sh
       cargo test
3. Third

Text between.

4. Continues at four
• Another list

  • with space

  • between"
    );
    assert_eq!(
        shown("quotes"),
        "\
│ A quote
│ continues without its mark
│ • with a list
│   │ and a quote
│     code

Heading
Second
────────────────────────────────────────
────────────────────────────────────────"
            .replace(&"─".repeat(40), &"─".repeat(39))
    );
    assert_eq!(
        shown("tables"),
        "\
The counts:
File │ Lines │ a | b │
─────┼───────┼───────┼─────────────────
a.rs │    12 │ bold  │
b.rs │       │       │
c.rs │     1 │   2   │ beyond the
     │       │       │ columns

no | table"
    );
    assert_eq!(
        shown("tasks"),
        "\
☑ done
☐ open
  ☑ inside, done
• [y] no task
• [ ]no task
• [x] no task
☑ done"
    );
    assert_eq!(
        shown("unfinished"),
        "\
A text **that is

│ • still
│   being `written

rust
    fn main() {

        1. not a list"
    );
}

#[test]
fn words_in_a_line() {
    let styled = |text: &str| raw(text, 80);
    assert_eq!(
        styled("a *b* **c d** `e` f"),
        "a \u{1b}[3mb\u{1b}[0m \u{1b}[1mc\u{1b}[0m \u{1b}[1md\u{1b}[0m \u{1b}[36me\u{1b}[0m f"
    );
    assert_eq!(styled("# Title #"), "\u{1b}[1mTitle\u{1b}[0m");
    for (text, shown) in [
        (
            "[docs](https://x.org/a_b \"t\")!",
            "docs (https://x.org/a_b)!",
        ),
        ("<https://x.org> ![i](i.png)", "https://x.org i (i.png)"),
        ("[https://x.org](https://x.org)", "https://x.org"),
        ("a_b_c 2 * 3 * 4 \\*d\\* **e", "a_b_c 2 * 3 * 4 *d* **e"),
        ("&lt;b&gt; &#65; &copy; &#27;[2J", "<b> A © &#27;[2J"),
        (
            "[a] [b][c] f(x)[0] <b> x < y",
            "[a] [b][c] f(x)[0] <b> x < y",
        ),
        ("``a ` b`` `**x**` **`y**`**", "a ` b **x** y**"),
        (
            "1986\\. A year\n1986. Another",
            "1986. A year\n1986. Another",
        ),
        (
            "-not a list\n#nor a title\n+1",
            "-not a list\n#nor a title\n+1",
        ),
        ("a\\\nb  \nc", "a\nb\nc"),
        ("`a\tb` c\td", "a b c d"),
        (
            "|a\tb|`c\td`|\n|-|-|\n|e|f|",
            "a b │ c d\n────┼────\ne   │ f",
        ),
        // The columns of a tab that are not of the indent.
        ("  ```\n\tx", "      x"),
        ("- a\n\n\t\tx", "• a\n\n        x"),
        ("|x| is absolute\nnext", "|x| is absolute\nnext"),
        ("", ""),
        ("\n\n\na\n\n\n\nb\n\n", "a\n\nb"),
    ] {
        assert_eq!(plain(text, 80), shown, "{text}");
        let by_character = pieces(text.chars().map(String::from), 80);
        assert_eq!(by_character, raw(text, 80), "{text}");
    }
}

// All texts of this test are made by hand.
#[test]
fn paragraphs_html_and_numbers_are_those_of_commonmark() {
    for (text, shown) in [
        ("**a\nb** c", "a\nb c"),
        ("> *a\n> b* `c\n> d`", "│ a\n│ b c d"),
        ("- [a\n  b](https://x.org)", "• a\n  b (https://x.org)"),
        ("a *b\n- c*", "a *b\n• c*"),
        ("a *b\n\nc*", "a *b\n\nc*"),
        ("*a\\\nb* c\\", "a\nb c\\"),
        ("*a\\\\\nb* c\\\n\nd", "a\\\nb c\\\n\nd"),
        ("*a**b**c* a**b*c ***d** e*", "abc a**b*c d e"),
        ("*a [b](c*) d* `[e](f`)", "a b (c*) d [e](f)"),
        ("~a~ ~~b~~ *~c~*", "~a~ b ~c~"),
        (
            "[a](<b c>) <irc://x.org> <i@x.org> v<std::string>",
            "a (b c) <irc://x.org> <i@x.org> v<std::string>",
        ),
        ("&HilbertSpace;&nosuch; *&Tab;*", "ℋ&nosuch; &Tab;"),
        ("[a](&#27;[2J) [b](c&#10;d)", "a ([2J) b (cd)"),
        ("<div>\n  *a*\n\n*b*", "<div>\n  *a*\n\nb"),
        (
            "- <!-- *a*\n\n  *b* -->\n  *c*",
            "• <!-- *a*\n\n  *b* -->\n  c",
        ),
        ("a\n<b>\n*c*", "a\n<b>\nc"),
        ("1. a\n1. b\n\n1. c\n2) d", "1. a\n2. b\n\n3. c\n2) d"),
        ("1. [ ] a\n1. [x] b\n   c", "1. ☐ a\n2. ☑ b\n     c"),
        ("-\n\n  a", "• \n\na"),
    ] {
        assert_eq!(plain(text, 80), shown, "{text}");
        let by_character = pieces(text.chars().map(String::from), 80);
        assert_eq!(by_character, raw(text, 80), "{text}");
    }
}

#[test]
fn lines_end_between_words_and_hang_below_the_text() {
    let text = "- one two three four five six\n  seven\n\n> one two three four five";
    assert_eq!(
        plain(text, 20),
        "• one two three\n  four five six\n  seven\n\n│ one two three\n│ four five"
    );
    // Wide characters fill a line, also without spaces.
    let wide = plain("日本語の文章は空白なしで続くので折り返す", 21);
    assert_eq!(wide, "日本語の文章は空白な\nしで続くので折り返す");
    // An address stays in one piece.
    let url = format!("see https://x.org/{}", "a".repeat(40));
    assert_eq!(plain(&url, 20), url.replacen(' ', "\n", 1));
    // Code is not wrapped.
    let code = format!("```\n{}\n```", "x y ".repeat(20).trim());
    assert_eq!(
        plain(&code, 20),
        format!("    {}", "x y ".repeat(20).trim())
    );
}

#[test]
fn a_table_that_is_too_wide_is_wrapped_or_stays_text() {
    let table = "| Name | What it does |\n|---|---|\n| a | one two three four five six |\n";
    assert_eq!(
        plain(table, 24),
        format!(
            "Name │ What it does\n─────┼{}\na    │ one two three\n     │ four five six",
            "─".repeat(17)
        )
    );
    let row = "| aaaaaaaa ".repeat(6);
    let text = format!("{row}|\n{}|\n", "|---".repeat(6));
    assert!(plain(&text, 24).contains("| aaaaaaaa"));
}

#[test]
fn text_is_shown_as_it_comes() {
    let mut markdown = Markdown::new();
    let mut shown = |text: &str| {
        let shown = markdown.push(text, Some(80));
        anstream::adapter::strip_str(&shown).to_string()
    };
    assert_eq!(shown("Hello wor"), "Hello");
    assert_eq!(shown("ld, this "), " world, this");
    // Bold until its end, and a star that ends nothing.
    assert_eq!(shown("is **very bo"), " is");
    assert_eq!(shown("ld** and"), " very bold");
    assert_eq!(shown(" 2 * 3\n- item one"), " and 2 * 3\n• item");
    assert_eq!(shown("\n```\nlet x"), " one\n    let x");
    assert_eq!(shown(" = 1;\n``"), " = 1;\n");
    assert_eq!(shown("`\n"), "");
    // A moment of silence, and a longer one.
    assert_eq!(shown("The **end"), "The");
    assert_eq!(markdown.flush(), "");
    assert_eq!(markdown.release(), " **end");
    assert_eq!(markdown.push("ing** of it", Some(80)), "ing** of");
    assert_eq!(markdown.finish(), " it");
}

// All texts of this test are made by hand.
#[test]
fn nesting_and_columns_have_a_limit() {
    let text = format!("{}{}", "> ".repeat(5000), "a ".repeat(10_000));
    let shown = plain(&text, 80);
    let bars = "│ ".repeat(20);
    assert!(shown.starts_with(&format!("{bars}> > ")), "{shown}");
    for line in shown.lines() {
        let text = line.strip_prefix(&bars).unwrap();
        assert!(text.starts_with(['>', 'a']), "{line}");
    }
    assert!(shown.len() < 200_000, "{}", shown.len());
    let list = format!("{}a", "- ".repeat(22));
    assert_eq!(plain(&list, 80), format!("{}- - a", "• ".repeat(20)));
    let rows = |columns: usize| ["|a|".into(), "|-|".into(), "|".repeat(columns + 1)];
    assert!(table::lay_out(&rows(100), 100_000).is_some());
    assert!(table::lay_out(&rows(101), 100_000).is_none());
    let spaces = format!("a{}b", " ".repeat(70_000));
    assert_eq!(plain(&spaces, 100_000), spaces);
}

// All texts of this test are made by hand.
#[test]
fn a_long_line_is_not_held_until_its_end() {
    for (before, mark) in [
        ("", "-"),
        ("", "*"),
        ("", "_"),
        ("", "- "),
        ("", " "),
        ("a\n", "="),
        ("a\n", " "),
        ("- a\n", " "),
        ("- [x]", " "),
        ("- ", " "),
        ("```\n", "`"),
    ] {
        for after in ["", "x", "\nb"] {
            let text = format!("{before}{}{after}", mark.repeat(5000));
            let parts: Vec<_> = text.as_bytes().chunks(97).collect();
            let parts = parts.into_iter().map(|part| str::from_utf8(part).unwrap());
            let mut markdown = Markdown::new();
            for part in parts.clone() {
                markdown.push(part, Some(80));
                let held = markdown.line.len();
                assert!(held < 2500, "{before:?} {mark:?}: {held}");
            }
            let shown = pieces(parts.map(str::to_owned), 80);
            assert_eq!(shown, raw(&text, 80), "{before:?} {mark:?} {after:?}");
        }
    }
}

proptest! {
    #[test]
    fn output_does_not_depend_on_the_pieces(
        text in "([a-c]|[ ]|[*_`~#>|\\-+.1\\[\\]()<&\\\\!:=]|\n|日|\t|https://){0,60}",
        cuts in prop::collection::vec(1usize..5, 0..60),
        width in 1usize..40,
    ) {
        let mut rest: Vec<char> = text.chars().collect();
        let mut parts = Vec::new();
        for cut in cuts {
            let cut = cut.min(rest.len());
            parts.push(rest.drain(..cut).collect::<String>());
        }
        parts.push(rest.into_iter().collect());
        let shown = pieces(parts, width);
        prop_assert_eq!(&shown, &raw(&text, width));
        // Only styles reach the terminal.
        let plain = anstream::adapter::strip_str(&shown).to_string();
        prop_assert_eq!(plain.find('\u{1b}'), None);
        // No letter is lost, except the language of a fence.
        if !text.contains("```") && !text.contains("~~~") {
            let letters = |text: &str| text.matches(['a', 'b', '日']).count();
            prop_assert!(letters(&plain) >= letters(&text) || text.contains("]("), "{}", plain);
        }
    }
}

#[test]
fn definition_of_a_link_has_its_whole_address() {
    let text = "See [the docs][1].\n\n[1]: https://e.com/__init__.py?a=*b*&c=`d` \"A *title*\"\n[x]: https://e.com/a_b\n";
    assert_eq!(raw(text, 80).trim_end(), text.trim_end());
    for (text, shown) in [
        ("[a]: <e.com/\\_b\\_?c&amp;d>", "[a]: e.com/_b_?c&d"),
        ("[a]: /b&#27;[2J&#x202e;", "[a]: /b[2J"),
        ("- [a]: /_b_", "• [a]: /_b_"),
        ("> [a\\]]: /_b_", "│ [a\\]]: /_b_"),
        // It is none in a paragraph, without an address, or with more text.
        ("a\n[b]: /_c_", "a\n[b]: /c"),
        ("> a\n[b]: /_c_", "│ a\n│ [b]: /c"),
        ("[b]: /c and _more_", "[b]: /c and more"),
        ("[^1]: a _note_", "[^1]: a note"),
        ("[b]:", "[b]:"),
        ("[b", "[b"),
    ] {
        assert_eq!(plain(text, 80), shown, "{text}");
        let by_character = pieces(text.chars().map(String::from), 80);
        assert_eq!(by_character, raw(text, 80), "{text}");
    }
    // What cannot be one is not held back.
    let mut markdown = Markdown::new();
    assert_eq!(markdown.push("[a] b c", Some(80)), "[a] b");
}
