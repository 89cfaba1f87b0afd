// The addresses, titles and labels of links in Markdown.

import {plain} from './entity.js';

/// Maximum depth of parentheses in an address.
const PARENTHESES = 32;
/// Maximum length of a label.
const LONGEST = 999;
const LABEL = /\[((?:[^\\[\]]|\\[^]){0,1000})\]/y;

/// Reads a label in brackets.
export function labelAt(text, at) {
  LABEL.lastIndex = at;
  const found = LABEL.exec(text);
  return found && found[1].length <= LONGEST ? {label: found[1], end: LABEL.lastIndex} : undefined;
}

/// What a label is known by: neither case nor kinds of white space matter. Empty if it is none.
export const keyOf = (label) => (label.length > LONGEST ? '' : label.replace(/[ \t\n]+/g, ' ').trim().toLowerCase().toUpperCase());

/// Reads `(address "title")`.
export function destination(text, begin) {
  const found = addressAt(text, space(text, begin + 1)) ?? {href: '', end: begin + 1};
  let at = space(text, found.end);
  const titled = at > found.end ? titleAt(text, at) : undefined;
  if (titled) at = space(text, titled.end);
  return text[at] === ')' ? {href: found.href, title: titled?.title, end: at + 1} : undefined;
}

/// Reads `[label]: address "title"`, of which the last line has nothing else, and returns the end of that line.
export function definition(text, begin) {
  const found = labelAt(text, begin);
  const key = keyOf(found?.label ?? '');
  if (key === '' || text[found.end] !== ':') return undefined;
  const address = addressAt(text, space(text, found.end + 1));
  if (!address) return undefined;
  const at = space(text, address.end);
  const titled = at > address.end ? titleAt(text, at) : undefined;
  const end = titled && lineEnd(text, titled.end);
  if (end !== undefined) return {key, href: address.href, title: titled.title, end};
  const short = lineEnd(text, address.end);
  return short === undefined ? undefined : {key, href: address.href, end: short};
}

/// The end of the white space at a place, which may have an end of a line in it.
function space(text, at) {
  while (' \t\n'.includes(text[at] ?? 'x')) at += 1;
  return at;
}

/// The end of the line, if nothing else is in it.
function lineEnd(text, at) {
  while (' \t'.includes(text[at] ?? 'x')) at += 1;
  return at === text.length || text[at] === '\n' ? at : undefined;
}

/// Reads an address; without brackets, an empty one is none.
function addressAt(text, begin) {
  if (text[begin] === '<') {
    const end = after(text, begin + 1, '>', '<\n');
    return end === undefined ? undefined : {href: plain(text.slice(begin + 1, end)), end: end + 1};
  }
  let at = begin;
  let depth = 0;
  for (; at < text.length; at++) {
    const character = text[at];
    if (character === '\\' && /[!-/:-@[-`{-~]/.test(text[at + 1] ?? '')) at += 1;
    else if (character === '(') depth += 1;
    else if (character === ')' && depth-- === 0) break;
    else if (/[\p{Cc} ]/u.test(character)) break;
    if (depth > PARENTHESES) return undefined;
  }
  return depth > 0 || at === begin ? undefined : {href: plain(text.slice(begin, at)), end: at};
}

/// Reads a title in quotes or parentheses.
function titleAt(text, begin) {
  const ending = {'"': '"', "'": "'", '(': ')'}[text[begin]];
  const end = ending && after(text, begin + 1, ending, ending === ')' ? '(' : '');
  return end === undefined ? undefined : {title: plain(text.slice(begin + 1, end)), end: end + 1};
}

/// The place of a character that is not escaped, unless one of others comes before it.
function after(text, begin, character, others) {
  for (let at = begin; at < text.length; at++) {
    if (text[at] === '\\') at += 1;
    else if (text[at] === character) return at;
    else if (others.includes(text[at])) return undefined;
  }
  return undefined;
}
