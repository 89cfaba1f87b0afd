// Plays the habits of editors against one server of the Agent Client Protocol, and writes what it does to a file:
//   compare.mjs RESULT COMMAND...
// Each check is by itself: one that fails is a cell of the table, and the others go on.
import { spawn } from "node:child_process";
import { appendFileSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { createInterface } from "node:readline";

const [resultFile, ...command] = process.argv.slice(2);
const cwd = process.cwd();
const MARK = `ACP_COMPARE_${process.pid}`;
const LIMIT = 60_000;
/** All messages go to this file, if it is set. */
const log = process.env.ACP_COMPARE_LOG;
const results = {};
const sleep = (ms) => new Promise((resolve) => setTimeout(resolve, ms));

/** What the editors say of themselves, as of November 2026. */
const EDITORS = {
  zed: {
    clientInfo: { name: "zed", version: "1" },
    clientCapabilities: {
      fs: { readTextFile: true, writeTextFile: true },
      terminal: false,
      session: { notices: {}, compaction: {}, configOptions: { boolean: {} } },
      elicitation: { form: {} },
      _meta: { terminal_output: true },
    },
  },
  jetbrains: {
    clientInfo: { name: "jetbrains", version: "1" },
    clientCapabilities: { fs: { readTextFile: true, writeTextFile: true }, terminal: false },
  },
  codecompanion: {
    clientInfo: { name: "CodeCompanion.nvim", version: "1" },
    clientCapabilities: { fs: { readTextFile: true, writeTextFile: true }, terminal: false },
  },
};

/** A connection to a server that was started for it. */
class Client {
  constructor() {
    this.child = spawn(command[0], command.slice(1), { cwd, stdio: ["pipe", "pipe", process.env.ACP_COMPARE_VERBOSE ? "inherit" : "ignore"], env: { ...process.env, [MARK]: "1" } });
    this.ended = new Promise((resolve) => this.child.on("exit", resolve));
    this.last = 0;
    this.waiting = new Map();
    this.updates = [];
    this.asked = [];
    createInterface({ input: this.child.stdout }).on("line", (line) => this.take(line));
  }

  take(line) {
    if (log) appendFileSync(log, `${line}\n`);
    let message;
    try {
      message = JSON.parse(line);
    } catch {
      this.odd = (this.odd ?? 0) + 1;
      return;
    }
    if (message.method === "session/update") {
      this.updates.push({ at: Date.now(), ...message.params.update });
    } else if (message.method && message.id !== undefined) {
      this.answer(message);
    } else if (message.id !== undefined) {
      this.waiting.get(message.id)?.(message);
      this.waiting.delete(message.id);
    }
  }

  answer({ id, method, params }) {
    let result;
    if (method === "session/request_permission") {
      this.asked.push(params);
      const option = params.options.find((it) => it.kind === "allow_once") ?? params.options[0];
      result = { outcome: { outcome: "selected", optionId: option.optionId } };
    } else if (method === "fs/read_text_file") {
      result = { content: readFileSync(params.path, "utf8") };
    } else if (method === "fs/write_text_file") {
      writeFileSync(params.path, params.content);
      result = {};
    } else {
      this.write({ id, error: { code: -32601, message: "no such method" } });
      return;
    }
    this.write({ id, result });
  }

  write(message) {
    if (log) appendFileSync(log, `> ${JSON.stringify(message)}\n`);
    this.child.stdin.write(`${JSON.stringify({ jsonrpc: "2.0", ...message })}\n`);
  }

  notify(method, params) {
    this.write({ method, params });
  }

  /** Sends a request; its id is in `last`. */
  send(method, params) {
    this.last += 1;
    const id = this.last;
    const answer = new Promise((resolve, reject) => {
      this.waiting.set(id, resolve);
      setTimeout(() => reject(new Error(`no answer to ${method}`)), LIMIT).unref();
    });
    this.write({ id, method, params });
    return answer;
  }

  async call(method, params) {
    const answer = await this.send(method, params);
    if (answer.error) throw new Error(`${method}: ${answer.error.message} ${JSON.stringify(answer.error.data ?? "")}`);
    return answer.result;
  }

  /** Sends a prompt, and returns the answer with the updates of the turn. */
  async prompt(sessionId, content) {
    const from = this.updates.length;
    const prompt = typeof content === "string" ? [{ type: "text", text: content }] : content;
    const answer = await this.call("session/prompt", { sessionId, prompt });
    await sleep(300);
    return { ...answer, updates: this.updates.slice(from) };
  }

  of(kind, updates = this.updates) {
    return updates.filter((update) => update.sessionUpdate === kind);
  }

  async initialize(editor) {
    return this.call("initialize", { protocolVersion: 1, ...EDITORS[editor] });
  }

  async end() {
    this.child.stdin.end();
    await Promise.race([this.ended, sleep(10_000)]);
  }
}

const text = (updates) =>
  updates.filter((it) => it.sessionUpdate === "agent_message_chunk").map((it) => it.content.text ?? "").join("");
const shown = (update) =>
  (update.content ?? []).map((it) => it.content?.text ?? "").join("") + (update._meta?.terminal_output?.data ?? "") + (update._meta?.terminal_output_delta?.data ?? "");
const yes = (is) => (is ? "yes" : "no");

/** Processes that the servers of this script have started and that are still there. */
function left() {
  const pids = readdirSync("/proc").filter((name) => /^\d+$/.test(name) && Number(name) !== process.pid);
  return pids.filter((pid) => {
    try {
      const isDead = readFileSync(`/proc/${pid}/stat`, "utf8").split(") ")[1].startsWith("Z");
      return !isDead && readFileSync(`/proc/${pid}/environ`, "utf8").includes(`${MARK}=`);
    } catch {
      return false;
    }
  });
}

async function check(name, play) {
  try {
    results[name] = await play();
  } catch (error) {
    results[name] = `error: ${error.message.split("\n")[0].slice(0, 80)}`;
    console.error(`${name}: ${error.message}`);
  }
}

const described = (option) => {
  if (!option) return "none";
  const values = option.options.flatMap((it) => it.options ?? [it]);
  const about = values.filter((it) => it.description).length;
  return `${values.length}, ${about} described`;
};

// Zed: options only, the whole list back from a change, history by list and load.
const zed = new Client();
let begun;
let sessionId;
let can;
const option = (category) => (begun?.configOptions ?? []).find((it) => it.category === category);
/** The same as the editor has it now: changes come as updates. */
const latest = (category) => {
  const options = zed.of("config_option_update").at(-1)?.configOptions ?? begun?.configOptions ?? [];
  return options.find((it) => it.category === category);
};
await check("answers `initialize`, ms", async () => {
  const at = Date.now();
  can = (await zed.initialize("zed")).agentCapabilities;
  return Date.now() - at;
});
const began = Date.now();
await check("answers `session/new`, ms", async () => {
  const at = Date.now();
  begun = await zed.call("session/new", { cwd, mcpServers: [] });
  sessionId = begun.sessionId;
  return Date.now() - at;
});
await check("commands before the first prompt, ms", async () => {
  // Some come by themselves after the answer. The two of teamster itself are there at once.
  const first = () => zed.of("available_commands_update").find((it) => it.availableCommands.length > 2);
  for (let i = 0; i < 300 && !first(); i++) await sleep(100);
  await sleep(500);
  const commands = zed.of("available_commands_update").at(-1)?.availableCommands ?? [];
  return first() ? `${commands.length}, ${first().at - began}` : commands.length;
});
await check("models before the first prompt", () => described(latest("model")));
await check("modes", () => described(option("mode")));
await check("an answer in pieces", async () => {
  const turn = await zed.prompt(sessionId, "hello");
  return yes(zed.of("agent_message_chunk", turn.updates).length > 1 && text(turn.updates).includes("One two three."));
});
await check("context size in the first turn", () => {
  const usage = zed.of("usage_update").at(-1);
  return usage ? `${usage.used} of ${usage.size}` : "no";
});
await check("commands after the first prompt", () => zed.of("available_commands_update").at(-1)?.availableCommands.length ?? 0);
await check("models after the first prompt", () => described(latest("model")));
await check("reasoning efforts", () => described(latest("thought_level")));
await check("the mode in which it asks can be set", async () => {
  // The adapters begin in a mode in which the CLI decides by itself.
  const mode = option("mode");
  const values = mode.options.flatMap((it) => it.options ?? [it]);
  const asking = values.find((it) => ["default", "read-only"].includes(it.value)) ?? values[0];
  await zed.call("session/set_config_option", { sessionId, configId: mode.id, value: asking.value });
  return asking.name;
});
await check("asks before an edit, with the diff", async () => {
  const turn = await zed.prompt(sessionId, "edit");
  const diff = (content) => (content ?? []).some((it) => it.type === "diff");
  const asked = zed.asked.length > 0;
  const calls = turn.updates.filter((it) => it.sessionUpdate.startsWith("tool_call"));
  return `${asked ? (diff(zed.asked[0].toolCall.content) ? "yes" : "without it") : "not asked"}; diff in the call: ${yes(calls.some((it) => diff(it.content)))}`;
});
await check("output while a command runs", async () => {
  const from = zed.updates.length;
  await zed.prompt(sessionId, "command");
  const updates = zed.updates.slice(from).filter((it) => it.sessionUpdate === "tool_call_update");
  return yes(updates.some((it) => shown(it).includes("tick") && !shown(it).includes("tick 4") && it.status !== "completed"));
});
await check("a plan", async () => {
  const turn = await zed.prompt(sessionId, "plan");
  return yes(zed.of("plan", turn.updates).length > 0);
});
await check("`session/cancel`: stop reason, ms, command left", async () => {
  const answer = zed.send("session/prompt", { sessionId, prompt: [{ type: "text", text: "sleep" }] });
  await sleep(4000);
  const at = Date.now();
  zed.notify("session/cancel", { sessionId });
  const { result, error } = await answer;
  const stopReason = result?.stopReason ?? `error: ${error.message}`;
  const ms = Date.now() - at;
  await sleep(1500);
  const sleeping = left().filter((pid) => readFileSync(`/proc/${pid}/cmdline`, "utf8").startsWith("tail"));
  return `${stopReason}, ${ms}, ${sleeping.length}`;
});
await check("a change of the model answers with all options", async () => {
  const model = option("model");
  if (!model) return "no option";
  const values = model.options.flatMap((it) => it.options ?? [it]);
  const value = (values.find((it) => it.value !== model.currentValue) ?? values[0]).value;
  const answer = await zed.call("session/set_config_option", { sessionId, configId: model.id, value });
  const back = answer.configOptions?.find((it) => it.id === model.id);
  return yes(answer.configOptions?.length === begun.configOptions.length && back.currentValue === value);
});
await check("an option that is not there", async () => {
  const answer = await zed.send("session/set_config_option", { sessionId, configId: "not-there", value: "x" });
  return answer.error ? "fails" : "left out";
});
await check("audio in a prompt", async () => {
  const content = [{ type: "audio", mimeType: "audio/wav", data: "" }, { type: "text", text: "and this" }];
  const answer = await zed.send("session/prompt", { sessionId, prompt: content });
  return answer.error ? "fails" : "left out";
});
await check("content of an unknown type", async () => {
  const content = [{ type: "hologram", depth: 3 }, { type: "text", text: "and this" }];
  const answer = await zed.send("session/prompt", { sessionId, prompt: content });
  return answer.error ? "fails" : "left out";
});
await check("an MCP server of an unknown type", async () => {
  const servers = [{ type: "quic", name: "far", url: "https://example.com" }];
  const answer = await zed.send("session/new", { cwd, mcpServers: servers });
  return answer.error ? "fails" : "left out";
});
await check("images", () => yes(can.promptCapabilities?.image));
await check("a command that reports", async () => {
  const known = zed.of("available_commands_update").at(-1)?.availableCommands.map((it) => it.name) ?? [];
  // Those that only report something.
  const reports = ["context", "status", "about", "stats", "help", "usage", "session"];
  const name = reports.find((it) => known.includes(it));
  if (!name && known.length > 0) return `none that only reports: /${known.slice(0, 3).join(", /")}`;
  const other = await zed.call("session/new", { cwd, mcpServers: [] });
  const turn = await zed.prompt(other.sessionId, `/${name ?? "status"}`);
  const answer = text(turn.updates);
  return `/${name ?? "status"} ${answer.includes("One two three.") ? "goes to the model" : answer.trim() ? "runs" : "has no answer"}`;
});
await check("lists its sessions, with titles", async () => {
  const { sessions } = await zed.call("session/list", { cwd });
  const own = sessions.find((it) => it.sessionId === sessionId);
  return own ? (own.title ? "yes" : "without titles") : "no";
});
await check("methods: resume, close, delete, log out", () => {
  const session = can.sessionCapabilities ?? {};
  return [session.resume, session.close, session.delete, can.auth?.logout].map((it) => yes(it)).join(", ");
});
await check("processes left after the editor's end", async () => {
  await zed.end();
  await sleep(2000);
  const pids = left();
  for (const pid of pids) {
    try {
      process.kill(Number(pid), "SIGKILL");
    } catch {
      // It has ended meanwhile.
    }
  }
  return pids.length;
});

// JetBrains: settings from the options, single requests are cancelled.
const jetbrains = new Client();
await check("`session/load` replays the thread", async () => {
  await jetbrains.initialize("jetbrains");
  await jetbrains.call("session/load", { sessionId, cwd, mcpServers: [] });
  await sleep(500);
  const said = text(jetbrains.updates);
  const calls = jetbrains.of("tool_call").length;
  const prompts = jetbrains.of("user_message_chunk").length;
  return said.includes("It is written.") ? `yes: ${prompts} prompts, ${calls} calls` : "no";
});
await check("`$/cancel_request` of a prompt", async () => {
  const other = await jetbrains.call("session/new", { cwd, mcpServers: [] });
  const blocks = [{ type: "text", text: "hello" }];
  await jetbrains.call("session/prompt", { sessionId: other.sessionId, prompt: blocks });
  for (const word of ["edit", "command", "plan"]) {
    await jetbrains.call("session/prompt", { sessionId: other.sessionId, prompt: [{ type: "text", text: word }] });
  }
  const answer = jetbrains.send("session/prompt", { sessionId: other.sessionId, prompt: [{ type: "text", text: "sleep" }] });
  const id = jetbrains.last;
  await sleep(4000);
  jetbrains.notify("$/cancel_request", { requestId: id });
  const done = await Promise.race([answer, sleep(10_000)]);
  if (!done) {
    jetbrains.notify("session/cancel", { sessionId: other.sessionId });
    await answer;
    return "no effect";
  }
  return done.error ? `error ${done.error.code}` : done.result.stopReason;
});
await jetbrains.end();

// CodeCompanion: modes the old way, neither notices nor elicitation.
const neovim = new Client();
await check("modes the old way (`session/set_mode`)", async () => {
  await neovim.initialize("codecompanion");
  const other = await neovim.call("session/new", { cwd, mcpServers: [] });
  const modes = other.modes?.availableModes ?? [];
  if (modes.length < 2) return "no";
  const mode = modes.find((it) => it.id !== other.modes.currentModeId).id;
  await neovim.call("session/set_mode", { sessionId: other.sessionId, modeId: mode });
  return `yes: ${modes.length}`;
});
await neovim.end();
for (const pid of left()) {
  try {
    process.kill(Number(pid), "SIGKILL");
  } catch {
    // It has ended meanwhile.
  }
}
writeFileSync(resultFile, JSON.stringify(results));
process.exit(0);
