// Text of tools, unchanged: a long one in pieces.

import {h, put} from './dom.js';

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
