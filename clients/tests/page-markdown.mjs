// Markdown on the page: CommonMark's own examples, the outlines of the texts in markdown/, hostile texts, and texts that
// grow. The modules are those of the page, in the browser.

import assert from 'node:assert/strict';
import {readdir, readFile, writeFile} from 'node:fs/promises';
import {join} from 'node:path';
import {go, isClean, open, require} from './browser.mjs';
import {check} from './server.mjs';

const TEXTS = join(import.meta.dirname, 'markdown');

/// The examples of CommonMark.
export const examples = require('commonmark-spec').tests.map(({markdown, html: wanted, number}) => ({number, text: markdown.replaceAll('→', '\t'), wanted: wanted.replaceAll('→', '\t')}));

const names = (await readdir(TEXTS)).filter((name) => name.endsWith('.md'));
/// The texts in markdown/.
export const texts = await Promise.all(names.map((name) => readFile(join(TEXTS, name), 'utf8')));

const escaped = (text) => text.replace(/[&<>"]/g, (one) => ({'&': '&amp;', '<': '&lt;', '>': '&gt;', '"': '&quot;'}[one]));
const address = (href) => escaped(encodeURI(href).replace(/%25([0-9a-fA-F]{2})/g, '%$1'));
const title = (node) => (node.title === undefined ? '' : ` title="${escaped(node.title)}"`);
const words = (nodes) => nodes.map((node) => (node.type === 'break' ? '\n' : node.inlines ? words(node.inlines) : node.text)).join('');

/// The HTML that CommonMark's examples have for such a tree.
function inline(nodes) {
  return nodes.map((node) => {
    switch (node.type) {
      case 'text': return escaped(node.text);
      case 'break': return node.isHard ? '<br />\n' : '\n';
      case 'code': return `<code>${escaped(node.text)}</code>`;
      case 'html': return node.text;
      case 'emphasis': return `<em>${inline(node.inlines)}</em>`;
      case 'strong': return `<strong>${inline(node.inlines)}</strong>`;
      // A bare address, which GitHub has beyond CommonMark.
      case 'link': return node.source === words(node.inlines) ? escaped(node.source) : `<a href="${address(node.href)}"${title(node)}>${inline(node.inlines)}</a>`;
      case 'image': return `<img src="${address(node.href)}" alt="${escaped(words(node.inlines))}"${title(node)} />`;
      default: return `<${node.type}>`;
    }
  }).join('');
}

function html(blocks, isTight = false) {
  return blocks.map((block) => {
    switch (block.type) {
      case 'paragraph': return isTight ? inline(block.inlines) : `<p>${inline(block.inlines)}</p>`;
      case 'heading': return `<h${block.level}>${inline(block.inlines)}</h${block.level}>`;
      case 'code': {
        const language = block.info?.split(/\s/)[0];
        return `<pre><code${language ? ` class="language-${escaped(language)}"` : ''}>${escaped(block.text)}</code></pre>`;
      }
      case 'rule': return '<hr />';
      case 'html': return block.text;
      case 'definition': return undefined;
      case 'quote': return `<blockquote>\n${html(block.children)}\n</blockquote>`.replace('\n\n', '\n');
      case 'list': {
        const tag = block.start === undefined ? 'ul' : 'ol';
        const start = block.start === undefined || block.start === 1 ? '' : ` start="${block.start}"`;
        return `<${tag}${start}>\n${block.children.map((item) => listItem(item, !block.isLoose)).join('\n')}\n</${tag}>`;
      }
      default: return `<${block.type}>`;
    }
  }).filter((one) => one !== undefined).join('\n');
}

function listItem({children}, isTight) {
  if (children.length === 0) return '<li></li>';
  const isText = (block) => isTight && block.type === 'paragraph';
  return `<li>${isText(children[0]) ? '' : '\n'}${html(children, isTight)}${isText(children.at(-1)) ? '' : '\n'}</li>`;
}

/// A tree without what its texts are made of: what a renderer has to show.
function outline(blocks) {
  return blocks.map((block) => {
    switch (block.type) {
      case 'paragraph': return {paragraph: words(block.inlines), ...links(block.inlines)};
      case 'heading': return {heading: block.level, text: words(block.inlines)};
      case 'html': return {html: block.text};
      case 'definition': return {definition: block.source};
      case 'code': return {code: block.text, ...(block.info ? {info: block.info} : {})};
      case 'table': return {table: [block.head, ...block.rows].map((row) => row.map(words)), align: block.align.map((one) => one ?? '')};
      case 'quote': return {quote: outline(block.children)};
      case 'list': return {list: block.start === undefined ? 'bullets' : block.start, isLoose: block.isLoose, items: block.children.map((item) => ({...(item.isDone === undefined ? {} : {isDone: item.isDone}), blocks: outline(item.children)}))};
      default: return {[block.type]: true};
    }
  });
}

function links(nodes) {
  const found = nodes.flatMap((node) => [...(node.href === undefined ? [] : [node.href]), ...(node.inlines ? links(node.inlines).links ?? [] : [])]);
  return found.length > 0 ? {links: found} : {};
}

/// A generator of numbers below a limit, the same at each run.
function numbers(seed) {
  let state = seed;
  return (limit) => {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
    return Math.floor((state / 2 ** 32) * limit);
  };
}

/// Pieces that mean something, and what is often forgotten.
const PIECES = ['\n', '\n\n', '  ', '    ', '\t', '> ', '- ', '1. ', '10) ', '```', '~~~', '`', '*', '**', '_', '~~', '[', ']', '(', ')', '![', '](https://a.b)', '](javascript:x)', '<', '>', '<script>', '<a href=x onclick=y>', '|', '|-|-|\n', '\\', '&amp;', '#', '---', '===', '[ ] ', '[x] ', '[a]: https://b.c\n', '[a]', '<!--', '</pre>', 'https://a.b/c', '\u202e', '\0', '\ud800', 'é', '😀'];

function mutated(texts, random) {
  let text = texts[random(texts.length)];
  for (let i = random(8); i >= 0; i--) {
    const at = random(text.length + 1);
    const [first, rest] = [text.slice(0, at), text.slice(at)];
    const other = texts[random(texts.length)];
    text = [
      () => first + PIECES[random(PIECES.length)] + rest,
      () => first + rest.slice(random(6)),
      () => first + other.slice(random(other.length)) + rest,
      () => first + rest.split('\n').map((line) => PIECES[random(PIECES.length)] + line).join('\n'),
    ][random(4)]().slice(0, 4000);
  }
  return text;
}

export async function checkMarkdown(chromium, server) {
  const parsed = (page, some) => page.evaluate(async (some) => {
    const {parse} = await import('/page/markdown.js');
    return some.map((text) => parse(text));
  }, some);

  await check('every example of CommonMark gives its blocks and inlines', async () => {
    const page = await open(chromium, server);
    const trees = await parsed(page, examples.map(({text}) => text));
    assert.equal(examples.length, 652);
    trees.forEach((tree, i) => {
      const {number, text, wanted} = examples[i];
      const got = html(tree);
      assert.equal(got === '' ? '' : `${got}\n`, wanted, `example ${number}: ${JSON.stringify(text)}`);
    });
    await page.context().close();
  });

  await check('nested lists, tasks, tables, quotes and links have their outlines', async () => {
    const page = await open(chromium, server);
    const trees = await parsed(page, texts);
    for (const [i, name] of names.entries()) {
      const file = join(TEXTS, name.replace('.md', '.json'));
      const found = outline(trees[i]);
      if (process.env.UPDATE) await writeFile(file, `${JSON.stringify(found, null, 2)}\n`);
      assert.deepEqual(found, JSON.parse(await readFile(file, 'utf8')), name);
    }
    await page.context().close();
  });

  await check('no text makes other elements or attributes than those of Markdown, or a link elsewhere than to http(s)', async () => {
    const page = await open(chromium, server);
    const random = numbers(20);
    const sources = [...examples.map(({text}) => text), ...texts];
    const some = Array.from({length: 4000}, () => mutated(sources, random));
    const found = await page.evaluate(async (some) => {
      const {formatted, inline} = await import('/page/prose.js');
      const allowed = {a: ['href', 'target', 'rel', 'title'], blockquote: [], code: [], div: ['class', 'tabindex', 'role', 'aria-label'], em: [], hr: [], li: ['class'], ol: ['start'], p: ['class', 'data-level'], pre: [], s: [], span: ['class', 'role', 'aria-label', 'data-done'], strong: [], table: [], tbody: [], td: ['class'], th: ['class'], thead: [], tr: [], ul: [], wbr: []};
      const wrong = [];
      let links = 0;
      for (const text of some) {
        const place = document.createElement('div');
        try {
          place.append(...formatted(text), ...inline(text));
        } catch (error) {
          wrong.push([text, String(error.stack)]);
        }
        for (const element of place.querySelectorAll('*')) {
          const attributes = allowed[element.localName];
          if (!attributes || element.getAttributeNames().some((name) => !attributes.includes(name))) wrong.push([text, element.outerHTML]);
          if (element.localName === 'a') {
            links += 1;
            if (!/^https?:\/\//.test(element.getAttribute('href')) || element.rel !== 'noopener noreferrer') wrong.push([text, element.outerHTML]);
          }
        }
      }
      return {wrong: wrong.slice(0, 3), links};
    }, some);
    assert.deepEqual(found.wrong, []);
    assert.ok(found.links > 1000, `${found.links} links`);
    isClean(page);
    await page.context().close();
  });

  await check('a link shows where it leads', async () => {
    const page = await open(chromium, server);
    const shown = await page.evaluate(async () => {
      const {inline} = await import('/page/prose.js');
      const {h} = await import('/page/dom.js');
      return ['[docs](https://example.com/x)', 'https://example.com/y.', '[https://bank.com](https://evil.com)', '[a](https://раypal.com)', '[a](/etc/passwd)', '![logo](https://example.com/i.png)', '[](https://example.com/z)', '[a](https://user@evil.com)', 'https://аpple.com/', 'https://аpple.com/xn--pple-43d.com', 'vector<std::string> x, **<a:b>** <i@b.c> [<a:b>](https://d.e)', '<https://b.c/ä>', '[![CI](https://a.b/ci.svg)](https://d.e/)'].map((text) => {
        const place = h('p', inline(text));
        return [place.textContent, [...place.querySelectorAll('a')].map((one) => one.getAttribute('href')).join()];
      });
    });
    assert.deepEqual(shown, [
      ['docs (https://example.com/x)', 'https://example.com/x'],
      ['https://example.com/y.', 'https://example.com/y'],
      ['https://bank.com (https://evil.com/)', 'https://evil.com/'],
      ['a (https://xn--ypal-43d9g.com/)', 'https://xn--ypal-43d9g.com/'],
      ['a (/etc/passwd)', ''],
      ['logo (https://example.com/i.png)', 'https://example.com/i.png'],
      ['https://example.com/z', 'https://example.com/z'],
      ['a (https://user@evil.com/)', 'https://user@evil.com/'],
      ['https://аpple.com/ (https://xn--pple-43d.com/)', 'https://xn--pple-43d.com/'],
      ['https://аpple.com/xn--pple-43d.com (https://xn--pple-43d.com/xn--pple-43d.com)', 'https://xn--pple-43d.com/xn--pple-43d.com'],
      // What leads nowhere is as it is in the text: it may be code.
      ['vector<std::string> x, <a:b> <i@b.c> <a:b> (https://d.e/)', 'https://d.e/'],
      ['https://b.c/ä', 'https://b.c/%C3%A4'],
      ['CI (https://a.b/ci.svg) (https://d.e/)', 'https://d.e/'],
    ]);
    await page.context().close();
  });

  await check('the time of a hostile text grows with its length, and its depth is bounded', async () => {
    const page = await open(chromium, server);
    const found = await page.evaluate(async () => {
      const {formatted} = await import('/page/prose.js');
      const deep = (n) => Array.from({length: n / 10}, (_, i) => `${'  '.repeat(i % 300)}- a`).join('\n');
      const makers = {
        '[': (n) => '['.repeat(n), '>': (n) => '>'.repeat(n), '*': (n) => '*'.repeat(n), '`': (n) => Array.from({length: Math.sqrt(2 * n)}, (_, i) => '`'.repeat(i + 1)).join(' '),
        '*a': (n) => '*a '.repeat(n), 'a**b': (n) => 'a**b'.repeat(n), '_a': (n) => '_a'.repeat(n), emphasis: (n) => '*a **b '.repeat(n) + 'c** d*'.repeat(n),
        '![ [a](b)': (n) => '!['.repeat(n) + '[a](b)'.repeat(n), '[a](': (n) => '[a]('.repeat(n), images: (n) => `${'!['.repeat(n)}a${'](b)'.repeat(n)}`, title: (n) => '[a](b "'.repeat(n),
        '<a:': (n) => '<a:'.repeat(n), '- ': (n) => '- '.repeat(n), '> - ': (n) => '> - '.repeat(n), deep, cells: (n) => `${'|'.repeat(n)}\n${'|-'.repeat(n)}`, 'a|b': (n) => `a|b\n-|-\n${'x|y\n'.repeat(n)}`,
        spaces: (n) => `a${' '.repeat(n)}b`, 'a   b': (n) => `${'a    b'.repeat(n)}\n`, '# #': (n) => `# ${'# '.repeat(n)}x`, ')': (n) => `http://a${')'.repeat(n)}`, '-': (n) => '-'.repeat(n), '* x': (n) => `${'* '.repeat(n)}x`,
        '<!--': (n) => '<!--'.repeat(n), '<a b="': (n) => '<a b="'.repeat(n), '<a b': (n) => `<a${' b'.repeat(n)}`, '<a  ': (n) => `x <a${' '.repeat(n)}`, '[a]: b': (n) => Array.from({length: n / 10}, (_, i) => `[${i}]: b\n`).join(''), '][a': (n) => '][a'.repeat(n), '[a]': (n) => `[a]: b\n\n${'[a][b]'.repeat(n)}`, '&a;': (n) => Array.from({length: n / 5}, (_, i) => `&a${i};`).join(''),
      };
      const slow = [];
      let depth = 0;
      for (const [name, make] of Object.entries(makers)) {
        const place = document.createElement('div');
        const begin = performance.now();
        place.append(...formatted(make(20_000)));
        const took = performance.now() - begin;
        if (took > 2000) slow.push(`${name}: ${took.toFixed()} ms`);
        const walk = document.createTreeWalker(place, NodeFilter.SHOW_ELEMENT);
        for (let at = walk.nextNode(); at; at = walk.nextNode()) {
          let levels = 0;
          for (let one = at; one !== place; one = one.parentNode) levels += 1;
          depth = Math.max(depth, levels);
          if (depth > 200) break;
        }
      }
      for (const character of ['[', '*']) formatted(character.repeat(1e5));
      formatted('>'.repeat(1e4));
      // Made by hand: the limit is of what a line is in, not of what the line before it was in.
      const after = formatted(`${'- '.repeat(12)}a\n\n> b\n`).map((element) => element.localName);
      // The browser is asked once for each name.
      const {parseFromString} = DOMParser.prototype;
      let asked = 0;
      DOMParser.prototype.parseFromString = function (...all) {
        asked += 1;
        return parseFromString.apply(this, all);
      };
      formatted('&nosuch; &hellip; '.repeat(100));
      return {slow, isDeep: depth > 64, after, asked};
    });
    assert.deepEqual(found, {slow: [], isDeep: false, after: ['ul', 'blockquote'], asked: 2});
    await page.context().close();
  });

  await check('a text that grows is in the end what the whole text is, whatever its pieces are', async () => {
    const page = await open(chromium, server);
    const random = numbers(7);
    const sources = [...examples.map(({text}) => text), ...texts];
    const some = Array.from({length: 600}, () => mutated(sources, random)).concat(texts, texts.join('\n\n').repeat(8), '- a\n  b | c\n  - | -\n  x\n\nd', '[a]\n\n- b\n\n[a]: /c\n"d"\n\n[a]\n\n[a]: /e\n', 'a\n1. | b\n- | -\nx', 'a\n# b | c\n-|-\nx', 'a\n    b | c\n- | -\nx\n\ny', `${'- '.repeat(12)}a\n\n> b\n`);
    const wrong = await page.evaluate(async (some) => {
      const {Growing, formatted} = await import('/page/prose.js');
      const {h} = await import('/page/dom.js');
      const wrong = [];
      for (const text of some) {
        for (const size of [1, 7, 40]) {
          if (size === 1 && text.length > 300) continue;
          const place = h('div');
          const growing = new Growing(place);
          for (let end = size; end < text.length; end += size) growing.show(text.slice(0, end), false);
          growing.show(text, true);
          const whole = h('div', formatted(text)).innerHTML;
          if (place.innerHTML !== whole) wrong.push([text, size, place.innerHTML, whole]);
        }
      }
      return wrong.slice(0, 2);
    }, some);
    assert.deepEqual(wrong, []);
    // While a long text grows, what is not formatted yet is code where it is code, in the lines that it has.
    const meanwhile = await page.evaluate(async () => {
      const {Growing} = await import('/page/prose.js');
      const {h} = await import('/page/dom.js');
      const code = 'let x = 1;\n'.repeat(500);
      return [[`\`\`\`\n${code}`, 'let y', ' = 2;\n'], [`\`\`\`\n${code}let`, ' y = 2;'], [`\`\`\`\n${code}\`\`\`\n`, 'Prose', ' here.']].map((pieces) => {
        const place = h('div');
        const growing = new Growing(place);
        pieces.reduce((text, piece) => {
          growing.show(text + piece, false);
          return text + piece;
        }, '');
        return [...place.children].map((one) => [one.localName, one.textContent.slice(-20)]);
      });
    });
    assert.deepEqual(meanwhile, [[['pre', '1;\nlet x = 1;\nlet y = 2;\n'.slice(-20)]], [['pre', 'let x = 1;\nlet y = 2;'.slice(-20)]], [['pre', '= 1;\nlet x = 1;\nlet x = 1;'.slice(-20)], ['p', 'Prose here.']]]);
    // A text of many pieces: of a quadratic one the work would be 100 times as much.
    const work = await page.evaluate(async () => {
      const {Growing} = await import('/page/prose.js');
      const {h} = await import('/page/dom.js');
      const cost = (make, pieces) => {
        const place = h('div');
        const growing = new Growing(place);
        let length = 0;
        const {format} = growing;
        growing.format = (text) => {
          length += text.length - growing.from;
          return format.call(growing, text);
        };
        let text = '';
        for (let i = 0; i < pieces; i++) {
          text += make(i);
          growing.show(text, false);
        }
        growing.show(text, true);
        return length / text.length;
      };
      return [cost(() => 'word after word ', 10_000), cost((i) => (i === 0 ? '```\n' : 'let x = 1;\n'), 10_000), cost(() => 'A paragraph.\n\n', 10_000)];
    });
    for (const factor of work) assert.ok(factor < 20, `each character is read ${factor} times`);
    await page.context().close();
  });

  await check('a message of an agent is shown with its lists, tables and tasks', async () => {
    const page = await open(chromium, server, {width: 390, height: 844});
    const id = await server.run('markdown');
    await server.reaches(id, 'ended');
    await go(page, `#/run/${id}`);
    await page.waitForSelector('.card.done');
    const shown = await page.evaluate(() => {
      const card = document.querySelector('.card.text');
      return {
        numbers: [...card.querySelectorAll(':scope > ol > li')].map((item) => item.firstElementChild.textContent.slice(0, 12)),
        inner: card.querySelectorAll('ol > li > ul > li').length,
        cells: card.querySelectorAll('td').length,
        done: [...card.querySelectorAll('.box')].map((box) => box.getAttribute('aria-label')),
        link: card.querySelector('a').href,
        isWide: document.documentElement.scrollWidth > innerWidth,
      };
    });
    assert.deepEqual(shown, {numbers: ['Read Retry-A', 'Wait until t', 'Test both fo'], inner: 2, cells: 6, done: ['done', 'open'], link: 'https://www.rfc-editor.org/rfc/rfc9110#section-10.2.3', isWide: false});
    // A long path in a table breaks between its parts, and leaves room for what is beside it.
    const path = 'crates/server/src/callbacks/public_address.rs';
    const wide = await server.run(`echo\n\n| File | Change |\n|---|---|\n| \`${path}\` | What is not public is refused |`);
    await server.reaches(wide, 'ended');
    await go(page, `#/run/${wide}`);
    await page.waitForSelector('.card.text .table');
    assert.deepEqual(await page.evaluate(() => {
      const table = document.querySelector('.card.text .table');
      return [table.scrollWidth <= table.clientWidth, table.querySelector('code').textContent];
    }), [true, path]);
    isClean(page);
    await page.context().close();
  });
}
