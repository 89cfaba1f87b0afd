// Markdown on the page and at a terminal: the examples of CommonMark have the same words in the same blocks.

import assert from 'node:assert/strict';
import {execFile} from 'node:child_process';
import {mkdtemp, rm, writeFile} from 'node:fs/promises';
import {tmpdir} from 'node:os';
import {join} from 'node:path';
import {promisify} from 'node:util';
import {open} from './browser.mjs';
import {examples} from './page-markdown.mjs';
import {PROGRAM, check} from './server.mjs';

/// Examples that a terminal shows in another way, by reason. With them are those in which an address is defined elsewhere:
/// what a terminal has shown is never changed, so that a link there has its label, and the definition its address.
const DIFFERENCES = {
  'the language of code has no escapes and entities': [24, 34],
  'a control character stays as it is written': [39, 40],
  'the page has the number of a space that does not look like one': [333, 334],
  'a link may have a line break in its address': [491],
};

/// What the terminal shows for each text: the agent sends each as a message of its own, with one before it that numbers it.
async function atTerminal(all) {
  const folder = await mkdtemp(join(tmpdir(), 'teamster-terminal-'));
  try {
    const file = join(folder, 'texts.json');
    await writeFile(file, JSON.stringify(all.map((text, i) => [`§${i}§`, text]).flat()));
    const env = {PATH: process.env.PATH, HOME: folder, TERM: 'xterm', TZ: 'UTC', TEAMSTER_CLAUDE_BIN: join(import.meta.dirname, 'agent.py')};
    const command = [join(import.meta.dirname, 'terminal.py'), PROGRAM, 'run', 'claude', `messages ${file}`];
    const {stdout} = await promisify(execFile)('python3', command, {env, cwd: folder, maxBuffer: 1e8});
    const shown = stdout.replaceAll('\r\n', '\n').replace(/\r?\x1b\[[\d;?]*[A-Za-z]/g, '');
    const parts = shown.slice(0, shown.lastIndexOf('✓ completed')).split(/§\d+§/).slice(1);
    assert.equal(parts.length, all.length);
    return parts.map((part) => part.split('\n'));
  } finally {
    await rm(folder, {recursive: true, force: true});
  }
}

/// What the page shows for each text, in the lines of a terminal. Runs in the browser.
async function onPage(all) {
  const {definitions, parse} = await import('/page/markdown.js');
  const {formatted} = await import('/page/prose.js');
  const children = (element) => [...element.children].filter((child) => !child.matches('.box'));
  const lines = (blocks, elements) => blocks.flatMap((block, i) => {
    const element = elements[i];
    switch (block.type) {
      case 'code': return [...(block.info ? [block.info.split(/\s/)[0]] : []), ...element.textContent.split('\n').map((line) => `    ${line}`)];
      // At a terminal, the text is there before its underline is.
      case 'heading': return [...element.textContent.split('\n'), ...(block.isUnderlined ? ['─'] : [])];
      case 'rule': return ['─'];
      case 'quote': return lines(block.children, children(element)).map((line) => `│ ${line}`);
      case 'list': return block.children.flatMap((item, i) => {
        const box = item.isDone === undefined ? '' : item.isDone ? '☑ ' : '☐ ';
        const mark = block.start === undefined ? box || '• ' : `${block.start + i}${block.kind} ${box}`;
        const inside = lines(item.children, children(element.children[i]));
        return (inside.length > 0 ? inside : ['']).map((line, i) => (i === 0 ? mark : ' '.repeat(mark.length)) + line);
      });
      case 'table': return [...element.querySelectorAll('tr')].map((row) => [...row.children].map((cell) => cell.textContent).join(' │ '));
      default: return element.textContent.split('\n');
    }
  });
  // Of a definition in several lines, the terminal has shown the first one before it is known.
  const addresses = (all) => [...all.values()].filter(({source}) => !source.includes('\n')).map(({href}) => href);
  return all.map((text) => {
    const all = definitions(parse(text));
    return {lines: lines(parse(text), formatted(text)), isDefined: all.size > 0, addresses: addresses(all)};
  });
}

/// Without what is beside the words and their blocks: empty lines, widths, and how a browser writes an address. A mark of
/// an item without text stands before the next line.
function compared(lines) {
  return lines
    .map((line) => line.replace(/─[─┼]+/g, '─').replace(/\((https?:[^\s)]*)\)/g, (all, url) => (URL.canParse(url) ? `(${new URL(url).href})` : all)).replace(/[\s\u00a0]+/g, ' ').trimEnd())
    .filter((line) => line.replace(/[│ ]/g, '') !== '')
    .join('\n')
    .replace(/(^|\n)((?:[│ ]|• |\d+[.)] )*(?:•|\d+[.)]))\n +/g, '$1$2 ');
}

export async function checkTerminal(chromium, server) {
  await check('every example of CommonMark has the same words and blocks at a terminal, but for named reasons', async () => {
    const page = await open(chromium, server);
    const all = examples.map(({text}) => text);
    const wanted = await page.evaluate(onPage, all);
    const shown = await atTerminal(all);
    const others = new Set(Object.values(DIFFERENCES).flat());
    let [same, defined] = [0, 0];
    wanted.forEach(({lines, isDefined, addresses}, i) => {
      const {number, text} = examples[i];
      const isSame = compared(lines) === compared(shown[i]);
      same += isSame;
      if (others.has(number)) assert.ok(!isSame, `example ${number} has become the same`);
      else if (!isDefined) assert.equal(compared(shown[i]), compared(lines), `example ${number}: ${JSON.stringify(text)}`);
      else for (const address of addresses) {
        defined += 1;
        assert.ok(shown[i].join(' ').includes(address), `example ${number} has ${address}: ${JSON.stringify(shown[i])}`);
      }
    });
    assert.equal(same, 579);
    assert.equal(defined, 75);
    await page.context().close();
  });
}
