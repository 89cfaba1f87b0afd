// Behind proxies that do streams no good: one holds every response back until it is complete, one cuts each that is
// quiet for 2 s, and all of them every 3 s, and one serves the page below a path of its host, speaks HTTP/1.0 to the
// server, compresses, and takes only short headers. Both clients, curl, the browser's EventSource and `--remote` lose
// nothing, and the page works.

import assert from 'node:assert/strict';
import {execFile, spawn} from 'node:child_process';
import {createServer} from 'node:net';
import {createRequire} from 'node:module';
import {mkdir, writeFile} from 'node:fs/promises';
import {join} from 'node:path';
import {pathToFileURL} from 'node:url';
import {promisify} from 'node:util';
import {browser, open} from './browser.mjs';
import {PROGRAM, Server, check, until} from './server.mjs';

const run = promisify(execFile);
const installed = createRequire(join(process.env.CLIENT_MODULES, 'package.json')).resolve('@teamster-rs/client');
const {Teamster} = await import(pathToFileURL(installed));

/// So many pieces, so far apart in seconds: one that is never quiet, and one that is quiet for longer than the proxy allows.
const RUNS = [[80, 0.1], [3, 2.6]];

/// Ports that are free now.
async function ports(number) {
  const servers = await Promise.all(Array.from({length: number}, () => new Promise((resolve) => {
    const server = createServer().listen(0, '127.0.0.1', () => resolve(server));
  })));
  const found = servers.map((server) => server.address().port);
  await Promise.all(servers.map((server) => new Promise((resolve) => server.close(resolve))));
  return found;
}

const server = await Server.start();
const [buffers, cuts, below] = await ports(3);
const folder = join(server.folder, 'nginx');
await mkdir(folder);
const common = `proxy_pass ${server.url}; proxy_http_version 1.1; proxy_set_header Host $http_host; proxy_set_header Connection "";`;
await writeFile(join(folder, 'nginx.conf'), `
${process.getuid() === 0 ? 'user root;' : ''}
daemon off;
pid ${folder}/pid;
error_log ${folder}/error.log;
worker_processes 1;
# A reload cuts what is not over after this.
worker_shutdown_timeout 100ms;
events { worker_connections 512; }
http {
  access_log off;
  ${['client_body', 'proxy', 'fastcgi', 'uwsgi', 'scgi'].map((name) => `${name}_temp_path ${folder}/${name};`).join(' ')}
  server {
    listen 127.0.0.1:${buffers};
    location / {
      ${common}
      proxy_buffering on;
      proxy_ignore_headers X-Accel-Buffering;
      proxy_buffer_size 256k;
      proxy_buffers 16 256k;
      proxy_busy_buffers_size 512k;
    }
  }
  server {
    listen 127.0.0.1:${cuts};
    location / {
      ${common}
      proxy_buffering off;
      proxy_read_timeout 2s;
    }
  }
  server {
    listen 127.0.0.1:${below};
    client_header_buffer_size 1k;
    large_client_header_buffers 2 1k;
    gzip on;
    gzip_types *;
    gzip_min_length 1;
    gzip_proxied any;
    location /teamster/ {
      proxy_pass ${server.url}/;
      proxy_http_version 1.0;
      proxy_set_header Host $http_host;
      proxy_buffering on;
      proxy_buffer_size 1k;
    }
  }
}
`);
const nginx = spawn('nginx', ['-p', folder, '-c', 'nginx.conf', '-e', 'error.log'], {stdio: ['ignore', 'inherit', 'inherit']});
process.once('exit', () => nginx.kill('SIGQUIT'));
await until('nginx', () => fetch(`http://127.0.0.1:${cuts}/healthz`).then((response) => response.ok, () => false));

/// What a client has of a log: the numbers and the text.
const of = (entries) => ({seqs: entries.map((entry) => entry.seq), text: entries.filter((entry) => entry.type === 'text').map((entry) => entry.text).join('')});

const CLIENTS = {
  async typescript(url, id) {
    const entries = [];
    for await (const entry of new Teamster({url, token: server.token, silenceMs: 4000, timeoutMs: 4000}).run(id)) entries.push(entry);
    return of(entries);
  },
  async python(url, id) {
    const code = 'import json, sys; from teamster_client import Teamster; [print(json.dumps(e)) for e in Teamster(sys.argv[1], sys.argv[2], silence=4, timeout=4).run(sys.argv[3])]';
    const {stdout} = await run(process.env.CLIENT_PYTHON, ['-c', code, url, server.token, id], {maxBuffer: 1 << 26});
    return of(stdout.trim().split('\n').map((line) => JSON.parse(line)));
  },
  /// A script: it asks again behind the last whole line until it has `done`.
  async curl(url, id) {
    const script = `
      log=$(mktemp); trap 'rm -f "$log"' EXIT
      until tail -n 1 "$log" | grep -q '"type":"done"'; do
        after=$(grep -c . "$log")
        curl -sN -H "Authorization: Bearer $2" "$1/v1/runs/$3/events?after=$after" | awk '{ if (p != "") print p; p = $0 } END { if (p ~ /}$/) print p }' >> "$log"
      done
      cat "$log"`;
    const {stdout} = await run('bash', ['-c', script, 'curl', url, server.token, id], {maxBuffer: 1 << 26});
    return of(stdout.trim().split('\n').map((line) => JSON.parse(line)));
  },
  async remote(url, id) {
    const env = {...server.env, TEAMSTER_REMOTE: url, TEAMSTER_REMOTE_TOKEN: server.token};
    const {stdout} = await run(PROGRAM, ['attach', id, '--json'], {env, maxBuffer: 1 << 26});
    return of(stdout.trim().split('\n').map((line) => JSON.parse(line)));
  },
  async eventsource(url, id, page) {
    return of(await page.evaluate((id) => new Promise((resolve) => {
      const entries = [];
      const source = new EventSource(`v1/runs/${id}/events`);
      source.onmessage = (event) => entries.push(JSON.parse(event.data));
      source.addEventListener('end', () => {
        source.close();
        resolve(entries);
      });
      source.onerror = () => { window.cuts = (window.cuts ?? 0) + 1; };
    }), id));
  },
};

const chromium = await browser();
for (const [name, place, isCut] of [['a proxy that holds responses back', buffers, false], ['a proxy that cuts streams', cuts, true], ['a proxy below a path', `${below}/teamster`, false]]) {
  const url = `http://127.0.0.1:${place}`;
  const page = await open(chromium, {url, token: server.token});
  let reloads = 0;
  const reload = isCut ? setInterval(() => {
    nginx.kill('SIGHUP');
    reloads += 1;
  }, 3000) : undefined;
  const ids = [];
  for (const [number, pause] of RUNS) ids.push(await server.run(`count ${number} ${pause}`));
  await Promise.all(Object.entries(CLIENTS).map(([client, follow]) => check(`${client} loses nothing behind ${name}`, async () => {
    await Promise.all(ids.map(async (id, i) => {
      const {seqs, text} = await follow(url, id, page);
      assert.deepEqual(seqs, seqs.map((_, i) => i + 1));
      assert.equal(text, Array.from({length: RUNS[i][0]}, (_, i) => `piece ${i + 1}\n`).join(''));
      const {seq} = await server.api(`/runs/${id}`);
      assert.equal(seqs.length, seq);
    }));
  })));
  await check(`the page works behind ${name}`, async () => {
    const id = await server.run('ask');
    await page.waitForSelector('.request .allow');
    await page.click('.request .allow');
    assert.equal((await server.reaches(id, 'ended')).result.finalMessage, 'allowed');
    await page.evaluate((id) => { location.hash = `#/run/${id}`; }, ids[0]);
    await page.waitForSelector('.log:has-text("piece 80")');
    assert.deepEqual(isCut ? [] : page.faults, []);
    const cookies = await page.context().cookies();
    assert.deepEqual(cookies.map((cookie) => cookie.path), [new URL(`${url}/`).pathname]);
  });
  clearInterval(reload);
  if (isCut) {
    const seen = await page.evaluate(() => window.cuts ?? 0);
    assert.ok(reloads >= 2 && seen >= 2, `${reloads} reloads, and EventSource saw ${seen} cuts`);
  }
  await page.context().close();
}
await chromium.close();
nginx.kill('SIGQUIT');
await server.end();
