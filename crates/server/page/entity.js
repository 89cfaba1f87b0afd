// Escapes and entities of Markdown as the characters that they stand for.

const ESCAPED = /\\([!-/:-@[-`{-~])|&(?:#[xX]([0-9a-fA-F]{1,6})|#(\d{1,7})|([A-Za-z][A-Za-z\d]{0,30}));/g;

/// Characters by the names that were looked up; of an unknown one, undefined.
const known = new Map();

/// The text with its escapes and entities replaced; an unknown entity stays.
export function plain(text) {
  return text.replace(ESCAPED, (all, escaped, hex, decimal, name) => {
    if (escaped) return escaped;
    if (name) return named(name) ?? all;
    const code = hex ? parseInt(hex, 16) : Number(decimal);
    return code === 0 || code > 0x10ffff || (code >= 0xd800 && code < 0xe000) ? '\ufffd' : String.fromCodePoint(code);
  });
}

/// The characters of an entity. The browser knows its 2125 names; it is given nothing but the name.
function named(name) {
  if (known.has(name)) return known.get(name);
  // Without a letter before it, white space would be left out.
  const found = new DOMParser().parseFromString(`x&${name};`, 'text/html').documentElement.textContent.slice(1);
  // Some are known without their semicolon, also as the beginning of a longer name.
  known.set(name, found.endsWith(';') && name !== 'semi' ? undefined : found);
  return known.get(name);
}
