// Elements, and the format of times and figures. Text never becomes markup: this page uses no innerHTML.

/// An element: h('p.note', {title: 'x', onclick: act}, 'text', child). Absent children are left out.
export function h(name, ...rest) {
  const [tag, ...classes] = name.split('.');
  const element = document.createElement(tag || 'div');
  if (classes.length > 0) element.className = classes.join(' ');
  const first = rest[0];
  if (first && Object.getPrototypeOf(first) === Object.prototype) {
    set(element, first);
    rest.shift();
  }
  return put(element, ...rest);
}

function set(element, properties) {
  for (const [key, value] of Object.entries(properties)) {
    if (value === undefined || value === null || value === false) continue;
    if (/^(inner|outer)HTML$/.test(key)) throw new TypeError('text never becomes markup');
    if (key.startsWith('on')) element.addEventListener(key.slice(2), value);
    // An attribute holds text only.
    else if (['title', 'aria-label', 'placeholder'].includes(key)) element.setAttribute(key, marked(String(value)));
    else if (key in element && !key.startsWith('aria')) element[key] = value;
    else element.setAttribute(key, value === true ? '' : value);
  }
}

/// Appends children; a text becomes a text node, and what cannot be seen in it a mark.
export function put(element, ...children) {
  for (const child of children.flat(3)) {
    if (child === undefined || child === null || child === false || child === '') continue;
    if (child instanceof Node) element.append(child);
    // One by one: a call has a largest number of arguments.
    else for (const node of visible(String(child), kindOf(element))) element.append(node);
  }
  return element;
}

/// Elements whose text is code.
const CODE = new Set(['pre', 'code', 'del', 'ins']);

/// What the text of an element is: the name of a file, code, or prose.
function kindOf(element) {
  if (element.localName === 'bdi' || element.classList.contains('path')) return 'name';
  return CODE.has(element.localName) ? 'code' : 'prose';
}

/// Characters that show nothing, look like a space, or change the order in which others are shown: with one of them a
/// command looks like another.
const HIDDEN = /[\p{Cc}\p{Cf}\p{Cs}\p{Zl}\p{Zp}\p{Zs}\p{Default_Ignorable_Code_Point}\u2800]/gu;

/// Whether a character that matches belongs to the text: a space, except in a name a line break or a tab, and in prose
/// also spaces of other widths and what joins letters and emoji.
function belongs(character, index, text, kind) {
  if (character === ' ') return true;
  if (kind === 'name') return false;
  if ('\n\t'.includes(character) || (character === '\r' && text[index + 1] === '\n')) return true;
  if (kind === 'code') return false;
  return /\p{Zs}/u.test(character) || ('\u200c\u200d\ufe0e\ufe0f'.includes(character) && text.charCodeAt(index - 1) > 0x7f);
}

/// The name of a character.
const nameOf = (character) => `U+${character.codePointAt(0).toString(16).toUpperCase().padStart(4, '0')}`;

/// The nodes of a text.
function visible(text, kind) {
  const nodes = [];
  let rest = 0;
  for (const {0: character, index} of text.matchAll(HIDDEN)) {
    if (belongs(character, index, text, kind)) continue;
    const mark = document.createElement('span');
    mark.className = 'hidden-character';
    mark.textContent = nameOf(character);
    if (rest < index) nodes.push(text.slice(rest, index));
    nodes.push(mark);
    rest = index + character.length;
  }
  if (rest < text.length) nodes.push(text.slice(rest));
  return nodes;
}

/// The same as text.
export function marked(text) {
  return text.replace(HIDDEN, (character, index) => (belongs(character, index, text, 'prose') ? character : `[${nameOf(character)}]`));
}

/// Whether a code has such characters.
export function hasHidden(text) {
  return [...text.matchAll(HIDDEN)].some(({0: character, index}) => !belongs(character, index, text, 'code'));
}

/// A button that copies a text, where the browser allows that; `what` it is, and `text` returns it. With `isNamed`, it
/// shows the word, else an icon.
export function copier(what, text, isNamed = false) {
  if (!navigator.clipboard) return undefined;
  const done = (word) => {
    if (isNamed) fill(button, word);
    button.dataset.done = word;
  };
  const button = h(`button.quiet.${isNamed ? 'named' : 'copy'}`, {
    type: 'button',
    title: `Copy ${what}`,
    'aria-label': `Copy ${what}`,
    onclick: (event) => {
      // In the first line of something that opens, it opens nothing.
      event.preventDefault();
      return navigator.clipboard.writeText(text()).then(() => done('Copied'), () => button.remove());
    },
  }, isNamed ? 'Copy' : icon('copy'));
  return button;
}

/// Replaces all children.
export function fill(element, ...children) {
  element.replaceChildren();
  return put(element, ...children);
}

let skew = 0;

/// Reads the server's time from a response, because a phone's clock can be wrong.
export function setClock(response) {
  const at = Date.parse(response.headers.get('Date') ?? '');
  if (Number.isNaN(at)) return;
  const off = at - Date.now();
  // The resolution of the header is one second.
  skew = Math.abs(off) < 2500 ? 0 : off;
}

/// The time of the server, in milliseconds.
export const time = () => Date.now() + skew;

const SVG = 'http://www.w3.org/2000/svg';

/// An element of SVG.
export function svg(name, attributes = {}, ...children) {
  const element = document.createElementNS(SVG, name);
  for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value);
  return put(element, ...children);
}

/// An icon of icons.svg.
export function icon(name) {
  return svg('svg', {viewBox: '0 0 24 24', 'aria-hidden': 'true', class: 'icon'}, svg('use', {href: `page/icons.svg#${name}`}));
}

/// Shows a value that cannot be shown as others of its kind, because of the error: as JSON.
export function plain(value, error, name = 'div') {
  return h(`${name}.card.failure.plain`, h('p', `This cannot be shown as usual (${error}). All of it, as JSON:`), h('pre', JSON.stringify(value, null, 2)));
}

/// Returns what `make` returns; if it fails, the value as JSON: odd input in one place stops no other.
export function attempt(value, make, name) {
  try {
    return make();
  } catch (error) {
    return plain(value, error, name);
  }
}

/// Replaces the children of `list` by those of `items`, and keeps the elements (with focus and input) of items that stay.
/// An item that cannot be shown is there as JSON.
export function keyed(list, items, keyOf, make, update) {
  const old = new Map([...list.children].map((child) => [child.dataset.key, child]));
  let next = list.firstElementChild;
  for (const item of items) {
    const key = String(keyOf(item));
    const known = old.get(key);
    const element = shown(known, item, make, update, list.localName === 'ul' ? 'li' : 'div');
    element.dataset.key = key;
    if (known && known !== element) {
      if (known === next) next = next.nextElementSibling;
      known.remove();
    }
    old.delete(key);
    if (element === next) next = next.nextElementSibling;
    else list.insertBefore(element, next);
  }
  for (const element of old.values()) element.remove();
}

/// Shows an item of a list: in the element that it has, unless that is one of an item that could not be shown.
function shown(known, item, make, update, name) {
  const failed = known?.failed;
  if (failed !== undefined && failed === JSON.stringify(item)) return known;
  try {
    const element = known && failed === undefined ? known : make(item);
    update?.(element, item);
    return element;
  } catch (error) {
    const element = plain(item, error, name);
    element.failed = JSON.stringify(item);
    return element;
  }
}

/// Returns a text that is updated every second.
export function live(text, name = 'span') {
  const element = h(name);
  return ticking(element, () => {
    const now = text();
    if (element.shown === now) return;
    element.shown = now;
    fill(element, now);
  });
}

/// Elements that are refreshed every second: of a long log, to look for them takes longer than that.
const alive = new Set();
/// Number of refreshes after which an element that is not in the page is forgotten.
const MISSES = 3;

/// Refreshes the element now and every second.
export function ticking(element, refresh) {
  element.refresh = refresh;
  element.misses = 0;
  alive.add(element);
  refresh();
  return element;
}

setInterval(() => {
  for (const element of alive) {
    element.misses = element.isConnected ? 0 : element.misses + 1;
    if (element.misses >= MISSES) alive.delete(element);
    if (element.misses > 0) continue;
    try {
      element.refresh();
    } catch (error) {
      reportError(error);
    }
  }
}, 1000);

/// Formats a duration: `4.2 s`, `3 min`, `2 h 5 min`, `4 d`.
export function span(ms) {
  const seconds = Math.max(0, ms) / 1000;
  if (seconds < 10) return `${seconds.toFixed(1)} s`;
  if (seconds < 60) return `${Math.round(seconds)} s`;
  const minutes = Math.floor(seconds / 60);
  if (minutes < 10) {
    const rest = Math.round(seconds % 60);
    return rest > 0 && rest < 60 ? `${minutes} min ${rest} s` : `${minutes} min`;
  }
  if (minutes < 60) return `${minutes} min`;
  const hours = Math.floor(minutes / 60);
  if (hours < 48) return minutes % 60 > 0 ? `${hours} h ${minutes % 60} min` : `${hours} h`;
  return `${Math.floor(hours / 24)} d`;
}

/// Formats a duration in whole units: `just now`, `3 min`, `2 h`.
export function rough(ms) {
  const minutes = Math.floor(ms / 60_000);
  if (minutes < 1) return `${Math.max(1, Math.floor(ms / 1000))} s`;
  if (minutes < 60) return `${minutes} min`;
  if (minutes < 48 * 60) return `${Math.floor(minutes / 60)} h`;
  return `${Math.floor(minutes / 1440)} d`;
}

/// Returns the time since then, updated every second.
export function ago(at) {
  const element = live(() => (time() - at < 5000 ? 'just now' : `${rough(time() - at)} ago`), 'time');
  const date = new Date(at);
  if (!Number.isNaN(date.getTime())) element.dateTime = date.toISOString();
  element.title = date.toLocaleString();
  return element;
}

/// The time of day.
export function clock(at) {
  return new Date(at).toLocaleTimeString([], {hour: '2-digit', minute: '2-digit'});
}

/// Formats a count: `980`, `1.2k`, `3.4M`.
export function count(number) {
  if (number === undefined || number === null) return '–';
  for (const [size, unit] of [[1e9, 'G'], [1e6, 'M'], [1e3, 'k']]) {
    if (number >= size) return `${(number / size).toFixed(number >= 10 * size ? 0 : 1)}${unit}`;
  }
  return String(number);
}

/// Formats an amount in USD, an estimate with a `~`.
export function usd(amount, source) {
  if (amount === undefined || amount === null) return '–';
  return `${source === 'estimated' ? '~' : ''}$${amount.toFixed(amount !== 0 && amount < 0.995 ? 4 : 2)}`;
}

/// `1 run`, `2 runs`.
export function many(number, one, several = `${one}s`) {
  return `${number} ${number === 1 ? one : several}`;
}

/// A folder that is named after a run.
const RUN = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/;

/// Shows the last two parts of a path, of a worktree its repository; its title is the whole path.
export function path(full) {
  const parts = full.split('/').filter(Boolean);
  const short = parts.length > 2 ? `…/${parts.slice(RUN.test(parts.at(-2)) ? -1 : -2).join('/')}` : full;
  return h('span.path', {title: full}, short);
}
