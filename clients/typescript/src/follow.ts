import { ConnectionLost, TeamsterError, UnexpectedResponse } from "./errors.js";
import { parse, stream, text, JSON_TYPE, type CallOptions, type Connection } from "./http.js";
import { Limit, Silence } from "./limit.js";
import { Patience } from "./patience.js";
import type { Change, Entry, LogPage } from "./types.js";

/** Time that one page of a log waits for entries, in seconds. */
const PAGE_SECONDS = 20;

/** The reason of what an iterator that was left aborts. */
const LEFT = new TeamsterError("the iterator was left");
/** The signals of iterators that were forgotten without being left: they close their connections. */
const forgotten = new FinalizationRegistry<Limit>((life) => life.close());

/** The iterator that `run` makes. Its signal ends with it: a generator by itself waits for a pending `next()`. */
function iterator<T>(signal: AbortSignal | undefined, run: (signal: AbortSignal) => AsyncGenerator<T, void, void>): AsyncGenerator<T, void, void> {
  const life = new Limit(signal);
  const items = (async function* () {
    try {
      yield* run(life.signal);
    } catch (error) {
      if (error !== LEFT) throw error;
    } finally {
      life.close();
    }
  })();
  forgotten.register(items, life);
  const end = items.return.bind(items);
  items.return = (value) => {
    life.close(LEFT);
    return end(value);
  };
  return items;
}

/**
 * The entries of the log at `path` behind `after`, each once and in order, up to its end or the one that is `last`.
 *
 * After a break, the stream continues behind the last entry. If a proxy buffers the stream, it is replaced by pages
 * of the same log.
 */
export function follow(connection: Connection, path: string, after: number, { signal, ...options }: CallOptions, last: (entry: Entry) => boolean = () => false): AsyncGenerator<Entry, void, void> {
  return iterator(signal, (signal) => entries(connection, path, after, { ...options, signal }, last));
}

async function* entries(connection: Connection, path: string, after: number, options: CallOptions, last: (entry: Entry) => boolean): AsyncGenerator<Entry, void, void> {
  const patience = new Patience(connection, options.signal);
  let seq = after;
  let streams = true;
  for (;;) {
    try {
      if (streams) {
        for await (const event of stream(connection, `${path}?after=${seq}`, options)) {
          patience.reached();
          if (event === "alive") continue;
          if (event.event === "end") return;
          if (event.event !== "message") continue;
          const entry = parse<Entry>(connection, event.data, "seq");
          seq = numberOf(connection, entry);
          yield entry;
          if (last(entry)) return;
        }
        throw new ConnectionLost("the stream was cut");
      }
      const timeoutMs = PAGE_SECONDS * 1000 + (options.timeoutMs ?? connection.timeoutMs);
      const body = await text(connection, `${path}?after=${seq}&wait=${PAGE_SECONDS}`, JSON_TYPE, { ...options, timeoutMs });
      patience.reached();
      if (body === undefined) return;
      const page = parse<LogPage>(connection, body, "entries");
      if (!Array.isArray(page.entries)) throw new UnexpectedResponse(`${connection.url} is not teamster serve: its page has no entries`);
      for (const entry of page.entries) {
        seq = numberOf(connection, entry);
        yield entry;
        if (last(entry)) return;
      }
      if (page.ended) return;
    } catch (error) {
      // A proxy may hold back the entries of a stream, or even its head.
      if (streams && error instanceof ConnectionLost && error.cause instanceof Silence) streams = false;
      else await patience.wait(error);
    }
  }
}

/** The number of an entry. A number that JavaScript rounds would lose or repeat entries. */
function numberOf(connection: Connection, entry: Entry | null): number {
  if (entry && Number.isSafeInteger(entry.seq)) return entry.seq;
  throw new UnexpectedResponse(`${connection.url} is not teamster serve: the number of an entry is ${JSON.stringify(entry?.seq)}`);
}

/** State of all runs and agents, then each change. A new connection after a break begins with a snapshot. */
export function watch(connection: Connection, { signal, ...options }: CallOptions): AsyncGenerator<Change, void, void> {
  return iterator(signal, (signal) => changes(connection, { ...options, signal }));
}

async function* changes(connection: Connection, options: CallOptions): AsyncGenerator<Change, void, void> {
  const patience = new Patience(connection, options.signal);
  for (;;) {
    try {
      for await (const event of stream(connection, "/events", options)) {
        patience.reached();
        if (event !== "alive" && event.event === "message") yield parse<Change>(connection, event.data, "type");
      }
      throw new ConnectionLost("the stream was cut");
    } catch (error) {
      await patience.wait(error);
    }
  }
}
