// The hunks of a changed file, unified or side by side. Numbers and signs are made by the style sheet, so that a
// selection has the text alone.

import {copier, h, put} from './dom.js';
import {grow} from './text.js';

/// Number of lines that are shown at once; a click shows as many more.
const PIECE = 2000;
/// Number of lines in one element, which is laid out only near the window.
const CHUNK = 100;
/// Maximum length of a line that is shown without a click.
const LONGEST = 4000;

const KINDS = {added: 'added', deleted: 'deleted', range: 'range'};

/// Shows the hunks of a file.
export function hunksOf(file, isSplit) {
  const every = file.hunks.flatMap((hunk) => hunk.lines);
  const total = every.length + file.hunks.length;
  const form = {
    digits: String(file.hunks.reduce((most, hunk) => Math.max(most, hunk.oldStart + hunk.oldLines, hunk.newStart + hunk.newLines), 1)).length,
    // Where each line ends so, it is no difference.
    isCrlf: every.length > 0 && every.every((line) => line.text.endsWith('\r')),
  };
  // Of a new or a deleted file there is one side.
  const hasBoth = every.some((line) => line.kind !== 'added') && every.some((line) => line.kind !== 'deleted');
  return boxOf((isSplit && hasBoth ? pairs : lines)(file.hunks, form), total, form, () => patchOf(file));
}

/// Shows lines without numbers, such as of a part of a file.
export function partOf(all) {
  const content = all.filter(({kind}) => kind !== 'range');
  const form = {digits: 0, isCrlf: content.length > 0 && content.every((line) => line.text.endsWith('\r'))};
  const rows = function* () {
    for (const line of all) yield {element: lineOf(line, undefined, undefined, {...form, isCrlf: form.isCrlf && line.kind !== 'range'}), count: 1};
  };
  return boxOf(rows(), all.length, form, () => `${all.map(signed).join('\n')}\n`);
}

const SIGNS = {added: '+', deleted: '-', range: ''};
const signed = ({kind, text, noNewline}) => `${SIGNS[kind] ?? ' '}${text}${noNewline ? '\n\\ No newline at end of file' : ''}`;
export const rangeOf = ({oldStart, oldLines, newStart, newLines, section}) => `@@ -${oldStart},${oldLines} +${newStart},${newLines} @@${section ? ` ${section}` : ''}`;

/// The hunks of a file as a patch.
function patchOf({path, oldPath, status, hunks}) {
  const names = [status === 'added' ? '--- /dev/null' : `--- a/${oldPath ?? path}`, status === 'deleted' ? '+++ /dev/null' : `+++ b/${path}`];
  return `${[...names, ...hunks.flatMap((hunk) => [rangeOf(hunk), ...hunk.lines.map(signed)])].join('\n')}\n`;
}

/// Shows rows, as many at once as a browser lays out without a pause. `text` returns all of them, to be copied.
function boxOf(rows, total, form, text) {
  const box = h(form.digits === 0 ? 'div.hunks.part' : 'div.hunks', {onpointerdown: choose});
  box.style.setProperty('--digits', form.digits);
  let shown = 0;
  const more = h('button.more-lines', {type: 'button', onclick: () => add()});
  const add = () => {
    for (const end = shown + PIECE; shown < end;) {
      const chunk = h('pre');
      let size = 0;
      for (let row; size < CHUNK && !(row = rows.next()).done; size += row.value.count) chunk.append(row.value.element);
      if (size === 0) {
        shown = total;
        break;
      }
      chunk.style.setProperty('--lines', chunk.childElementCount);
      box.insertBefore(chunk, more);
      shown += size;
    }
    if (shown < total) {
      more.textContent = `Show more: ${(total - shown).toLocaleString('en')} lines are left`;
      return;
    }
    // The focus stays near.
    const last = more.previousElementSibling;
    if (document.activeElement === more && last) {
      last.tabIndex = -1;
      last.focus({preventScroll: true});
    }
    more.remove();
  };
  put(box, copier('this diff', text), more);
  add();
  return [form.isCrlf && h('p.note', 'Its lines end with CR LF.'), box].filter(Boolean);
}

/// Side by side, a selection stays on the side on which it begins.
function choose(event) {
  const cell = event.target.closest?.('.pair > *');
  if (cell) event.currentTarget.dataset.side = cell === cell.parentElement.firstElementChild ? 'old' : 'new';
}

const range = (hunk) => h('code.range', rangeOf(hunk));

function lineOf({kind, text, noNewline}, old, now, {digits, isCrlf}) {
  const number = (value) => (value === undefined ? '' : String(value)).padStart(digits);
  const shown = isCrlf ? text.slice(0, -1) : text;
  const element = h(`code.${KINDS[kind] ?? 'same'}`, {'data-old': number(old), 'data-new': number(now)});
  if (noNewline) element.classList.add('no-newline');
  if (shown.length > LONGEST) {
    const part = h('code');
    return put(element, part, grow(part, shown, LONGEST));
  }
  // An empty line has a height, and is in a selection.
  return put(element, shown === '' ? h('br') : shown);
}

/// One line below the other.
function* lines(hunks, form) {
  for (const hunk of hunks) {
    yield {element: range(hunk), count: 1};
    let {oldStart: old, newStart: now} = hunk;
    for (const line of hunk.lines) {
      const element = lineOf(line, line.kind === 'added' ? undefined : old, line.kind === 'deleted' ? undefined : now, form);
      yield {element, count: 1};
      if (line.kind !== 'added') old += 1;
      if (line.kind !== 'deleted') now += 1;
    }
  }
}

/// The old text on the left, the new one on the right.
function* pairs(hunks, form) {
  const side = (cell) => (cell ? lineOf(cell.line, cell.old, cell.now, form) : h('span.none'));
  const pair = (left, right) => ({element: h('div.pair', side(left), side(right)), count: new Set([left, right].filter(Boolean).map((cell) => cell.line)).size});
  for (const hunk of hunks) {
    yield {element: range(hunk), count: 1};
    let {oldStart: old, newStart: now} = hunk;
    let left = [];
    let right = [];
    const both = function* () {
      for (let i = 0; i < Math.max(left.length, right.length); i++) yield pair(left[i], right[i]);
      left = [];
      right = [];
    };
    for (const line of hunk.lines) {
      if (line.kind === 'deleted') {
        // Deleted lines that follow added ones begin another change.
        if (right.length > 0) yield* both();
        left.push({line, old: old++});
      } else if (line.kind === 'added') {
        right.push({line, now: now++});
      } else {
        yield* both();
        yield pair({line, old: old++}, {line, now: now++});
      }
    }
    yield* both();
  }
}
