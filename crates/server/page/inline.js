// The inlines of Markdown: text, code, emphasis, links. See markdown.js.

import {plain} from './entity.js';
import {htmlEnd} from './html.js';
import {destination, keyOf, labelAt} from './link.js';

/// Characters that mean nothing by themselves.
const PLAIN = /[^\n`[\]\\!<&*_~h]+/y;
const AUTOLINK = /<([A-Za-z][A-Za-z\d.+-]{1,31}:[^\s<>]*)>/y;
const MAIL = /<([\w.!#$%&'*+/=?^`{|}~-]+@[A-Za-z\d](?:[A-Za-z\d-]{0,61}[A-Za-z\d])?(?:\.[A-Za-z\d](?:[A-Za-z\d-]{0,61}[A-Za-z\d])?)*)>/y;
const BARE = /https?:\/\/[^\s<>[\]`"]+/y;
const TICKS = /`+/g;

const isSpace = (character) => character === undefined || /\s/.test(character);
const isPunctuation = (character) => character !== undefined && /[\p{P}\p{S}]/u.test(character);

/// A list whose parts are moved at once.
class Chain {
  constructor() {
    this.head = {};
    this.tail = {previous: this.head};
    this.head.next = this.tail;
  }

  add(node) {
    Object.assign(node, {previous: this.tail.previous, next: this.tail});
    this.tail.previous.next = node;
    this.tail.previous = node;
    return node;
  }

  /// Moves what is between two nodes into a new one.
  wrap(first, last, node) {
    node.inside = new Chain();
    const [begin, end] = [first.next, last.previous];
    if (begin !== last) {
      Object.assign(node.inside.head, {next: begin});
      Object.assign(node.inside.tail, {previous: end});
      begin.previous = node.inside.head;
      end.next = node.inside.tail;
    }
    Object.assign(node, {previous: first, next: last});
    first.next = node;
    last.previous = node;
    return node;
  }

  static remove(node) {
    node.previous.next = node.next;
    node.next.previous = node.previous;
  }

  /// The nodes in arrays; adjacent texts are one. Without recursion, because there may be many levels.
  static nodes(chain) {
    const all = [];
    const open = [[chain, all]];
    while (open.length > 0) {
      const [from, to] = open.pop();
      for (let node = from.head.next; node !== from.tail; node = node.next) {
        const {previous: _previous, next: _next, inside, ...rest} = node;
        if (rest.type === 'text' && rest.text === '') continue;
        if (rest.type === 'text' && to.at(-1)?.type === 'text') {
          to.at(-1).text += rest.text;
          continue;
        }
        if (inside) {
          rest.inlines = [];
          open.push([inside, rest.inlines]);
        }
        to.push(rest);
      }
    }
    return all;
  }
}

/// Returns the inlines of the text of a paragraph. `find` has the definition of the address with a label.
export function inlines(text, find = () => undefined) {
  const chain = new Chain();
  const brackets = [];
  /// The beginning of the last link with brackets.
  let linkedAt = -1;
  /// Runs of `*`, `_` and `~` that may begin or end an emphasis, the last first.
  let last;
  let ticks;
  /// Where a text is that ends HTML, by that text.
  const marks = new Map();
  let at = 0;

  const say = (words) => chain.add({type: 'text', text: words});
  const match = (pattern) => {
    pattern.lastIndex = at;
    return pattern.exec(text);
  };

  /// The beginning of the next run of so many ticks. Each is looked at once.
  const closing = (length) => {
    ticks ??= [...text.matchAll(TICKS)].reduce((all, {0: run, index}) => {
      if (!all.has(run.length)) all.set(run.length, {places: [], next: 0});
      all.get(run.length).places.push(index);
      return all;
    }, new Map());
    const runs = ticks.get(length);
    if (!runs) return undefined;
    while (runs.places[runs.next] < at + length) runs.next += 1;
    return runs.places[runs.next];
  };

  const code = () => {
    const [run] = match(/`+/y);
    const end = closing(run.length);
    if (end === undefined) {
      say(run);
      at += run.length;
      return;
    }
    const content = text.slice(at + run.length, end).replaceAll('\n', ' ');
    const isPadded = content.startsWith(' ') && content.endsWith(' ') && content.trim() !== '';
    chain.add({type: 'code', text: isPadded ? content.slice(1, -1) : content});
    at = end + run.length;
  };

  const delimiter = () => {
    const character = text[at];
    const [run] = match({'*': /\*+/y, _: /_+/y, '~': /~+/y}[character]);
    const before = at === 0 ? undefined : String.fromCodePoint(text.codePointAt(at - (/[\udc00-\udfff]/.test(text[at - 1]) && at > 1 ? 2 : 1)));
    at += run.length;
    const after = at === text.length ? undefined : String.fromCodePoint(text.codePointAt(at));
    const node = say(run);
    if (character === '~' && run.length !== 2) return;
    const opens = !isSpace(after) && (!isPunctuation(after) || isSpace(before) || isPunctuation(before));
    const closes = !isSpace(before) && (!isPunctuation(before) || isSpace(after) || isPunctuation(after));
    const isInWord = character === '_' && opens && closes;
    last = {
      node,
      character,
      length: run.length,
      left: run.length,
      order: at,
      opens: opens && (!isInWord || isPunctuation(before)),
      closes: closes && (!isInWord || isPunctuation(after)),
      previous: last,
    };
    if (last.previous) last.previous.next = last;
  };

  const drop = (one) => {
    if (one.previous) one.previous.next = one.next;
    if (one.next) one.next.previous = one.previous;
    else last = one.previous;
  };

  /// Makes emphasis of the runs after `bottom`, and forgets them.
  const emphasize = (bottom) => {
    /// Up to where there is no beginning for a kind of end.
    const none = new Map();
    let closer = last;
    while (closer && closer.previous !== bottom) closer = closer.previous;
    while (closer) {
      if (!closer.closes) {
        closer = closer.next;
        continue;
      }
      const key = `${closer.character}${closer.opens}${closer.length % 3}`;
      const stop = none.get(key) ?? -1;
      let opener = closer.previous;
      while (opener && opener !== bottom && opener.order > stop && !fits(opener, closer)) opener = opener.previous;
      if (!opener || opener === bottom || opener.order <= stop) {
        none.set(key, closer.order - 1);
        const next = closer.next;
        if (!closer.opens) drop(closer);
        closer = next;
        continue;
      }
      const isTwo = opener.left >= 2 && closer.left >= 2;
      const used = isTwo ? 2 : 1;
      // The runs between them have no partner.
      opener.next = closer;
      closer.previous = opener;
      const type = closer.character === '~' ? 'strike' : isTwo ? 'strong' : 'emphasis';
      for (const one of [opener, closer]) {
        one.left -= used;
        one.node.text = one.node.text.slice(used);
      }
      chain.wrap(opener.node, closer.node, {type});
      if (opener.left === 0) {
        Chain.remove(opener.node);
        drop(opener);
      }
      if (closer.left === 0) {
        Chain.remove(closer.node);
        const next = closer.next;
        drop(closer);
        closer = next;
      }
    }
    last = bottom;
    if (last) last.next = undefined;
  };

  const open = (mark, isImage) => {
    brackets.push({node: say(mark), isImage, at, end: at + mark.length, below: last, hasInner: false});
    at += mark.length;
  };

  /// The address of the link whose text is between a bracket and the one before `end`, and the end of the link.
  const addressed = (bracket, end) => {
    const found = text[end] === '(' ? destination(text, end) : undefined;
    if (found) return found;
    const label = text[end] === '[' ? labelAt(text, end) : undefined;
    if (label && label.label !== '') return defined(label.label, label.end);
    // Its text is its label.
    return bracket.hasInner ? undefined : defined(text.slice(bracket.end, end - 1), label?.end ?? end);
  };

  const defined = (label, end) => {
    const key = keyOf(label);
    const found = key === '' ? undefined : find(key);
    return found && {href: found.href, title: found.title, end};
  };

  /// The place from which on the text has these characters. Each part of the text is looked through once.
  const next = (characters, from) => {
    const known = marks.get(characters);
    if (known === undefined || (known >= 0 && known < from)) marks.set(characters, text.indexOf(characters, from));
    return marks.get(characters);
  };

  const close = () => {
    const bracket = brackets.pop();
    // There are no links in links.
    const isOpen = bracket && (bracket.isImage || bracket.at > linkedAt);
    const found = isOpen ? addressed(bracket, at + 1) : undefined;
    if (brackets.length > 0) brackets.at(-1).hasInner = true;
    at += 1;
    if (!found) {
      say(']');
      return;
    }
    at = found.end;
    emphasize(bracket.below);
    const node = chain.wrap(bracket.node, chain.tail, {type: bracket.isImage ? 'image' : 'link', href: found.href});
    if (found.title !== undefined) node.title = found.title;
    Chain.remove(bracket.node);
    if (bracket.isImage) return;
    linkedAt = bracket.at;
    node.isOuter = true;
  };

  while (at < text.length) {
    const words = match(PLAIN);
    if (words) {
      say(words[0]);
      at += words[0].length;
      continue;
    }
    const character = text[at];
    switch (character) {
      case '\n': {
        const {previous} = chain.tail;
        const isHard = previous.type === 'text' && previous.text.endsWith('  ');
        if (previous.type === 'text') previous.text = previous.text.trimEnd();
        chain.add({type: 'break', isHard});
        at += 1;
        break;
      }
      case '`':
        code();
        break;
      case '\\':
        if (text[at + 1] === '\n') {
          chain.add({type: 'break', isHard: true});
          at += 2;
        } else {
          const isEscape = /[!-/:-@[-`{-~]/.test(text[at + 1] ?? '');
          say(isEscape ? text[at + 1] : '\\');
          at += isEscape ? 2 : 1;
        }
        break;
      case '[':
        open('[', false);
        break;
      case '!':
        if (text[at + 1] === '[') open('![', true);
        else at += say('!').text.length;
        break;
      case ']':
        close();
        break;
      case '*':
      case '_':
      case '~':
        delimiter();
        break;
      case '<': {
        const found = match(AUTOLINK);
        const mail = found ?? match(MAIL);
        const end = mail ? at + mail[0].length : htmlEnd(text, at, next);
        if (mail) address(mail[1], found ? mail[1] : `mailto:${mail[1]}`, mail[0]);
        else if (end) chain.add({type: 'html', text: text.slice(at, end)});
        else say('<');
        at = end ?? at + 1;
        break;
      }
      case '&': {
        const found = match(/&(?:#[xX][0-9a-fA-F]{1,6}|#\d{1,7}|[A-Za-z][A-Za-z\d]{0,30});/y);
        say(found ? plain(found[0]) : '&');
        at += found ? found[0].length : 1;
        break;
      }
      default: {
        const found = /[\p{L}\p{N}]/u.test(text[at - 1] ?? ' ') ? undefined : match(BARE);
        const url = found && trimmed(found[0]);
        if (url) address(url, url);
        at += url ? url.length : say(character).text.length;
      }
    }
  }
  emphasize(undefined);
  return flat(Chain.nodes(chain));

  /// Adds a link; `source` is what the text has in its place.
  function address(words, href, source = words) {
    const node = chain.add({type: 'link', href, source, inside: new Chain()});
    node.inside.add({type: 'text', text: words});
  }
}

/// Whether a run begins the emphasis that another one ends.
function fits(opener, closer) {
  if (opener.character !== closer.character || !opener.opens) return false;
  if (opener.character === '~') return true;
  const isBoth = opener.closes || closer.opens;
  return !isBoth || (opener.length + closer.length) % 3 !== 0 || (opener.length % 3 === 0 && closer.length % 3 === 0);
}

/// A bare address without the punctuation of the sentence that it is in.
function trimmed(url) {
  let end = url.length;
  let closing = 0;
  for (const character of url) closing += character === ')' ? 1 : character === '(' ? -1 : 0;
  for (; ; end--) {
    const character = url[end - 1];
    if (character === ')' && closing > 0) closing -= 1;
    else if (!'?!.,:;*_~\'"'.includes(character)) break;
  }
  return end > url.indexOf('//') + 2 ? url.slice(0, end) : undefined;
}

/// Without the links that are in links: bare addresses and those of images.
function flat(nodes) {
  const open = [nodes];
  while (open.length > 0) {
    for (const node of open.pop()) {
      if (node.isOuter) node.inlines = textOfLinks(node.inlines);
      delete node.isOuter;
      if (node.inlines) open.push(node.inlines);
    }
  }
  return nodes;
}

function textOfLinks(nodes) {
  const open = [nodes];
  while (open.length > 0) {
    for (const node of open.pop()) {
      if (node.type === 'link') node.type = 'plain';
      if (node.type === 'image') node.isInside = true;
      if (node.inlines) open.push(node.inlines);
    }
  }
  return nodes;
}
