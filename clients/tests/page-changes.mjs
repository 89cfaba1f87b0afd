// Checks of the part Changes of a run, for page.mjs. The last ones have runs that change a repository; the diffs of the
// others are made by hand, in the form of `GET /v1/runs/{id}/diff`.

import assert from 'node:assert/strict';
import {execFileSync} from 'node:child_process';
import {mkdir, readFile, writeFile} from 'node:fs/promises';
import {join} from 'node:path';
import {go, isClean, open, require, text} from './browser.mjs';
import {PROGRAM, check, until} from './server.mjs';

const same = (text) => ({kind: 'context', text});
const added = (text, more) => ({kind: 'added', text, ...more});
export const deleted = (text) => ({kind: 'deleted', text});
export const hunk = (oldStart, newStart, lines, section) => ({oldStart, oldLines: lines.filter(({kind}) => kind !== 'added').length, newStart, newLines: lines.filter(({kind}) => kind !== 'deleted').length, section, lines});
const count = (hunks, kind) => hunks.flatMap(({lines}) => lines).filter((line) => line.kind === kind).length;
export const file = (status, path, hunks = [], more = {}) => ({status, path, oldMode: status === 'added' ? undefined : '100644', newMode: status === 'deleted' ? undefined : '100644', insertions: count(hunks, 'added'), deletions: count(hunks, 'deleted'), hunks: hunks.length > 0 ? hunks : undefined, ...more});
const sum = (files, name) => files.reduce((sum, file) => sum + (file[name] ?? 0), 0);
export const diffOf = (...files) => ({base: 'a'.repeat(40), head: 'b'.repeat(40), files, filesChanged: files.length, insertions: sum(files, 'insertions'), deletions: sum(files, 'deletions')});

export const RETRY = file('modified', 'src/retry.rs', [
  hunk(9, 9, [same('fn wait() {'), deleted('    parse(value)'), deleted(''), added('    match value {'), added(''), added('\tOk(seconds) => seconds,'), same('}')], 'impl Client'),
  hunk(112, 113, [same('let a = 1;'), added('let b = 2;', {noNewline: true})]),
]);

/// Opens the view of an ended run as if it had left this. Requests of the changes are in `page.asked`.
export async function opened(chromium, server, id, diff, {workspace, ...form} = {}) {
  const page = await open(chromium, server, form);
  page.asked = [];
  await page.route(/\/diff(\?|$)/, (route) => {
    const query = new URL(route.request().url()).searchParams;
    page.asked.push(query.toString());
    const paths = query.getAll('path');
    const files = paths.length > 0 ? diff.files.filter((file) => paths.includes(file.path)) : diff.files;
    return route.fulfill({json: {...diff, files: query.has('stat') ? files.map((file) => ({...file, hunks: undefined})) : files}});
  });
  const {base, head, filesChanged, insertions, deletions} = diff;
  const left = {kind: 'worktree', directory: '/tmp/x', branch: 'teamster/retry', base, head, commits: 2, filesChanged, insertions, deletions, dirty: false, ...workspace};
  await page.waitForSelector(`a.run[href="#/run/${id}"]`);
  await page.evaluate(async ([id, left]) => {
    const {state} = await import('/page/state.js');
    state.runs.get(id).workspace = left;
    window.pauses = [];
    new PerformanceObserver((list) => window.pauses.push(...list.getEntries().map(({duration}) => duration))).observe({type: 'longtask'});
  }, [id, left]);
  await go(page, `#/run/${id}`);
  await page.waitForSelector('.changes:visible');
  return page;
}

export const openPart = async (page) => {
  await page.click('.changes > summary');
  await page.waitForSelector('.file');
};
const named = (path) => `.file:has(h3:has-text("${path}"))`;
/// The lines of a file: class, numbers, text.
const linesOf = (page, path) => page.locator(`${named(path)} .hunks code`).evaluateAll((all) => all.map((one) => [one.className, one.dataset.old, one.dataset.new, one.textContent].filter((part) => part !== undefined).map((part) => part.trim())));
/// What a copy of the whole of this has.
const copied = (page, selector) => page.locator(selector).evaluate((element) => {
  getSelection().selectAllChildren(element);
  return getSelection().toString();
});
/// A browser that was not blocked: no task took a second.
const noPause = async (page) => assert.deepEqual((await page.evaluate(() => window.pauses)).filter((duration) => duration > 1000), []);
const fits = async (page) => assert.ok(await page.evaluate(() => document.documentElement.scrollWidth <= innerWidth), 'the page is wider than the window');

export async function checkChanges(chromium, server) {
  const id = await server.run('story');
  await server.reaches(id, 'waiting');
  await server.api(`/requests/${id}/1`, {decision: 'allow'});
  await server.reaches(id, 'ended');

  await check('the changes of a run are shown by file and line, and a copy has no numbers', async () => {
    const page = await opened(chromium, server, id, diffOf(
      RETRY,
      file('renamed', 'src/client/transport.rs', [], {oldPath: 'src/transport.rs'}),
      file('mode', 'release.sh', [], {newMode: '100755'}),
      file('added', 'a.png', [], {binary: true, insertions: undefined, deletions: undefined}),
      file('type', 'current', [hunk(1, 0, [deleted('text')]), hunk(0, 1, [added('../target', {noNewline: true})])], {newMode: '120000'}),
      file('modified', 'dos.txt', [hunk(1, 1, [same('one\r'), added('two\r')])]),
      file('modified', 'cut.log', [hunk(1, 1, [added('a')])], {truncated: true}),
      file('added', 'empty'),
    ), {workspace: {dirty: true, wip: 'c0ffee'.repeat(6), unsaved: ['1 commit in the submodule libs/a']}});
    assert.equal((await text(page, '.changes > summary')).replace(/\s+/g, ' ').trim(), 'Changes teamster/retry 2 commits 8 files +7 −3 not all committed');
    assert.equal(page.asked.length, 0);
    await openPart(page);
    assert.deepEqual(page.asked, ['']);
    await page.evaluate(() => document.querySelectorAll('.file').forEach((one) => { one.open = true; }));
    await page.waitForSelector('.file:nth-child(8) .note');
    const files = await page.locator('.file').evaluateAll((all) => all.map((one) => [
      one.querySelector('summary .sign').title, one.querySelector('.name').textContent,
      [...one.querySelectorAll('summary .tag, .plus, .minus')].map((part) => part.textContent).join(' '),
      [...one.querySelectorAll('.note')].map((part) => part.textContent).join(' ')]));
    const short = id.slice(0, 13);
    assert.deepEqual(files, [
      ['modified', 'src/retry.rs', '+4 −2', ''],
      ['renamed', 'src/transport.rs → src/client/transport.rs', '', 'Its content is the same.'],
      ['mode changed', 'release.sh', 'file → executable', 'Its content is the same.'],
      ['added', 'a.png', 'binary', `It is binary. teamster runs fetch ${short} brings it.`],
      ['type changed', 'current', 'file → symbolic link +1 −1', ''],
      ['modified', 'dos.txt', '+1', 'Its lines end with CR LF.'],
      ['modified', 'cut.log', 'in part +1', `Lines are left out here, because there are too many. teamster runs diff ${short} has all.`],
      ['added', 'empty', '', 'It is empty.'],
    ]);
    assert.deepEqual(await linesOf(page, 'src/retry.rs'), [
      ['range', '@@ -9,4 +9,5 @@ impl Client'],
      ['same', '9', '9', 'fn wait() {'],
      ['deleted', '10', '', 'parse(value)'],
      ['deleted', '11', '', ''],
      ['added', '', '10', 'match value {'],
      ['added', '', '11', ''],
      ['added', '', '12', 'Ok(seconds) => seconds,'],
      ['same', '12', '13', '}'],
      ['range', '@@ -112,1 +113,2 @@'],
      ['same', '112', '113', 'let a = 1;'],
      ['added no-newline', '', '114', 'let b = 2;'],
    ]);
    assert.deepEqual((await copied(page, `${named('src/retry.rs')} .hunks`)).trim().split('\n').slice(1, 8), ['fn wait() {', '    parse(value)', '', '    match value {', '', '\tOk(seconds) => seconds,', '}']);
    assert.match(await text(page, '.diff-of > .note'), /^Not all of it was committed by the agent. The rest is kept as commit c0ffeec0ffee\.$/);
    await page.click('.diff-of .head summary');
    assert.deepEqual(await page.locator('.command code').allInnerTexts(), [`teamster runs apply ${short}`, `teamster runs fetch ${short}`]);
    // Of what the agent reported, only what is outside remains.
    assert.equal(await page.locator('.files:visible').count(), 0);
    isClean(page);
    await page.context().close();
  });

  await check('paths and lines of a change are inert, and what cannot be seen in them is marked', async () => {
    const markup = '</pre><img src=x onerror="window.hacked=1"><script>window.hacked=2</script>';
    for (const form of [{width: 390, height: 844}, {dark: true}]) {
      const page = await opened(chromium, server, id, diffOf(
        file('added', `a\u202eb\n${markup}`, [hunk(0, 1, [added(markup), added('x\u200b\u2066y\r'), added('w'.repeat(900))], markup)], {rawPath: 'a%FF'}),
        file('deleted', 'long-'.repeat(700), [hunk(1, 0, [deleted('a')])]),
        RETRY,
      ), {workspace: {branch: `b${markup}`, unsaved: [markup], error: markup}, ...form});
      await openPart(page);
      await page.waitForSelector('.hunks');
      assert.equal(await text(page, '.file .name bdi'), `aU+202EbU+000A${markup}`);
      assert.deepEqual((await linesOf(page, 'aU+202E')).map((line) => line.at(-1)), [`@@ -0,0 +1,3 @@ ${markup}`, markup, 'xU+200BU+2066yU+000D', 'w'.repeat(900)]);
      const found = await page.evaluate(() => [window.hacked, document.querySelectorAll('.changes img, .changes script').length]);
      assert.deepEqual(found, [undefined, 0]);
      await fits(page);
      await page.evaluate(await readFile(require.resolve('axe-core/axe.min.js'), 'utf8'));
      const faults = await page.evaluate(async () => (await window.axe.run()).violations.map(({id, nodes}) => `${id}: ${nodes[0].html.slice(0, 200)}`));
      assert.deepEqual(faults, []);
      isClean(page);
      await page.context().close();
    }
  });

  await check('both sides are shown on a wide screen by a switch that is remembered', async () => {
    const page = await opened(chromium, server, id, diffOf(RETRY, file('added', 'new.rs', [hunk(0, 1, [added('a')])])));
    await openPart(page);
    assert.equal(await page.locator('.pair').count(), 0);
    await page.check('.split input');
    const pairs = await page.locator(`${named('src/retry.rs')} .pair`).evaluateAll((all) => all.map((pair) => [...pair.children].map((side) => [side.className, (side.dataset.old ?? '').trim(), (side.dataset.new ?? '').trim(), side.textContent.trim()].join('|'))));
    assert.deepEqual(pairs, [
      ['same|9||fn wait() {', 'same||9|fn wait() {'],
      ['deleted|10||parse(value)', 'added||10|match value {'],
      ['deleted|11||', 'added||11|'],
      ['none|||', 'added||12|Ok(seconds) => seconds,'],
      ['same|12||}', 'same||13|}'],
      ['same|112||let a = 1;', 'same||113|let a = 1;'],
      ['none|||', 'added no-newline||114|let b = 2;'],
    ]);
    // A selection that begins on a side is on that side.
    await page.locator('.pair .added').first().dispatchEvent('pointerdown');
    assert.deepEqual((await copied(page, `${named('src/retry.rs')} .hunks`)).trim().split(/\n+/), ['fn wait() {', '    match value {', '\tOk(seconds) => seconds,', '}', 'let a = 1;', 'let b = 2;']);
    // A new file has one side.
    assert.equal(await page.locator(`${named('new.rs')} .pair`).count(), 0);
    // A narrow window has no room for it.
    await page.setViewportSize({width: 390, height: 844});
    await page.waitForSelector('.pair', {state: 'detached'});
    assert.equal(await page.locator('.split:visible').count(), 0);
    await page.setViewportSize({width: 1280, height: 860});
    await page.waitForSelector('.pair');
    const kept = await page.evaluate(() => ({...localStorage}));
    assert.deepEqual(kept, {'teamster.diff': 'split'});
    await go(page, '#/now');
    await page.waitForSelector('main.now');
    await go(page, `#/run/${id}`);
    await openPart(page);
    await page.waitForSelector('.pair');
    assert.equal(await page.isChecked('.split input'), true);
    isClean(page);
    await page.context().close();
  });

  await check('of many changes the lines of a file are read when it is opened, by the keyboard too', async () => {
    const some = Array.from({length: 320}, (_, i) => file('modified', `src/part_${String(i).padStart(3, '0')}.rs`, [hunk(1, 1, [deleted('old'), added(`new ${i}`)])]));
    some[1] = {...some[1], status: 'renamed', oldPath: 'src/before.rs'};
    some[2] = {...some[2], rawPath: 'src/%FF.rs'};
    const diff = {...diffOf(...some), filesChanged: 4000, truncated: true};
    const page = await opened(chromium, server, id, diff);
    await openPart(page);
    assert.deepEqual([page.asked, await page.locator('.file').count(), await page.locator('.hunks').count()], [['stat=true'], 300, 0]);
    assert.equal(await text(page, '.diff-of > .note'), `3680 more files are not shown: teamster runs diff ${id.slice(0, 13)} has all.`);
    await page.keyboard.press('j');
    await page.keyboard.press('Enter');
    await page.waitForSelector(`${named('part_000')} .hunks`);
    await page.keyboard.press('j');
    await page.keyboard.press('Enter');
    await page.waitForSelector(`${named('part_001')} .hunks`);
    await page.click(`${named('part_002')} summary`);
    await page.waitForSelector(`${named('part_002')} .hunks`);
    assert.deepEqual(page.asked.slice(1), ['path=src%2Fpart_000.rs', 'path=src%2Fbefore.rs&path=src%2Fpart_001.rs', '']);
    for (const [i, name] of ['part_000', 'part_001', 'part_002'].entries()) assert.deepEqual((await linesOf(page, name))[2], ['added', '', '1', `new ${i}`]);
    // What was read is not read again.
    for (let i = 0; i < 2; i++) await page.click(`${named('part_000')} summary`);
    await page.waitForSelector(`${named('part_000')} .hunks:visible`);
    assert.equal(page.asked.length, 4);
    await page.click('button:has-text("Show more: 20 files are left")');
    assert.equal(await page.locator('.file').count(), 320);
    await noPause(page);
    isClean(page);
    await page.context().close();
  });

  await check('a change of 2 MB is shown in pieces that do not block the page', async () => {
    const many = file('added', 'many.js', [hunk(0, 1, Array.from({length: 40_000}, (_, i) => added(`${i} ${'lorem ipsum '.repeat(4)}`)))]);
    const long = file('modified', 'long.js', [hunk(1, 1, [added('var a=1;'.repeat(262_144))])]);
    for (const form of [{}, {width: 390, height: 844}]) {
      const page = await opened(chromium, server, id, diffOf(long, many), form);
      await openPart(page);
      await page.click(`${named('many.js')} summary`);
      const lines = page.locator(`${named('many.js')} .added`);
      await until('lines', async () => (await lines.count()) === 1999);
      await page.click('button:has-text("Show more: 38,001 lines are left")');
      assert.equal(await lines.count(), 3999);
      await page.click(`${named('long.js')} summary`);
      const line = page.locator(`${named('long.js')} .added > code`);
      assert.equal((await line.textContent()).length, 4000);
      await page.click('button:has-text("Show more: 2094 kB are left")');
      assert.equal((await line.textContent()).length, 204_000);
      await fits(page);
      await noPause(page);
      isClean(page);
      await page.context().close();
    }
  });

  await check('a run without changes has no part for them, and an error of the server has a next step', async () => {
    const page = await open(chromium, server);
    await go(page, `#/run/${id}`);
    await page.waitForSelector('.card.done');
    assert.deepEqual([await page.locator('.changes:visible').count(), await page.locator('.error:visible').count()], [0, 0]);
    await page.context().close();
    const other = await opened(chromium, server, id, diffOf(RETRY));
    await other.route(/\/diff(\?|$)/, (route) => route.fulfill({status: 409, json: {code: 'NO_WORKSPACE', detail: 'nothing is left of it'}}), {times: 1});
    await other.click('.changes > summary');
    await other.waitForSelector('.changes .error:has-text("nothing is left of it")');
    await other.click('.changes button:has-text("Try again")');
    await other.waitForSelector('.hunks');
    assert.equal(await other.locator('.error:visible').count(), 0);
    isClean(other, '409');
    await other.context().close();
  });

  const repository = join(server.folder, 'code/repository');
  await mkdir(join(repository, 'src'), {recursive: true});
  for (const [name, content] of [['src/retry.rs', 'fn wait() {\n    parse(value)\n}\n'], ['src/transport.rs', 'use std::io;\n'.repeat(9)], ['run.sh', 'true\n'], ['old.md', '# Old\n']]) await writeFile(join(repository, name), content);
  for (const words of [['init', '--quiet'], ['add', '.'], ['-c', 'user.name=A', '-c', 'user.email=a@example.com', 'commit', '--quiet', '--message', 'First']]) execFileSync('git', ['-C', repository, ...words], {env: server.env});
  const changed = async (what) => {
    const id = await server.run(`changes ${what}`, {workingDirectory: repository, worktree: true});
    await server.reaches(id, 'ended');
    return id;
  };

  await check('what a run has changed in its worktree is there at its end, committed or not', async () => {
    const page = await open(chromium, server);
    const id = await changed('few');
    const {workspace} = await server.api(`/runs/${id}`);
    await page.waitForSelector(`a.run[href="#/run/${id}"]:has-text("6 files +2 −2")`);
    await go(page, `#/run/${id}`);
    await page.click('.card.done button:has-text("Show the changes")');
    await page.waitForSelector('.file');
    assert.equal((await text(page, '.changes > summary')).replace(/\s+/g, ' ').trim(), `Changes ${workspace.branch} 1 commit 6 files +2 −2 not all committed`);
    assert.equal(await page.evaluate(() => document.activeElement.parentElement.className), 'changes');
    const files = await page.locator('.file').evaluateAll((all) => all.map((one) => [one.querySelector('summary .sign').title, one.querySelector('.name').textContent, [...one.querySelectorAll('summary .tag, .plus, .minus')].map((part) => part.textContent).join(' ')].join('|')));
    assert.deepEqual(files, [
      'added|aU+000AbU+202E.txt|+1',
      'added|a.bin|binary',
      'deleted|old.md|−1',
      'mode changed|run.sh|file → executable',
      'renamed|src/transport.rs → src/client.rs|',
      'modified|src/retry.rs|+1 −1',
    ]);
    assert.deepEqual(await linesOf(page, 'src/retry.rs'), [
      ['range', '@@ -1,3 +1,3 @@'], ['same', '1', '1', 'fn wait() {'], ['deleted', '2', '', 'parse(value)'], ['added', '', '2', 'match value {'], ['same', '3', '3', '}'],
    ]);
    assert.equal(await text(page, '.diff-of > .note'), `Not all of it was committed by the agent. The rest is kept as commit ${workspace.wip.slice(0, 12)}.`);
    assert.equal(await page.evaluate(() => window.hacked), undefined);
    assert.equal(await text(page, '.about section:has(.files) h2'), 'Files changed elsewhere');
    assert.deepEqual(await page.locator('.files bdi').allInnerTexts(), [join(server.folder, 'elsewhere.txt')]);
    // Of a run that was attached to a terminal, the history has it.
    execFileSync(PROGRAM, ['run', 'claude', 'changes few', '--cwd', repository, '--worktree'], {env: server.env, stdio: 'ignore'});
    const [record] = (await server.api('/history?limit=1')).runs;
    await go(page, `#/run/${record.runId}`);
    await page.waitForSelector(`.changes > summary:has-text("${record.workspace.branch}"):has-text("6 files")`);
    await page.click('.changes > summary');
    await page.waitForSelector('.diff-of :text("teamster runs diff"), .file');
    assert.equal(await page.locator('.error:visible').count(), 0);
    isClean(page, '404');
    await page.context().close();
  });

  await check('a browser elsewhere has no buttons that change files of the server’s machine', async () => {
    const page = await open(chromium, server, {width: 390, height: 844});
    // As a proxy in front of the server sends it.
    await page.setExtraHTTPHeaders({'X-Forwarded-For': '203.0.113.7'});
    const id = await changed('few');
    await page.waitForSelector(`a.run[href="#/run/${id}"]:has-text("6 files")`);
    await go(page, `#/run/${id}`);
    await openPart(page);
    assert.equal(await page.locator('.settle').count(), 0);
    await page.waitForSelector('.diff-of .note:has-text("on the server’s machine")');
    await fits(page);
    await server.api(`/runs/${id}/discard`, {});
    await page.context().close();
  });

  await check('changes are applied to the repository, and discarded after a question that says what is lost', async () => {
    const page = await open(chromium, server, {width: 390, height: 844});
    const id = await changed('few');
    const {workspace} = await server.api(`/runs/${id}`);
    await page.waitForSelector(`a.run[href="#/run/${id}"]:has-text("6 files")`);
    await go(page, `#/run/${id}`);
    await openPart(page);
    const git = (...words) => execFileSync('git', ['-C', repository, ...words], {env: server.env, encoding: 'utf8'});
    await page.click('.settle .apply');
    assert.match(await text(page, '.settle p'), /^Apply the changes to the files of the repository/);
    await fits(page);
    await page.click('.settle button:has-text("Keep as it is")');
    assert.equal(git('status', '--porcelain'), '');
    await page.click('.settle .apply');
    await page.click('.settle .actions button:text-is("Apply")');
    await page.waitForSelector('.settle [role=status]');
    assert.equal(await text(page, '.settle [role=status]'), `7 files have the changes now, in ${repository}.`);
    assert.match(git('status', '--porcelain'), / M src\/retry\.rs/);
    assert.equal(await page.locator('.settle .apply').count(), 0);
    // From another view, a second time: they do not fit any more.
    await go(page, '#/now');
    await page.waitForSelector('main.now');
    await go(page, `#/run/${id}`);
    await openPart(page);
    await page.click('.settle .apply');
    await page.click('.settle .actions button:text-is("Apply")');
    await page.waitForSelector('.settle .error:visible:has-text("so nothing was changed")');
    git('reset', '--quiet', '--hard');
    git('clean', '--quiet', '--force', '-d');

    await page.click('.settle .discard');
    const question = await text(page, '.settle p');
    assert.equal(question, `Discard 1 commit and what is not committed, with the worktree ${workspace.directory} and the branch ${workspace.branch}? They cannot be brought back.`);
    assert.equal(await page.evaluate(() => document.activeElement.textContent), 'Keep as it is');
    await page.click('.settle button:has-text("Discard for good")');
    await page.waitForSelector('.diff-of > [role=status]');
    assert.equal(await text(page, '.diff-of'), 'The changes were discarded.');
    assert.equal(git('branch', '--list', workspace.branch), '');
    assert.equal(git('status', '--porcelain'), '');
    await fits(page);
    isClean(page, '409');
    await page.context().close();
  });

  await check('of a worktree with many changes the server is asked for one file at a time', async () => {
    const page = await open(chromium, server, {width: 390, height: 844});
    const id = await changed('many');
    await page.waitForSelector(`a.run[href="#/run/${id}"]:has-text("completed")`);
    await go(page, `#/run/${id}`);
    await openPart(page);
    const {workspace} = await server.api(`/runs/${id}`);
    assert.equal((await text(page, '.changes > summary')).replace(/\s+/g, ' ').trim(), `Changes ${workspace.branch} 311 files +45,310 not committed`);
    assert.equal(await text(page, '.diff-of > .note'), `The agent has committed nothing. Its changes are kept as commit ${workspace.wip.slice(0, 12)}.`);
    assert.equal(await text(page, '.run-head .path'), '…/repository');
    const asked = [];
    page.on('request', (request) => { if (request.url().includes('/diff')) asked.push(new URL(request.url()).search); });
    await page.click(`${named('part_042')} summary`);
    await page.waitForSelector(`${named('part_042')} .hunks`);
    assert.deepEqual(await linesOf(page, 'part_042'), [['range', '@@ -0,0 +1,1 @@'], ['added', '', '1', '42']]);
    await page.click(`${named('big.txt')} summary`);
    await page.waitForSelector(`${named('big.txt')} .hunks`);
    assert.equal(await page.locator(`${named('big.txt')} .added`).count(), 1999);
    assert.match(await text(page, `${named('big.txt')} .note`), /^Lines are left out here, because there are too many\. teamster runs diff /);
    assert.deepEqual(asked, ['?path=part_042.rs', '?path=big.txt']);
    await fits(page);
    isClean(page);
    await page.context().close();
  });
}
