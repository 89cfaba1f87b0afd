// Where HTML begins and ends in Markdown, in which nothing else is Markdown. It stays text.

const NAME = '[A-Za-z][A-Za-z\\d-]*';
const ATTRIBUTE = '[ \\t\\n]+[A-Za-z_:][\\w.:-]*(?:[ \\t\\n]*=[ \\t\\n]*(?:[^ \\t\\n"\'=<>`]+|\'[^\']*\'|"[^"]*"))?';
const TAG = `<${NAME}(?:${ATTRIBUTE})*[ \\t\\n]*/?>|</${NAME}[ \\t\\n]*>`;
const INLINE = new RegExp(TAG, 'y');
const BLOCKS = 'address|article|aside|base|basefont|blockquote|body|caption|center|col|colgroup|dd|details|dialog|dir|div|dl|dt|fieldset|figcaption|figure|footer|form|frame|frameset|h[1-6]|head|header|hr|html|iframe|legend|li|link|main|menu|menuitem|nav|noframes|ol|optgroup|option|p|param|search|section|summary|table|tbody|td|tfoot|th|thead|title|tr|track|ul';

/// The beginnings of blocks, each with what the last line has; without that, a blank line ends the block.
const BEGINNINGS = [
  [/^<(?:script|pre|style|textarea)(?:[ \t>]|$)/i, /<\/(?:script|pre|style|textarea)>/i],
  [/^<!--/, /-->/],
  [/^<\?/, /\?>/],
  [/^<![A-Za-z]/, />/],
  [/^<!\[CDATA\[/, /\]\]>/],
  [new RegExp(`^</?(?:${BLOCKS})(?:[ \\t>]|/>|$)`, 'i')],
];
/// Any other tag begins a block if it is alone in its line, and not in a paragraph.
const ALONE = new RegExp(`^(?:${TAG})[ \\t]*$`);

/// Returns how the block of HTML that begins with this line ends, if one does.
export function htmlBlock(line, inParagraph) {
  const found = BEGINNINGS.find(([begin]) => begin.test(line));
  if (found) return {end: found[1]};
  return !inParagraph && ALONE.test(line) ? {end: undefined} : undefined;
}

/// Returns the end of the HTML at a place of a text. `find` has the place from which on a text has such characters.
export function htmlEnd(text, at, find) {
  for (const comment of ['<!-->', '<!--->']) if (text.startsWith(comment, at)) return at + comment.length;
  const marks = [['<!--', '-->'], ['<?', '?>'], ['<![CDATA[', ']]>']].find(([begin]) => text.startsWith(begin, at));
  const [begin, end] = marks ?? (/^<![A-Za-z]/.test(text.slice(at, at + 3)) ? ['<!', '>'] : []);
  if (!begin) {
    INLINE.lastIndex = at;
    return INLINE.test(text) ? INLINE.lastIndex : undefined;
  }
  const last = find(end, at + begin.length);
  return last < 0 ? undefined : last + end.length;
}
