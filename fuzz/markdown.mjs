// Changes texts and reads them as Markdown, as the page does. `.ci/fuzz markdown` runs it:
//
//   node markdown.mjs SECONDS FOUND PAGE TEXTS…
//
// PAGE is a folder with the modules of the page, FOUND one for a text with a fault, TEXTS are files to begin with. A text
// that makes a tree of a new outline is kept and changed further, so that what is rare becomes the rule.

import assert from 'node:assert/strict';
import {readFileSync, writeFileSync} from 'node:fs';
import {join, resolve} from 'node:path';
import {pathToFileURL} from 'node:url';

const [seconds, found, page, ...files] = process.argv.slice(2);
/// The browser has one, which knows every entity.
globalThis.DOMParser = class {
  parseFromString(text) {
    return {documentElement: {textContent: text.replace('&lt;', '<').replace('&semi;', ';')}};
  }
};
const {definitions, parse} = await import(pathToFileURL(resolve(page, 'markdown.js')));

/// Length of a text that is kept, and of one that is repeated to see that the time is linear, in characters.
const LONGEST = 4000;
const LONG = 400_000;
/// Time in which the long one is read, in milliseconds: many times what it takes.
const LIMIT = 10_000;

// Made by hand: what has a meaning somewhere.
const MARKS = ['*', '**', '_', '__', '~~', '`', '```', '~~~', '#', '## ', '> ', '- ', '1. ', '10) ', '- [ ] ', '- [x] ', '|', '|-|:-:|',
  '---', '===', '\n', '\n\n', '\r\n', '\t', '    ', '  \n', '\\', '\\\n', '[', ']', '](', ')', '](<', '>)', ' "t")', '![', '<https://a.b>', 'https://a.b/c_d_(e)', 'www.a.b',
  'a@b.c', '&amp;', '&#0;', '&', '<b>', '</div>', '<!--', '-->', '<pre>', '[a]: /b', '[a]', '[a][b]', ': ', ' \'t\'', '\0', '\u{feff}', '\u{2028}', '\ud83d', '\u{1f600}', 'e\u{301}', '\u{a0}', 'a', ' '];

let state = Date.now() | 0;
/// A whole number below `end`, other ones in each run (mulberry32): a text with a fault is kept.
function below(end) {
  state = (state + 0x6d2b79f5) | 0;
  let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
  mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
  return ((mixed ^ (mixed >>> 14)) >>> 0) % Math.max(end, 1);
}
const oneOf = (list) => list[below(list.length)];

function changed(text) {
  for (let times = below(4) + 1; times > 0; times--) {
    const at = below(text.length + 1);
    const end = at + below(Math.min(40, text.length - at) + 1);
    const other = oneOf(texts);
    const from = below(other.length);
    switch (below(7)) {
      case 0: text = text.slice(0, at) + text.slice(end); break;
      case 1: text = text.slice(0, at) + text.slice(at, end).repeat(2 + below(20)) + text.slice(end); break;
      case 2: text = text.slice(0, at) + other.slice(from, from + below(200)) + text.slice(at); break;
      case 3: text = text.split('\n').map((line) => oneOf(['', '', '> ', '  ', '- ']) + line).join('\n'); break;
      default: text = text.slice(0, at) + oneOf(MARKS) + text.slice(below(2) ? at : end);
    }
  }
  return text.slice(0, LONGEST);
}

/// A tree as the types in it, each list by the power of two of its length.
function outline(blocks) {
  const few = (list) => list.slice(0, 4).map((node) => `${node.type ?? ''}${outline(node.children ?? node.inlines ?? [])}`);
  return blocks.length === 0 ? '' : `(${Math.round(Math.log2(blocks.length))} ${few(blocks)})`;
}

/// A tree without its places.
const placeless = (blocks) => JSON.stringify(blocks, (name, value) => (['from', 'sure', 'to'].includes(name) ? undefined : value));

function check(text) {
  const blocks = parse(text);
  const lines = text.split('\n');
  let last = 0;
  for (const [i, block] of blocks.entries()) {
    assert.ok(Number.isInteger(block.from) && block.from >= last && block.from < lines.length, `block ${i} begins at line ${block.from} of ${lines.length}`);
    last = block.from;
    // A text that grows is read again from here.
    if (i > 0 && block.sure < lines.length - 1) {
      const rest = parse(lines.slice(block.from).join('\n'), definitions(blocks.slice(0, i)));
      assert.equal(placeless(rest), placeless(blocks.slice(i)), `the rest from block ${i} is read in another way`);
    }
  }
  return blocks;
}

const texts = files.map((file) => readFileSync(file, 'utf8')).flatMap((text) => text.match(/[^]{1,2000}(?:\n\n|$)/g) ?? []);
const seen = new Set();
const end = Date.now() + 1000 * Number(seconds);
let count = 0;
let longest = 0;
while (Date.now() < end) {
  const text = count < texts.length ? texts[count] : changed(oneOf(texts));
  count += 1;
  try {
    const shape = outline(check(text));
    if (!seen.has(shape)) {
      seen.add(shape);
      if (count > texts.length) texts.push(text);
    }
    if (count % 500 === 0 && text !== '') {
      const start = Date.now();
      parse(text.repeat(Math.ceil(LONG / text.length)));
      longest = Math.max(longest, Date.now() - start);
      assert.ok(Date.now() - start < LIMIT, `${LONG} characters took ${Date.now() - start} ms`);
    }
  } catch (error) {
    const file = join(found, `markdown-${count}.md`);
    writeFileSync(file, text);
    console.log(`${file}: ${error.stack}`);
    process.exit(1);
  }
}
console.log(`${count} texts, ${seen.size} outlines; ${LONG} characters took at most ${longest} ms`);
