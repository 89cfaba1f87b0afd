// The input of a tool call: its edits as line diffs, and all other arguments beside them. A person allows what is shown,
// so that no argument may be left out.

import {partOf, rangeOf} from './diff.js';
import {h} from './dom.js';
import {block} from './text.js';

const PATH = ['file_path', 'filePath', 'path', 'absolute_path', 'filename', 'file'];
const OLD = ['old_string', 'oldString', 'old_str', 'oldText'];
const NEW = ['new_string', 'newString', 'new_str', 'newText'];
const WHOLE = ['content', 'contents', 'file_text'];
const PATCH = ['patchText', 'patch', 'input', 'diff'];
const DESCRIPTIVE = ['file_path', 'filePath', 'pattern', 'query', 'url', 'path', 'description', 'prompt'];

/// Maximum number of pairs of lines that are compared; above it, all old lines are followed by all new ones.
const MOST_PAIRS = 4_000_000;

/// Number of unchanged lines that are shown around a difference of a whole file.
const AROUND = 3;

const isObject = (value) => typeof value === 'object' && value !== null && !Array.isArray(value);
const named = (input, names) => names.find((name) => typeof input[name] === 'string');

/// Returns the most descriptive argument in one line, and its name if the line has all of it.
export function headline(input, directory) {
  if (!isObject(input)) return typeof input === 'string' ? {line: input, name: ''} : {line: Array.isArray(input) ? onlyText(input) : ''};
  if (Array.isArray(input.command) && input.command.every((one) => typeof one === 'string')) return {line: input.command.join(' ')};
  const only = Object.keys(input).filter((name) => typeof input[name] === 'string');
  const name = named(input, ['command', 'cmd', ...DESCRIPTIVE].filter((name) => input[name] !== '')) ?? (only.length === 1 ? only[0] : undefined);
  if (name === undefined) return {line: ''};
  const line = input[name];
  // Some CLIs start each command in a shell; the details have it whole.
  const inner = /^(?:command|cmd)$/.test(name) && /^(?:\/(?:usr\/)?bin\/)?(?:ba|z)?sh -l?c (?:'([^']+)'|([\w@%+=:,./-]+))$/.exec(line);
  if (inner) return {line: inner[1] ?? inner[2]};
  // Only of the path of a file: a command without its directory is another one.
  const isShort = directory && PATH.includes(name) && line.startsWith(`${directory}/`);
  return {line: isShort ? line.slice(directory.length + 1) : line, name};
}

const onlyText = (list) => (list.length === 1 && typeof list[0] === 'string' ? list[0] : '');

/// Returns the summary of a tool call.
export const subject = (input, directory) => headline(input, directory).line;

/// Shows the whole input of a tool call, except the argument with the name `shown`. `before` is the text of a file that the
/// call writes whole, if it is known.
export function details(input, shown, before) {
  if (input === undefined || input === null) return [];
  if (!isObject(input)) return shown === '' ? [] : [block(asText(input))];
  return partsOf({...input}, undefined, shown, before);
}

/// Shows what can be shown as a diff, and then the other arguments.
function partsOf(rest, whole, without, before) {
  const shown = [];
  const lines = take(rest, whole, before);
  if (lines) shown.push(...partOf(lines));
  if (without !== undefined) delete rest[without];
  for (const [name, kind] of [['edits', 'edit'], ['changes', 'change']]) {
    const list = rest[name];
    if (!Array.isArray(list) || list.length === 0 || !list.every(isObject)) continue;
    delete rest[name];
    list.forEach((one, i) => shown.push(h('section.edit', list.length > 1 && h('p.label', `${kind} ${i + 1} of ${list.length}`), partsOf({...one}, wordOf(one)))));
  }
  const names = Object.keys(rest);
  if (names.length > 0) shown.push(h('dl.arguments', names.map((name) => [h('dt', h('code', name === '' ? '""' : name)), h('dd', block(asText(rest[name])))])));
  return shown;
}

/// An argument as text: a string as it is, unless that looks like nothing or like another value.
function asText(value) {
  if (typeof value === 'string' && value.trim() !== '') {
    try {
      JSON.parse(value);
    } catch {
      return value;
    }
  }
  return JSON.stringify(value, null, 2);
}

/// The word of a change that has the whole text of its file.
function wordOf(change) {
  const word = isObject(change.kind) ? change.kind.type : change.kind;
  return ['add', 'delete'].includes(word) ? word : undefined;
}

/// Removes the arguments of an edit, and returns its lines; undefined if there is none.
function take(rest, whole, before) {
  const [old, now] = [named(rest, OLD), named(rest, NEW)];
  const names = [];
  let lines = [];
  const text = named(rest, WHOLE);
  const patch = named(rest, PATCH);
  if (old !== undefined && now !== undefined) {
    names.push(old, now);
    lines = compare(rest[old], rest[now]);
  } else if (text !== undefined && named(rest, PATH) !== undefined) {
    names.push(text);
    lines = before === undefined ? compare('', rest[text], true) : changed(compare(before, rest[text], true));
  } else if (patch !== undefined && isPatch(rest[patch])) {
    names.push(patch);
    lines = patchLines(rest[patch]);
  } else if (whole && named(rest, ['diff']) !== undefined && named(rest, PATH) !== undefined) {
    names.push('diff');
    lines = whole === 'add' ? compare('', rest.diff, true) : compare(rest.diff, '', true);
  }
  // Of two empty texts there is nothing to show.
  if (lines.length === 0) return undefined;
  for (const name of names) delete rest[name];
  return lines;
}

/// The lines of a whole file without those that are far from a difference. Of a file without one, all are there.
function changed(lines) {
  const isNear = new Array(lines.length).fill(false);
  lines.forEach(({kind}, i) => {
    if (kind !== 'context') isNear.fill(true, Math.max(0, i - AROUND), i + AROUND + 1);
  });
  const hunks = [];
  let [oldStart, newStart] = [1, 1];
  lines.forEach((line, i) => {
    if (isNear[i]) {
      if (!isNear[i - 1]) hunks.push({oldStart, oldLines: 0, newStart, newLines: 0, lines: []});
      const hunk = hunks.at(-1);
      hunk.lines.push(line);
      if (line.kind !== 'added') hunk.oldLines += 1;
      if (line.kind !== 'deleted') hunk.newLines += 1;
    }
    if (line.kind !== 'added') oldStart += 1;
    if (line.kind !== 'deleted') newStart += 1;
  });
  if (isNear.every(Boolean) || hunks.length === 0) return lines;
  return hunks.flatMap((hunk) => [{kind: 'range', text: rangeOf(hunk)}, ...hunk.lines]);
}

/// Whether a text begins as a patch does. The text of a file may have the marks of one elsewhere.
const isPatch = (text) => /^\s*\*\*\* Begin Patch/.test(text) || ['@@ ', '--- ', 'diff '].some((mark) => text.startsWith(mark));

function patchLines(text) {
  let isIn = false;
  return text.replace(/\n$/, '').split('\n').map((line) => {
    const kind = {'+': 'added', '-': 'deleted', ' ': 'context'}[line[0]];
    if (/^(@@|\*\*\* )/.test(line)) isIn = true;
    else if (line.startsWith('diff ')) isIn = false;
    else if (isIn && kind) return {kind, text: line.slice(1)};
    return {kind: 'range', text: line};
  });
}

/// The lines of a text, and whether the last of them ends.
function split(text) {
  const lines = text.split('\n');
  const ends = lines.at(-1) === '';
  if (ends) lines.pop();
  return [lines, ends];
}

/// Returns the lines of two texts: what is in both once, and the difference. Of a file, a last line without an end is
/// marked; of a part of a file, if only one of the two has it.
export function compare(before, after, isFile) {
  const [old, oldEnds] = split(before);
  const [now, nowEnds] = split(after);
  const differs = before !== '' && after !== '' && oldEnds !== nowEnds;
  const line = (kind, lines, i, ends) => {
    const noNewline = !ends && i === lines.length - 1 && (differs || isFile);
    return {kind, text: lines[i], ...(noNewline ? {noNewline} : {})};
  };
  // Equal lines have equal numbers, which are compared faster.
  const numbers = new Map();
  const numbered = (lines, ends) => lines.map((text, i) => {
    const key = differs && !ends && i === lines.length - 1 ? `${text}\n` : text;
    if (!numbers.has(key)) numbers.set(key, numbers.size);
    return numbers.get(key);
  });
  const [oldNumbers, newNumbers] = [numbered(old, oldEnds), numbered(now, nowEnds)];
  const same = (i, j) => oldNumbers[i] === newNumbers[j];
  let first = 0;
  while (first < old.length && first < now.length && same(first, first)) first += 1;
  let [oldEnd, nowEnd] = [old.length, now.length];
  while (oldEnd > first && nowEnd > first && same(oldEnd - 1, nowEnd - 1)) {
    oldEnd -= 1;
    nowEnd -= 1;
  }
  const [height, width] = [oldEnd - first, nowEnd - first];
  const lines = [];
  for (let i = 0; i < first; i++) lines.push(line('context', now, i, nowEnds));
  let [i, j] = [0, 0];
  if (height * width <= MOST_PAIRS) {
    // The number of lines that the rests have in common.
    const common = Array.from({length: height + 1}, () => new Uint32Array(width + 1));
    for (let i = height - 1; i >= 0; i--) {
      for (let j = width - 1; j >= 0; j--) common[i][j] = same(first + i, first + j) ? common[i + 1][j + 1] + 1 : Math.max(common[i + 1][j], common[i][j + 1]);
    }
    while (i < height && j < width) {
      if (same(first + i, first + j)) {
        lines.push(line('context', now, first + j, nowEnds));
        i += 1;
        j += 1;
      } else if (common[i + 1][j] >= common[i][j + 1]) {
        lines.push(line('deleted', old, first + i++, oldEnds));
      } else {
        lines.push(line('added', now, first + j++, nowEnds));
      }
    }
  }
  while (i < height) lines.push(line('deleted', old, first + i++, oldEnds));
  while (j < width) lines.push(line('added', now, first + j++, nowEnds));
  for (let i = nowEnd; i < now.length; i++) lines.push(line('context', now, i, nowEnds));
  return lines;
}
