// Markdown as a tree: CommonMark 0.31 with the tables, task lists, strikethrough and bare addresses of GitHub.
// HTML is a text of its own. The text is that of an agent, so that every step is linear in its length: containers are
// nested to a limit, and the search for the beginning of an emphasis never repeats itself.

import {plain} from './entity.js';
import {htmlBlock} from './html.js';
import {inlines} from './inline.js';
import {definition} from './link.js';

/// Maximum depth of lists and quotes; what is deeper is text.
const DEEPEST = 24;

const FENCE = /^(`{3,}(?=[^`]*$)|~{3,})[ \t]*(.*)$/;
const RULE = /^(?:(?:\*[ \t]*){3,}|(?:_[ \t]*){3,}|(?:-[ \t]*){3,})$/;
const MARKER = /^(?:([-*+])|(\d{1,9})([.)]))(?=[ \t]|$)/;
const COLUMN = /^[ \t]*(:?)-+(:?)[ \t]*$/;

/// Returns the blocks of a text. Each has the line `from` which it begins, and the line `sure` from which on no further
/// text makes it a part of the block before it. `known` are definitions of a text before it.
export function parse(text, known = new Map()) {
  const reader = new Reader();
  const lines = text.split('\n');
  if (lines.at(-1) === '') lines.pop();
  for (const line of lines) reader.take(line.endsWith('\r') ? line.slice(0, -1) : line);
  separate(reader.root);
  const own = definitions(reader.root.children);
  for (const block of reader.root.children) finish(block, (key) => known.get(key) ?? own.get(key));
  return reader.root.children;
}

/// The definitions of addresses in blocks, each by its label: of several, the first.
export function definitions(blocks, found = new Map()) {
  for (const block of blocks) {
    if (block.type === 'definition' && !found.has(block.key)) found.set(block.key, block);
    if (block.children) definitions(block.children, found);
  }
  return found;
}

class Reader {
  constructor() {
    this.root = {type: 'root', children: [], from: 0};
    /// Containers that may go on, the outermost first.
    this.open = [this.root];
    /// The paragraph, code or table that may go on.
    this.leaf = undefined;
    this.number = -1;
  }

  take(line) {
    this.line = line;
    this.at = 0;
    this.column = 0;
    this.number += 1;
    let matched = 1;
    while (matched < this.open.length && this.goesOn(this.open[matched])) matched += 1;
    const isWhole = matched === this.open.length;
    if (isWhole && (this.code() || this.html())) return;
    let isClosed = isWhole;
    const close = () => {
      if (!isClosed) {
        this.open.length = matched;
        this.leaf = undefined;
      }
      isClosed = true;
    };
    // Containers that do not go on are no depth, although they are closed only when something else begins.
    const depth = () => (isClosed ? this.open.length : matched);
    while (this.begins(close, isWhole, depth())) if (this.line === undefined) return;
    const rest = this.rest();
    const isBlank = rest.trim() === '';
    // The rest of a paragraph needs no marks of the containers that it is in.
    if (isBlank || isClosed || this.leaf?.type !== 'paragraph') close();
    this.text(rest, isBlank);
  }

  text(rest, isBlank) {
    const {leaf} = this;
    if (isBlank) {
      this.leaf = undefined;
      return;
    }
    if (leaf?.type === 'paragraph') leaf.lines.push(rest.trimStart());
    else if (leaf?.type === 'table') leaf.rows.push(cells(rest));
    else this.leaf = this.add({type: 'paragraph', lines: [rest.trimStart()]});
    this.leaf.to = this.number;
  }

  /// Adds a block to the innermost container that takes it.
  add(block) {
    if (block.type !== 'item' && this.open.at(-1).type === 'list') this.open.pop();
    Object.assign(block, {from: this.number, to: this.number, ...block});
    this.open.at(-1).children.push(block);
    this.leaf = undefined;
    return block;
  }

  enter(block) {
    this.open.push(this.add({...block, children: []}));
  }

  /// The width of the white space at this place, and where it ends.
  indent() {
    let [at, column] = [this.at, this.column];
    for (; ; at++) {
      if (this.line[at] === ' ') column += 1;
      else if (this.line[at] === '\t') column += 4 - (column % 4);
      else return {width: column - this.column, end: at};
    }
  }

  /// Moves over so many columns of white space; of a tab that reaches farther, the rest is spaces.
  skip(columns) {
    for (let left = columns; left > 0 && ' \t'.includes(this.line[this.at] ?? 'x');) {
      const width = this.line[this.at] === '\t' ? 4 - (this.column % 4) : 1;
      this.at += 1;
      this.column += Math.min(width, left);
      if (width > left) {
        this.line = ' '.repeat(width - left) + this.line.slice(this.at);
        this.at = 0;
      }
      left -= width;
    }
  }

  /// Moves over characters that are no white space.
  pass(length) {
    this.at += length;
    this.column += length;
  }

  rest() {
    return this.line.slice(this.at);
  }

  goesOn(container) {
    const {width, end} = this.indent();
    if (container.type === 'list') return true;
    if (container.type === 'quote') {
      if (width > 3 || this.line[end] !== '>') return false;
      this.skip(width);
      this.pass(1);
      this.skip(1);
      container.to = this.number;
      return true;
    }
    if (end === this.line.length) {
      if (container.children.length === 0) return false;
      this.skip(width);
      return true;
    }
    if (width < container.padding) return false;
    this.skip(container.padding);
    return true;
  }

  /// Takes a line of code, and returns whether it is one.
  code() {
    const {leaf} = this;
    if (leaf?.type !== 'code') return false;
    const {width, end} = this.indent();
    if (leaf.fence) {
      const mark = width < 4 && /^(`{3,}|~{3,})[ \t]*$/.exec(this.line.slice(end));
      leaf.to = this.number;
      if (mark && mark[1].startsWith(leaf.fence)) {
        leaf.isClosed = true;
        this.leaf = undefined;
        return true;
      }
      this.skip(leaf.padding);
    } else {
      if (width < 4 && end < this.line.length) {
        this.leaf = undefined;
        return false;
      }
      this.skip(4);
      if (end < this.line.length) leaf.to = this.number;
    }
    leaf.lines.push(this.rest());
    return true;
  }

  /// Takes a line of HTML, and returns whether it is one.
  html() {
    const {leaf} = this;
    if (leaf?.type !== 'html' || (!leaf.end && isBlank(this.rest()))) return false;
    this.addHtml(leaf);
    return true;
  }

  addHtml(leaf) {
    leaf.lines.push(this.rest());
    leaf.to = this.number;
    this.leaf = leaf.end?.test(this.rest()) ? undefined : leaf;
  }

  /// Begins a block at this place, in so many containers, and returns whether there is one. Without a `line`, nothing is
  /// left of it.
  begins(close, isWhole, depth) {
    const {width, end} = this.indent();
    const rest = this.line.slice(end);
    const inParagraph = this.leaf?.type === 'paragraph';
    if (rest === '') return false;
    if (width > 3) {
      if (inParagraph) return false;
      close();
      this.skip(4);
      this.leaf = this.add({type: 'code', lines: [this.rest()]});
      return this.end();
    }
    const isDeep = depth > DEEPEST;
    if (rest[0] === '>' && !isDeep) {
      close();
      this.enter({type: 'quote'});
      this.skip(width);
      this.pass(1);
      this.skip(1);
      return true;
    }
    const heading = /^(#{1,6})(?:[ \t]+(.*)|$)/.exec(rest);
    if (heading) {
      close();
      const text = (heading[2] ?? '').trim();
      this.add({type: 'heading', level: heading[1].length, lines: [withoutMarks(text)]});
      return this.end();
    }
    const fence = FENCE.exec(rest);
    if (fence) {
      close();
      this.leaf = this.add({type: 'code', fence: fence[1], padding: width, info: plain(fence[2].trim()), lines: []});
      return this.end();
    }
    const html = rest[0] === '<' ? htmlBlock(rest, inParagraph) : undefined;
    if (html) {
      close();
      this.addHtml(this.add({type: 'html', end: html.end, lines: []}));
      return this.end();
    }
    const isOwn = inParagraph && isWhole;
    // Definitions have no heading.
    if (isOwn && /^(?:=+|-+)[ \t]*$/.test(rest) && parts(this.leaf).at(-1).type === 'paragraph') {
      Object.assign(this.leaf, {type: 'heading', isUnderlined: true, level: rest[0] === '=' ? 1 : 2, to: this.number});
      this.leaf = undefined;
      return this.end();
    }
    if (isOwn && this.table(rest)) return this.end();
    if (RULE.test(rest)) {
      close();
      this.add({type: 'rule'});
      return this.end();
    }
    const marker = MARKER.exec(rest);
    if (!marker || isDeep) return false;
    const content = rest.slice(marker[0].length).trim();
    // A number at the beginning of a line is seldom that of a list.
    if (isOwn && (content === '' || (marker[2] && Number(marker[2]) !== 1))) return false;
    close();
    this.skip(width);
    this.pass(marker[0].length);
    const {width: space} = this.indent();
    const gap = content === '' || space > 4 ? 1 : space;
    this.skip(gap);
    const kind = marker[1] ?? marker[3];
    const top = this.open.at(-1);
    if (top.type !== 'list' || top.kind !== kind) {
      if (top.type === 'list') this.open.pop();
      this.enter({type: 'list', kind, ...(marker[2] ? {start: Number(marker[2])} : {})});
    }
    this.enter({type: 'item', padding: width + marker[0].length + gap});
    return true;
  }

  end() {
    this.line = undefined;
    return true;
  }

  /// Makes a table of the last line of the paragraph, if this line has its columns.
  table(rest) {
    if (!rest.includes('|')) return false;
    const columns = cells(rest).map((cell) => COLUMN.exec(cell));
    const {leaf} = this;
    const head = cells(leaf.lines.at(-1));
    if (columns.includes(null) || head.length !== columns.length) return false;
    leaf.lines.pop();
    const siblings = this.open.at(-1).children;
    if (leaf.lines.length === 0) siblings.pop();
    else leaf.to -= 1;
    const align = columns.map(([, left, right]) => (left && right ? 'center' : left ? 'left' : right ? 'right' : undefined));
    // A head that was a line of a paragraph may by itself be another block.
    const sure = leaf.lines.length === 0 ? this.number : Infinity;
    this.leaf = this.add({type: 'table', align, head, rows: [], from: this.number - 1, sure});
    return true;
  }
}

/// The text of a heading without the marks at its end.
function withoutMarks(text) {
  let end = text.length;
  while (text[end - 1] === '#') end -= 1;
  if (end === 0) return '';
  return end < text.length && ' \t'.includes(text[end - 1]) ? text.slice(0, end).trimEnd() : text;
}

/// The cells of a row of a table.
function cells(row) {
  const line = row.trim();
  const found = [''];
  for (let i = line[0] === '|' ? 1 : 0; i < line.length; i++) {
    if (line[i] === '\\' && line[i + 1] === '|') {
      found[found.length - 1] += '|';
      i += 1;
    } else if (line[i] === '|') {
      if (i < line.length - 1) found.push('');
    } else {
      found[found.length - 1] += line[i];
    }
  }
  return found.map((cell) => cell.trim());
}

const isBlank = (line) => line.trim() === '';

/// Separates definitions from the paragraphs that begin with them.
function separate(container) {
  container.children = container.children.flatMap(parts);
  for (const block of container.children) if (block.children) separate(block);
}

/// The definitions at the beginning of a paragraph or its heading, and what is left of it.
function parts(block) {
  if (block.lines?.[0]?.[0] !== '[' || !(block.type === 'paragraph' || block.isUnderlined)) return [block];
  const text = block.lines.join('\n');
  const found = [];
  let at = 0;
  let from = block.from;
  for (let one; at < text.length && (one = definition(text, at)); at = one.end + 1) {
    const source = text.slice(at, one.end);
    const to = from + source.split('\n').length - 1;
    found.push({type: 'definition', key: one.key, href: one.href, title: one.title, source, from, to, sure: found.length > 0 ? Infinity : from});
    from = to + 1;
  }
  if (found.length === 0) return [block];
  if (at < text.length) found.push({...block, lines: block.lines.slice(from - block.from), from, sure: Infinity});
  return found;
}

/// Completes a block: the inlines of its texts, and whether a list has space between its items.
function finish(block, find) {
  block.sure ??= block.from;
  const read = (text) => inlines(text, find);
  switch (block.type) {
    case 'paragraph':
    case 'heading':
      block.inlines = read(block.lines.join('\n').trim());
      delete block.lines;
      break;
    case 'table':
      block.head = block.head.map(read);
      block.rows = block.rows.map((row) => row.map(read));
      break;
    case 'code':
      if (!block.fence) while (block.lines.at(-1)?.trim() === '') block.lines.pop();
      block.text = block.lines.map((line) => `${line}\n`).join('');
      delete block.lines;
      break;
    case 'html':
      while (isBlank(block.lines.at(-1))) block.lines.pop();
      block.text = block.lines.join('\n');
      delete block.lines;
      break;
    case 'list':
    case 'item':
    case 'quote':
      if (block.type === 'item') takeBox(block);
      for (const child of block.children) finish(child, find);
      block.to = Math.max(block.to, ...block.children.slice(-1).map((child) => child.to));
      break;
  }
  if (block.type === 'list') block.isLoose = hasGap(block.children) || block.children.some((item) => hasGap(item.children));
}

const hasGap = (blocks) => blocks.some((block, i) => i > 0 && block.from > blocks[i - 1].to + 1);

/// Takes the box of a task from the text of its item.
function takeBox(item) {
  const [first] = item.children;
  const box = first?.type === 'paragraph' && /^\[([ xX])\][ \t]+(?=\S)/.exec(first.lines[0]);
  if (!box) return;
  item.isDone = box[1] !== ' ';
  first.lines[0] = first.lines[0].slice(box[0].length);
}
