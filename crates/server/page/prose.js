// Markdown as elements. Nothing of a text becomes markup: HTML stays text, an address leads to http(s) only, and it is
// shown beside a text that differs from it.

import {h, put} from './dom.js';
import {inlines} from './inline.js';
import {definitions, parse} from './markdown.js';

/// Maximum depth of emphasis; what is deeper is plain text.
const DEEPEST = 16;

/// The elements of a text.
export const formatted = (text) => parse(text).map((block) => blockOf(block));

/// The elements of a text without blocks.
export const inline = (text) => inlinesOf(inlines(text));

function blockOf(block, isTight = false) {
  const blocks = (children, isTight) => children.map((child) => blockOf(child, isTight));
  switch (block.type) {
    case 'paragraph': return h(isTight ? 'span.tight' : 'p', inlinesOf(block.inlines));
    case 'heading': return h('p.heading', {'data-level': String(block.level)}, inlinesOf(block.inlines));
    case 'code': return h('pre', h('code', block.text.replace(/\n$/, '')));
    case 'rule': return h('hr');
    case 'html': return h(isTight ? 'span.tight' : 'p', block.text);
    // It is not left out: a reader of the text has it, too.
    case 'definition': return h(isTight ? 'span.tight.address' : 'p.address', block.source);
    case 'quote': return h('blockquote', blocks(block.children));
    case 'table': return table(block);
    default: {
      const items = block.children.map((item) => h(item.isDone === undefined ? 'li' : 'li.task',
        item.isDone !== undefined && h('span.box', {role: 'img', 'aria-label': item.isDone ? 'done' : 'open', 'data-done': item.isDone && ''}),
        blocks(item.children, !block.isLoose)));
      return block.start === undefined ? h('ul', items) : h('ol', {start: block.start}, items);
    }
  }
}

function table({align, head, rows}) {
  const cell = (name) => (content, i) => breakable(h(align[i] ? `${name}.${align[i]}` : name, inlinesOf(content)));
  // It scrolls by itself, by the keyboard too.
  return h('div.table', {tabIndex: 0, role: 'region', 'aria-label': 'Table'}, h('table', h('thead', h('tr', head.map(cell('th')))), h('tbody', rows.map((row) => h('tr', row.map(cell('td')))))));
}

/// Lets a path or an address in a cell break where one of its parts ends: else its column takes the width of a phone.
function breakable(cell) {
  for (const word of cell.querySelectorAll('code, a')) {
    for (const node of [...word.childNodes].filter(({nodeType}) => nodeType === Node.TEXT_NODE)) {
      node.replaceWith(...node.data.split(/(?<=[/_:?&=-])(?=.)/).flatMap((part) => [part, h('wbr')]).slice(0, -1));
    }
  }
  return cell;
}

function inlinesOf(nodes, depth = 0) {
  if (depth > DEEPEST) return [textOf(nodes)];
  return nodes.map((node) => {
    const inside = () => inlinesOf(node.inlines, depth + 1);
    switch (node.type) {
      case 'text':
      case 'html': return node.text;
      case 'break': return '\n';
      case 'code': return h('code', node.text);
      case 'emphasis': return h('em', inside());
      case 'strong': return h('strong', inside());
      case 'strike': return h('s', inside());
      case 'link':
      case 'image': return link(node, inside());
      default: return h('span', sourceOf(node) ?? inside());
    }
  });
}

/// The address of a link that leads to http(s).
function webOf(href) {
  const url = URL.canParse(href) ? new URL(href) : undefined;
  return ['http:', 'https:'].includes(url?.protocol) ? url : undefined;
}

/// What a text has in the place of an address that leads nowhere, such as `<std::string>`.
const sourceOf = (node) => (node.source === undefined || webOf(node.href) ? undefined : node.source);

/// A link with its address. One that leads elsewhere than to http(s) is text, and an image is not loaded.
function link(node, inside) {
  const words = textOf(node.inlines);
  const url = webOf(node.href);
  const href = url?.href ?? node.href;
  // Letters of other alphabets look like those of another host.
  const isOwn = !url || /^https?:\/\/([^/?#\\]*)/i.exec(words)?.[1].toLowerCase() === url.host;
  const isSame = [words, `mailto:${words}`].includes(href) || (isOwn && [href, node.href].some((one) => one === words || one === `${words}/`));
  const shown = words === '' ? [href] : sourceOf(node) ?? inside;
  return h('span.link',
    url && !node.isInside ? h('a', {href, target: '_blank', rel: 'noopener noreferrer', title: href}, shown) : shown,
    !isSame && words !== '' && href !== '' && h('span.address', ` (${href})`));
}

/// The text of inlines. Without recursion, because there may be many levels.
function textOf(nodes) {
  const parts = [];
  const open = [...nodes].reverse();
  while (open.length > 0) {
    const node = open.pop();
    const source = sourceOf(node);
    parts.push(node.type === 'break' ? '\n' : source ?? node.text ?? '');
    if (source === undefined) for (let i = (node.inlines?.length ?? 0) - 1; i >= 0; i--) open.push(node.inlines[i]);
  }
  return parts.join('');
}

/// Length of an open block that is formatted at once.
const SMALL = 2000;

/// Shows a text that grows. A block that has ended is formatted once, and once more at the end if an address that its
/// links may have is defined after it. The last one is formatted once it has grown by an eighth, and at the end; meanwhile
/// what follows is shown as it is.
export class Growing {
  constructor(place) {
    this.place = place;
    this.settled = [];
    this.open = [];
    this.formatted = 0;
    this.shown = 0;
    /// Whether what follows is code, and whether it begins a line.
    this.isCode = false;
    this.isLine = false;
    this.restart();
  }

  /// Forgets what has been formatted.
  restart() {
    for (const old of [...this.settled, ...this.open]) old.remove();
    this.settled = [];
    this.open = [];
    /// Where the blocks begin that may change, and the definitions before that.
    this.from = 0;
    this.known = new Map();
    this.isLate = false;
  }

  show(text, isEnd) {
    const open = text.length - this.from;
    const isDue = isEnd || open < SMALL || text.length - this.formatted > open / 8;
    if (isDue && this.formatted < text.length) this.format(text);
    else if (this.shown < text.length) this.append(text.slice(this.shown));
    this.shown = text.length;
    if (!isEnd || !this.isLate) return;
    this.restart();
    this.format(text);
  }

  append(piece) {
    const last = this.open.at(-1);
    if (this.isCode && last?.localName === 'pre') {
      put(last.firstChild, this.shown === this.formatted && this.isLine && '\n', piece);
      return;
    }
    if (last?.className !== 'raw') {
      const raw = h('p.raw');
      this.open.push(raw);
      this.place.append(raw);
    }
    put(this.open.at(-1), piece);
  }

  format(text) {
    const rest = text.slice(this.from);
    const blocks = parse(rest, this.known);
    const elements = blocks.map((block) => blockOf(block));
    for (const old of this.open) old.remove();
    for (const element of elements) this.place.append(element);
    this.isLate ||= this.from > 0 && [...definitions(blocks).keys()].some((key) => !this.known.has(key));
    // A block that begins on a line that is complete ends the one before it.
    const ends = [];
    for (let at = rest.indexOf('\n'); at >= 0; at = rest.indexOf('\n', at + 1)) ends.push(at);
    const last = Math.max(0, blocks.findLastIndex((block) => block.sure < ends.length));
    const begin = blocks[last]?.from ?? 0;
    this.from += begin === 0 ? 0 : ends[begin - 1] + 1;
    for (const [key, one] of definitions(blocks.slice(0, last))) if (!this.known.has(key)) this.known.set(key, one);
    this.settled.push(...elements.slice(0, last));
    this.open = elements.slice(last);
    this.formatted = text.length;
    this.isCode = blocks.at(-1)?.type === 'code' && !blocks.at(-1).isClosed;
    this.isLine = rest.endsWith('\n');
  }
}
