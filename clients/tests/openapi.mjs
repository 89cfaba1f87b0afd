// Schemathesis against a real `teamster serve`: .ci/openapi installs it and runs this. Further arguments are passed to
// `schemathesis run`, such as `--include-operation-id startRun`.

import {spawn, spawnSync} from 'node:child_process';
import {mkdir, symlink, writeFile} from 'node:fs/promises';
import {dirname, join} from 'node:path';
import {fileURLToPath} from 'node:url';

import {Server} from './server.mjs';

const HERE = dirname(fileURLToPath(import.meta.url));
const SCHEMATHESIS = process.env.SCHEMATHESIS ?? 'schemathesis';

/// Links the only programs that the server finds, so that no input starts the CLI of a real agent.
async function prepare(folder) {
  const programs = join(folder, 'programs');
  await mkdir(programs);
  // Not what is on PATH, which may be a script that needs others.
  const python = spawnSync('python3', ['-c', 'import sys; print(sys.executable)'], {encoding: 'utf8'});
  const git = spawnSync('sh', ['-c', 'command -v git'], {encoding: 'utf8'});
  await symlink(python.stdout.trim(), join(programs, 'python3'));
  await symlink(git.stdout.trim(), join(programs, 'git'));
  await writeFile(join(folder, 'agents.config.json'), JSON.stringify({agents: [{id: 'triage', runtime: 'claude'}]}));
  await mkdir(join(folder, 'agents/triage'), {recursive: true});
  await writeFile(join(folder, 'agents/triage/CLAUDE.md'), 'triage\n');
  // Claude Code refuses to bypass permissions as root elsewhere.
  return {PATH: programs, IS_SANDBOX: '1'};
}

const server = await Server.start({args: ['--agents', '../../agents.config.json', '--allow-bypass', '--allow-private-callbacks'], prepare});
spawnSync('git', ['init', '--quiet', server.work]);
spawnSync('git', ['-C', server.work, '-c', 'user.name=a', '-c', 'user.email=a@b', 'commit', '--quiet', '--allow-empty', '-m', 'a']);

// What the operations find.
const ended = await server.run('echo');
await server.reaches(ended, 'ended');
const waiting = await server.run('ask');
await server.reaches(waiting, 'waiting');
const {runId: session} = await server.api('/sessions', {provider: 'claude', workingDirectory: server.work});

// Names of what exists on this machine, which no schema can have. TOML writes lists as JSON does.
const names = {
  runs: [ended, waiting],
  sessions: [session],
  requests: [`${waiting}/1`, `${ended}/1`],
  agents: ['triage'],
  waits: [0, 0.1],
};
const dictionaries = Object.entries(names).map(([name, values]) => `${name} = { values = ${JSON.stringify(values)} }`);
const from = (dictionary, probability = 1) => `{ dictionary = "${dictionary}", probability = ${probability} }`;
await writeFile(join(server.folder, 'schemathesis.toml'), `
hooks = ${JSON.stringify(join(HERE, 'openapi_hooks.py'))}
max-stream-events = 3
# The log of a session has no end before the session.
request-timeout = 5.0
continue-on-failure = true
generation = { deterministic = true, database = "none", max-examples = 12, no-shrink = true }
auth.openapi.token.bearer = "\${TEAMSTER_TOKEN}"

[dictionaries]
${dictionaries.join('\n')}

[[operations]]
include-operation-id = ["watch", "getRunEvents", "getSessionEvents"]
headers = { Accept = "text/event-stream" }
parameters = { "query.wait" = ${from('waits')} }

[[operations]]
include-path-regex = "^/v1/runs/"
parameters = { "path.id" = ${from('runs', 0.7)} }

[[operations]]
include-path-regex = "^/v1/sessions/"
parameters = { "path.id" = ${from('sessions', 0.7)} }

[[operations]]
include-path = "/v1/requests/{id}"
parameters = { "path.id" = ${from('requests', 0.7)} }

[[operations]]
include-path = "/v1/requests/{run}/{number}"
parameters = { "path.run" = ${from('runs', 0.7)} }

[[operations]]
include-path-regex = "^/v1/agents/{id}/"
parameters = { "path.id" = ${from('agents', 0.7)} }

# No supervisor is running: 503 is what the document says of that.
[[operations]]
include-operation-id = ["commandAgent", "commandAgents"]
checks.not_a_server_error.expected-statuses = ["2xx", "3xx", "4xx", 503]
`);
// What a body that is to be accepted has.
const known = {
  provider: 'claude',
  effort: 'high',
  workingDirectory: server.work,
  worktree: true,
  // Without an agent that does not take the other parameters.
  fallback: [],
  // An agent that is asked takes no budget.
  askTimeoutMs: 0,
  // A port at which nothing listens.
  callback: 'http://127.0.0.1:9/',
};

const command = [`--config-file=${join(server.folder, 'schemathesis.toml')}`, 'run', `${server.url}/v1/openapi.json`, ...process.argv.slice(2)];
const child = spawn(SCHEMATHESIS, command, {cwd: server.folder, env: {...process.env, HOME: server.folder, TEAMSTER_TOKEN: server.token, OPENAPI_KNOWN: JSON.stringify(known)}, stdio: 'inherit'});
const status = await new Promise((resolve) => child.once('exit', resolve));
await server.end();
process.exitCode = status ?? 1;
