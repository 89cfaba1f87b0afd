// The history of runs, including attached ones and those whose log was removed.

import {get} from './api.js';

const STATUS = {success: 'completed', error: 'failed', aborted: 'aborted', interrupted: 'incomplete'};

/// Converts a row of the history to a run of the stream.
export function runOf(record) {
  return {
    runId: record.runId,
    title: record.title,
    provider: record.provider,
    model: record.model,
    directory: record.workingDirectory,
    acceptedAt: record.startedAt,
    changedAt: record.endedAt,
    state: record.status === 'running' ? 'running' : 'ended',
    status: STATUS[record.status] ?? record.status,
    seq: 0,
    sessionId: record.sessionId,
    usage: record.usage,
    costUsd: record.costUsd,
    costSource: record.costSource,
    durationMs: record.durationMs,
    error: record.error,
    workspace: record.workspace,
    requests: [],
  };
}

/// Reads older runs page by page: those with a log, and those of the history. Of a search, `queries` has the parameters for
/// each; without those for the history, no run of it can match.
export class OlderRuns {
  constructor(queries = {runs: {}, history: {}}) {
    this.queries = queries;
    this.found = new Map();
    this.cursors = {runs: '', history: queries.history && ''};
  }

  /// True while there may be more.
  get hasMore() {
    return Object.values(this.cursors).some((cursor) => cursor !== undefined);
  }

  /// Reads the next page of both.
  async read() {
    const page = async (name) => {
      if (this.cursors[name] === undefined) return [];
      const query = new URLSearchParams({limit: '50', ...this.queries[name]});
      if (this.cursors[name]) query.set('cursor', this.cursors[name]);
      const {runs, next} = await get(`/v1/${name}?${query}`);
      this.cursors[name] = next ?? undefined;
      return runs;
    };
    const [runs, records] = await Promise.all([page('runs'), page('history')]);
    for (const run of runs) if (run.kind !== 'tick') this.found.set(run.runId, run);
    for (const record of records) if (!this.found.has(record.runId) && record.status !== 'running') this.found.set(record.runId, runOf(record));
  }
}
