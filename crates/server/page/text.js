// A subset of Markdown as elements: code, bold, headings, lists. Everything else is
// shown as it is. Nothing is ever parsed as HTML, and links stay text.

import {h, put} from './dom.js';

/// The elements of a text.
export function formatted(text) {
  const blocks = [];
  let lines = [];
  let list;
  const flush = () => {
    if (lines.length > 0) blocks.push(h('p', inline(lines.join('\n'))));
    lines = [];
    list = undefined;
  };
  const all = text.split('\n');
  for (let i = 0; i < all.length; i++) {
    const line = all[i];
    const fence = /^ {0,3}(```+|~~~+)/.exec(line);
    if (fence) {
      flush();
      const code = [];
      const end = fence[1];
      for (i++; i < all.length && !all[i].trimStart().startsWith(end); i++) code.push(all[i]);
      blocks.push(h('pre', h('code', code.join('\n'))));
      continue;
    }
    const heading = /^(#{1,6}) +(.*)$/.exec(line);
    const item = /^\s*(?:[-*]|\d+[.)]) +(.*)$/.exec(line);
    if (heading) {
      flush();
      blocks.push(h('p.heading', inline(heading[2])));
    } else if (item) {
      if (!list) {
        flush();
        list = h(/^\s*\d/.test(line) ? 'ol' : 'ul');
        blocks.push(list);
      }
      list.append(h('li', inline(item[1])));
    } else if (line.trim() === '') {
      flush();
    } else {
      if (list) flush();
      lines.push(line);
    }
  }
  flush();
  return blocks;
}

/// Code and bold in one line.
export function inline(text) {
  const parts = [];
  let rest = 0;
  for (const match of text.matchAll(/`([^`\n]+)`|\*\*([^*\n]+)\*\*/g)) {
    parts.push(text.slice(rest, match.index));
    parts.push(match[1] === undefined ? h('strong', match[2]) : h('code', match[1]));
    rest = match.index + match[0].length;
  }
  parts.push(text.slice(rest));
  return parts;
}

/// Maximum length of a tool's text that is shown without a click.
const LONGEST = 20_000;
/// Length that a click adds: a browser lays out so much at once without a pause.
const PIECE = 200_000;

/// Shows the input or output of a tool unchanged.
export function block(text, name = 'pre') {
  if (text.length <= LONGEST) return h(name, text);
  const element = h(name);
  return h('div', element, grow(element, text, LONGEST));
}

/// Shows the beginning of a long text in `element`, and returns the button that shows more.
export function grow(element, text, first) {
  let shown = 0;
  const add = (length) => {
    let end = Math.min(text.length, shown + length);
    // Both halves of a character stay together.
    if (/[\ud800-\udbff]/.test(text[end - 1]) && end < text.length) end += 1;
    put(element, text.slice(shown, end));
    shown = end;
    if (shown === text.length) more.remove();
    else more.textContent = `Show more: ${Math.ceil((text.length - shown) / 1000)} kB are left`;
  };
  const more = h('button', {type: 'button', onclick: () => add(PIECE)});
  add(first);
  return more;
}
