// A real `teamster serve` for tests, with its own home, whose Claude Code is agent.py. It can be killed and started
// again on the same port.

import {spawn, spawnSync} from 'node:child_process';
import {readdirSync, rmSync} from 'node:fs';
import {mkdtemp, mkdir, readFile, rm} from 'node:fs/promises';
import {tmpdir} from 'node:os';
import {dirname, join} from 'node:path';
import {fileURLToPath} from 'node:url';

const HERE = dirname(fileURLToPath(import.meta.url));
export const PROGRAM = process.env.TEAMSTER ?? join(HERE, '../../target/debug/teamster');
/// How long anything may take, in milliseconds.
export const LIMIT = 30_000;

/// Waits until this returns something true, and returns that.
export async function until(what, check, limit = LIMIT) {
  const end = Date.now() + limit;
  for (;;) {
    const found = await check();
    if (found) return found;
    if (Date.now() > end) throw new Error(`after ${limit / 1000} s there is no ${what}`);
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
}

/// Calls a check by its name; a failure names it. With an argument, only those whose names have it.
export async function check(name, run) {
  if (process.argv[2] && !name.includes(process.argv[2])) return;
  const begin = Date.now();
  try {
    await run();
  } catch (error) {
    console.error(`FAILED ${name}`);
    throw error;
  }
  console.log(`ok ${name} (${((Date.now() - begin) / 1000).toFixed(1)} s)`);
}

export class Server {
  /// Starts one; `prepare` may put files into its folder before, and return further variables.
  static async start({args = [], env = {}, prepare} = {}) {
    const server = new Server();
    server.folder = await mkdtemp(join(tmpdir(), 'teamster-clients-'));
    server.work = join(server.folder, 'code/lighthouse');
    await mkdir(server.work, {recursive: true});
    const prepared = await prepare?.(server.folder);
    server.args = args;
    server.env = {
      PATH: process.env.PATH,
      HOME: server.folder,
      XDG_STATE_HOME: join(server.folder, 'state'),
      TEAMSTER_CLAUDE_BIN: join(HERE, 'agent.py'),
      TZ: 'UTC',
      ...env,
      ...prepared,
    };
    server.port = 0;
    // A check that fails leaves nothing behind either.
    process.once('exit', () => server.clear());
    await server.restart();
    server.token = (await readFile(join(server.folder, 'state/teamster/server/token'), 'utf8')).trim();
    return server;
  }

  /// Starts it, on the port that it had.
  async restart() {
    this.child = spawn(PROGRAM, ['serve', '--listen', `127.0.0.1:${this.port}`, ...this.args], {cwd: this.work, env: this.env, stdio: ['ignore', 'pipe', 'inherit']});
    const child = this.child;
    this.url = await new Promise((resolve, reject) => {
      let printed = '';
      child.stdout.on('data', (piece) => {
        printed += piece;
        if (printed.includes('\n')) resolve(printed.trim());
      });
      child.once('error', reject);
      child.once('exit', (code) => reject(new Error(`the server ended with ${code}: ${printed}`)));
    });
    this.port = Number(new URL(this.url).port);
  }

  /// Ends it at once, without a chance to finish anything.
  async kill(signal = 'SIGKILL') {
    const gone = new Promise((resolve) => this.child.once('exit', resolve));
    this.child.kill(signal);
    await gone;
  }

  /// A request to the API as JSON.
  async api(path, body, method = body === undefined ? 'GET' : 'POST') {
    const headers = {Authorization: `Bearer ${this.token}`, 'Content-Type': 'application/json'};
    const response = await fetch(`${this.url}/v1${path}`, {method, headers, body: body === undefined ? undefined : JSON.stringify(body)});
    const text = await response.text();
    if (!response.ok) throw new Error(`${method} ${path}: ${response.status} ${text}`);
    return text === '' ? undefined : JSON.parse(text);
  }

  /// Starts a run; its id.
  async run(prompt, more = {}) {
    const {runId} = await this.api('/runs', {provider: 'claude', prompt, workingDirectory: this.work, ...more});
    return runId;
  }

  /// The run once it is in this state.
  reaches(id, state) {
    return until(`run that is ${state}`, async () => {
      const run = await this.api(`/runs/${id}`);
      return run.state === state && run;
    });
  }

  /// Ends what runs, and removes everything.
  async end() {
    const {runs} = await this.api('/runs?limit=1000');
    for (const run of runs.filter((run) => run.state !== 'ended')) await this.api(`/runs/${run.runId}/cancel`, {kill: true}).catch(() => {});
    await until('end of all runs', async () => (await this.api('/runs?limit=1000')).runs.every((run) => run.state === 'ended'));
    await this.kill('SIGTERM');
    await rm(this.folder, {recursive: true, force: true, maxRetries: 5});
  }

  /// The same at once, when something has failed.
  clear() {
    this.child.kill('SIGKILL');
    try {
      // One by one: one that has ended is an error.
      for (const run of readdirSync(join(this.env.XDG_STATE_HOME, 'teamster/runs'))) {
        spawnSync(PROGRAM, ['cancel', '--kill', run], {env: this.env, timeout: LIMIT});
      }
    } catch {
      // There is none.
    }
    rmSync(this.folder, {recursive: true, force: true, maxRetries: 5});
  }
}
