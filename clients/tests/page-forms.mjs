// Checks of the cards of requests, for page.mjs: what a person allows is shown whole, and a form answers with the types
// of its schema. The requests are made by hand.

import assert from 'node:assert/strict';
import {isClean, open, text} from './browser.mjs';
import {check} from './server.mjs';

/// Shows the card of a request; its answers are in `window.answers`.
async function card(page, request) {
  await page.route('**/v1/requests/**', (route) => route.fulfill({status: 204}));
  await page.evaluate(async (request) => {
    const {requestCard} = await import('/page/request.js');
    const run = {runId: 'r', provider: 'claude', directory: '/home/ada/code'};
    document.querySelector('#card')?.remove();
    const place = document.createElement('div');
    place.id = 'card';
    place.append(requestCard({requestId: 'r/1', runId: 'r', toolName: 'T', kind: 'other', askedAt: Date.now(), ...request}, run));
    document.querySelector('main').before(place);
  }, request);
}

/// The parts of the card: its first line, lines of diffs with their signs, other arguments.
const parts = (page) => page.locator('#card .request').evaluate((card) => ({
  subject: card.querySelector('.subject')?.textContent ?? '',
  diff: [...card.querySelectorAll('.hunks pre > code')].map((line) => ({added: '+', deleted: '-', same: ' ', range: ''})[line.classList[0]] + line.textContent + (line.classList.contains('no-newline') ? '$' : '')),
  others: [...card.querySelectorAll('dt')].map((name) => [name.textContent, name.nextElementSibling.textContent]),
}));

export async function checkForms(chromium, server) {
  await check('a card of a request hides no argument of the tool', async () => {
    const page = await open(chromium, server, {width: 390, height: 844});
    const shows = async (input, {subject = '', diff = [], others = {}}, more) => {
      await card(page, {input, ...more});
      const expected = {subject, diff, others: Array.isArray(others) ? others : Object.entries(others)};
      assert.deepEqual(await parts(page), expected, JSON.stringify(input));
    };
    await shows({to: 'eve@example.com', subject: 'x', content: 'the secret'}, {others: {to: 'eve@example.com', subject: 'x', content: 'the secret'}}, {toolName: 'mcp__mail__send_mail'});
    assert.match(await page.locator('#card header').innerText(), /wants to use mcp__mail__send_mail/);
    await shows({command: 'rm -r a', description: 'Look', run_in_background: true}, {subject: 'rm -r a', others: {description: 'Look', run_in_background: 'true'}}, {kind: 'execute'});
    assert.match(await page.locator('#card header').innerText(), /wants to run a command T/);
    await shows({command: ['rm', '-r', 'a b']}, {subject: 'rm -r a b', others: {command: '[\n  "rm",\n  "-r",\n  "a b"\n]'}});
    await shows({file_path: '/home/ada/code/src/a.rs', old_string: 'a', new_string: 'b', replace_all: true}, {subject: 'src/a.rs', diff: ['-a', '+b'], others: {replace_all: 'true'}});
    // Without its directory, a command is another one.
    await shows({command: '/home/ada/code/ls -la'}, {subject: '/home/ada/code/ls -la'}, {kind: 'execute'});
    await shows({query: '/home/ada/code/x'}, {subject: '/home/ada/code/x'});
    // Half of an edit, and texts of files that are none.
    await shows({file_path: '/a', new_string: 'b', content: ''}, {subject: '/a', others: {new_string: 'b', content: '""'}});
    await shows({path: '/a', old_string: '', new_string: ''}, {subject: '/a', others: {old_string: '""', new_string: '""'}});
    await shows({path: '/a', edits: [{oldText: 'a', newText: 'b'}, {oldText: 'c', newText: 'd', all: 1}], dryRun: false},
      {subject: '/a', diff: ['-a', '+b', '-c', '+d'], others: {all: '1', dryRun: 'false'}});
    // Each of several changes is beside its own diff.
    await shows({changes: [{path: '/a', kind: {type: 'add'}, diff: 'x\n'}, {path: '/b', kind: {type: 'update', move_path: '/c'}, diff: '@@ -1 +1 @@\n-- a\n+b\n'}], root: '/'},
      {subject: '/', diff: ['+x', '@@ -1 +1 @@', '-- a', '+b'], others: [['path', '/a'], ['kind', '{\n  "type": "add"\n}'], ['path', '/b'], ['kind', '{\n  "type": "update",\n  "move_path": "/c"\n}']]});
    await shows({undefined: 'a', '': 'b', list: [null]}, {others: {undefined: 'a', '""': 'b', list: '[\n  null\n]'}});
    await shows({n: '5', t: 'true', s: ' ', e: {}}, {others: {n: '"5"', t: '"true"', s: '" "', e: '{}'}});
    // No object.
    for (const [input, shown] of [['rm -r a', 'rm -r a'], [5, '5'], [false, 'false'], [['a', 'b'], '[\n  "a",\n  "b"\n]']]) {
      await card(page, {input});
      assert.equal(await page.locator('#card .subject, #card .whole').innerText(), shown);
    }
    // A name and an argument beside a diff are marked, too.
    await card(page, {input: {path: '/a', content: 'x', 'a\u202eb': 'y'}});
    await page.waitForSelector('#card .warning');
    assert.ok(await page.evaluate(() => document.documentElement.scrollWidth <= innerWidth));
    isClean(page);
    await page.context().close();
  });

  await check('a card of an edit shows its lines once, and what differs', async () => {
    const page = await open(chromium, server);
    const diff = async (old_string, new_string) => {
      await card(page, {input: {file_path: '/a', old_string, new_string}});
      return (await parts(page)).diff;
    };
    assert.deepEqual(await diff('a\nb\nc\nd', 'a\nx\nc\ny\nd'), [' a', '-b', '+x', ' c', '+y', ' d']);
    assert.deepEqual(await diff('a', 'a\nb'), [' a', '+b']);
    assert.deepEqual(await diff('a\n', ''), ['-a']);
    assert.deepEqual(await diff('', 'a\n\nb'), ['+a', '+', '+b']);
    assert.deepEqual(await diff('same\n', 'same\n'), [' same']);
    // The end of the last line is the difference.
    assert.deepEqual(await diff('a\nb\n', 'a\nb'), [' a', '-b', '+b$']);
    assert.deepEqual(await diff('a\r\nb', 'a\nb'), ['-aU+000D', '+a', ' b']);
    await card(page, {input: {path: '/a', content: 'a\r\nb\r\n'}});
    assert.deepEqual((await parts(page)).diff, ['+a', '+b']);
    await page.waitForSelector('#card .note:has-text("CR LF")');
    // Of a file that is written whole, what differs from its text, with the lines around it.
    const numbers = (words) => Array.from({length: 30}, (_, i) => `${words[i + 1] ?? i + 1}\n`).join('');
    await card(page, {input: {path: '/a', content: numbers({9: 'nine', 21: 'x\n21'})}, oldText: numbers({})});
    assert.deepEqual((await parts(page)).diff, ['@@ -6,7 +6,7 @@', ' 6', ' 7', ' 8', '-9', '+nine', ' 10', ' 11', ' 12', '@@ -18,6 +18,7 @@', ' 18', ' 19', ' 20', '+x', ' 21', ' 22', ' 23']);
    await card(page, {input: {path: '/a', content: 'one\nTWO\n'}, oldText: 'one\ntwo\n'});
    assert.deepEqual((await parts(page)).diff, [' one', '-two', '+TWO']);
    // So has the card of its call.
    const ofCall = await page.evaluate(async () => {
      const {Entries} = await import('/page/entries.js');
      const list = document.createElement('div');
      document.querySelector('main').before(list);
      const entries = new Entries(list, '/', () => {});
      entries.take({seq: 1, atMs: Date.now(), type: 'tool_use', toolName: 'Write', toolId: 't', kind: 'edit', input: {file_path: '/a', content: 'one\nTWO\n'}});
      const card = list.querySelector('details');
      const opened = new Promise((resolve) => card.addEventListener('toggle', resolve, {once: true}));
      card.open = true;
      await opened;
      entries.requested([{toolId: 't', oldText: 'one\ntwo\n'}, {toolId: 'other', oldText: ''}, {}]);
      const lines = [...list.querySelectorAll('.hunks pre > code')].map(({className, textContent}) => `${className} ${textContent}`);
      list.remove();
      return lines;
    });
    assert.deepEqual(ofCall, ['same one', 'deleted two', 'added TWO']);
    await card(page, {input: {path: '/a', content: 'new\n'}, oldText: ''});
    assert.deepEqual((await parts(page)).diff, ['+new']);
    // What is the same in both is right for any two texts, and large ones take no second.
    const wrong = await page.evaluate(async () => {
      const {compare} = await import('/page/edit.js');
      let seed = 7;
      const random = (n) => (seed = (seed * 48_271) % 2_147_483_647) % n;
      const text = () => Array.from({length: random(9)}, () => 'abc'[random(3)]).join('\n');
      const of = (lines, kind) => lines.filter((line) => line.kind !== kind).map(({text}) => text).join('\n');
      const found = [];
      for (let i = 0; i < 2000; i++) {
        const [a, b] = [text() + '\n'.repeat(random(2)), text() + '\n'.repeat(random(2))];
        const lines = compare(a, b);
        if (of(lines, 'added') !== a.replace(/\n$/, '') || of(lines, 'deleted') !== b.replace(/\n$/, '')) found.push([a, b]);
      }
      const many = (word) => Array.from({length: 1900}, (_, i) => `${'x'.repeat(500)}${word}${i % 7}`).join('\n');
      const before = performance.now();
      compare(many('a'), many('b'));
      compare(`${'a\n'.repeat(50_000)}b`, `${'c\n'.repeat(50_000)}b`);
      return [found, performance.now() - before < 1000];
    });
    assert.deepEqual(wrong, [[], true]);
    isClean(page);
    await page.context().close();
  });

  await check('a form answers with the types of its schema, and leaves out what was not chosen', async () => {
    const page = await open(chromium, server, {width: 390, height: 844});
    const sent = async (schema, fill = async () => {}) => {
      await card(page, {schema: {type: 'object', ...schema}, message: 'Which?'});
      await fill();
      const asked = page.waitForRequest('**/v1/requests/**', {timeout: 10_000});
      await page.click('#card .allow');
      return (await asked).postDataJSON().input;
    };
    const properties = {
      level: {type: 'integer', enum: [1, 2, 3]},
      deep: {enum: [1, '1', true, null], enumNames: ['one', 'text', 'yes', 'nothing']},
      sure: {type: 'boolean'},
      color: {type: 'string', oneOf: [{const: '#f00', title: 'Red'}, {const: '#0f0', title: 'Green'}]},
      size: {anyOf: [{const: 10, title: 'Small'}, {const: 20}]},
      days: {type: 'array', items: {enum: ['Mo', 'Tu']}},
      ports: {type: 'array', items: {anyOf: [{const: 80, title: 'http'}, {const: 443, title: 'https'}]}, maxItems: 1},
      ratio: {type: 'number'},
      mail: {type: 'string', format: 'email'},
      at: {type: 'string', format: 'date-time'},
      on: {type: 'string', format: 'date'},
      link: {type: 'string', format: 'uri'},
      more: {type: 'object'},
      text: {type: 'string', pattern: '^(a+)+$'},
    };
    const field = (name, tag) => `#card :is(label, fieldset):has(> :is(span, legend):text-is("${name}")) ${tag}`;
    assert.deepEqual(await sent({properties}), {});
    assert.deepEqual(await sent({properties}, async () => {
      for (const [name, label] of [['level', '2'], ['deep', 'yes'], ['sure', 'No'], ['color', 'Green'], ['size', '20']]) await page.selectOption(field(name, 'select'), {label});
      await page.check(field('days', 'label:has-text("Tu") input'));
      await page.check(field('ports', 'label:has-text("https") input'));
      for (const [name, value] of [['ratio', '0.5'], ['mail', 'a@example.com'], ['at', '2026-01-02T03:04:05'], ['on', '2026-01-02'], ['link', 'https://example.com'], ['text', 'aaa']]) await page.fill(field(name, 'input'), value);
      await page.fill(field('more', 'textarea'), '{"a": [1]}');
    }), {level: 2, deep: true, sure: false, color: '#0f0', size: 20, days: ['Tu'], ports: [443], ratio: 0.5, mail: 'a@example.com', at: '2026-01-02T03:04:05.000Z', on: '2026-01-02', link: 'https://example.com', more: {a: [1]}, text: 'aaa'});
    const defaults = {level: 3, sure: false, color: '#f00', days: ['Mo'], ratio: 0, at: '2026-01-02T04:04:05+01:00'};
    const withDefaults = Object.fromEntries(Object.entries(defaults).map(([name, value]) => [name, {...properties[name], default: value}]));
    assert.deepEqual(await sent({properties: withDefaults}), {...defaults, at: '2026-01-02T03:04:05.000Z'});
    // What is required, too long, or no JSON is not sent.
    const refuses = async (field, fill = async () => {}, required = []) => {
      await card(page, {schema: {type: 'object', required, properties: {field}}});
      await fill();
      assert.equal(await page.locator('#card form').evaluate((form) => form.checkValidity()), false, JSON.stringify(field));
    };
    for (const one of [properties.sure, properties.level, properties.ratio, properties.more]) await refuses(one, undefined, ['field']);
    await refuses({...properties.days, minItems: 1}, undefined, ['field']);
    await refuses({...properties.ports}, async () => { for (const box of await page.locator('#card [type=checkbox]').all()) await box.check(); });
    await refuses(properties.mail, () => page.fill('#card input', 'nobody'));
    await refuses(properties.more, () => page.fill('#card textarea', '{'));
    // Nothing that a schema may have breaks the card.
    const lengths = {a: {type: 'string', minLength: -1}, b: {type: 'string', maxLength: -1}, c: {type: 'string', minLength: 5, maxLength: 3}, d: {type: 'string', minLength: 2 ** 40, maxLength: 'x'}};
    for (const schema of [{properties: lengths}, {properties: null}, {properties: {a: true, b: {enum: []}, c: {type: ['string', 'null']}, d: {oneOf: [null]}, e: {type: 'array', items: {enum: []}}}, required: 'a'}]) assert.deepEqual(await sent(schema), {});
    isClean(page);
    await page.context().close();
  });

  await check('one request that cannot be shown as usual is there as JSON, and stops no other and no part of the page', async () => {
    const page = await open(chromium, server, {width: 390, height: 844});
    const answer = async () => {
      const asked = page.waitForRequest('**/v1/requests/**', {timeout: 10_000});
      await page.click('#card .allow');
      return (await asked).postDataJSON();
    };
    // What a server names as text may be no text: it sets nothing of an element.
    const markup = {innerHTML: '<img id="x">', onclick: 'x'};
    await card(page, {schema: {properties: {a: {type: 'string', title: markup, description: markup}, b: {type: 'number', minimum: {toString: 1}, title: 'B'}, c: {type: 'string', enum: ['d'], enumNames: [markup]}}}});
    assert.equal(await text(page, '#card label span'), JSON.stringify(markup));
    assert.equal(await page.locator('#card #x').count(), 0);
    // A field of an odd schema shows that, and takes JSON.
    assert.match(await text(page, '#card label:has(textarea)'), /^b\s+\{"type":"number","minimum":\{"toString":1\},"title":"B"\}\s+As JSON$/);
    await page.fill('#card input', 'x');
    await page.fill('#card textarea', '7');
    assert.deepEqual(await answer(), {decision: 'allow_with', input: {a: 'x', b: 7}});
    // A request of which nothing can be made.
    await card(page, {schema: null, message: 'Which?', hint: 'a\u202eb'});
    const shown = await text(page, '#card .plain pre');
    for (const part of ['"message": "Which?"', '"schema": null', '"hint": "aU+202Eb"', '"toolName": "T"']) assert.ok(shown.includes(part), shown);
    await page.fill('#card textarea', '{"a": 1}');
    assert.deepEqual(await answer(), {decision: 'allow_with', input: {a: 1}});
    await card(page, {toolName: null, input: {command: 'rm -r a'}});
    assert.match(await text(page, '#card .plain pre'), /"command": "rm -r a"/);
    assert.deepEqual(await answer(), {decision: 'allow'});
    await card(page, {input: {command: ['rm', {toString: 1}]}, askedAt: 1e300});
    assert.match(await text(page, '#card .whole'), /"rm",\s+\{\s+"toString": 1/);

    // In the view, all of them are there, and what follows them.
    const requests = [{input: {command: 'first'}}, {schema: null}, {input: {command: 'last'}}];
    const run = {runId: '0199d1c2-7e3a-7000-8000-000000000000', provider: 'claude', kind: 'run', state: 'waiting', acceptedAt: Date.now(), changedAt: Date.now(), seq: 1,
      requests: requests.map((request, i) => ({requestId: `r/${i}`, runId: 'r', toolName: 'T', kind: 'other', askedAt: 1000 + i, ...request}))};
    const message = `data: ${JSON.stringify({type: 'snapshot', runs: [run]})}\n\n`;
    await page.context().route('**/v1/events', (route) => route.fulfill({contentType: 'text/event-stream', body: message}));
    await page.reload();
    await page.waitForSelector('.calm:has-text("3 requests wait for you.")');
    assert.deepEqual(await page.locator('.request').evaluateAll((cards) => cards.map((card) => card.querySelector('.subject, .plain pre').textContent.includes('"schema": null') || card.querySelector('.subject').textContent)), ['first', true, 'last']);
    await page.waitForSelector(`a.run[href="#/run/${run.runId}"]`);

    // An item of any list, and what listens to changes.
    const lists = await page.evaluate(async () => {
      const {h, keyed} = await import('/page/dom.js');
      const {watch} = await import('/page/state.js');
      const list = h('div');
      const make = ({name}) => h('p', name.trim());
      const show = (...items) => {
        keyed(list, items, ({id}) => id, make);
        return [...list.children].map((child) => child.textContent.replace(/^.*as JSON:/, 'JSON '));
      };
      const found = [show({id: 1, name: 'a'}, {id: 2, name: 5}, {id: 3, name: 'c'})];
      const [first, plain, last] = list.children;
      found.push(show({id: 1, name: 'a'}, {id: 2, name: 5}, {id: 3, name: 'c'}));
      const stays = first === list.children[0] && plain === list.children[1] && last === list.children[2];
      found.push(show({id: 1, name: 'a'}, {id: 2, name: 'b'}, {id: 3, name: 'c'}));
      watch(() => { throw new Error('odd'); });
      await new Promise((resolve) => watch(resolve));
      return [...found, stays];
    });
    const odd = `JSON ${JSON.stringify({id: 2, name: 5}, null, 2)}`;
    assert.deepEqual(lists, [['a', odd, 'c'], ['a', odd, 'c'], ['a', 'b', 'c'], true]);

    // An entry of a log.
    const log = await page.evaluate(async () => {
      const {h} = await import('/page/dom.js');
      const {Entries} = await import('/page/entries.js');
      const list = h('div');
      const entries = new Entries(list);
      for (const entry of [{type: 'notice', message: 'a'}, {type: 'run:retry', delayMs: 1}, {type: 'notice', message: 'b'}]) entries.take({seq: 1, atMs: 1e300, ...entry});
      entries.finish();
      return [...list.querySelectorAll('.cards > *')].map((child) => child.querySelector('pre')?.textContent ?? child.textContent);
    });
    assert.deepEqual(log, ['a', JSON.stringify({seq: 1, atMs: 1e300, type: 'run:retry', delayMs: 1}, null, 2), 'b']);
    assert.ok(await page.evaluate(() => document.documentElement.scrollWidth <= innerWidth));
    isClean(page, 'odd');
    await page.context().close();
  });
}
