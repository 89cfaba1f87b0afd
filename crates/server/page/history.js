// The history of runs, including attached ones and those whose log was removed.

import {get} from './api.js';

const STATUS = {success: 'completed', error: 'failed', aborted: 'aborted', interrupted: 'incomplete'};

/// Converts a row of the history to a run of the stream.
export function runOf(record) {
  return {
    runId: record.runId,
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

/// Reads older runs page by page: those with a log, and those of the history.
export class OlderRuns {
  constructor() {
    this.found = new Map();
    this.cursors = {runs: '', history: ''};
  }

  /// True while there may be more.
  get hasMore() {
    return Object.values(this.cursors).some((cursor) => cursor !== undefined);
  }

  /// Reads the next page of both.
  async read() {
    const page = async (name) => {
      if (this.cursors[name] === undefined) return [];
      const {runs, next} = await get(`/v1/${name}?limit=50${this.cursors[name] && `&cursor=${encodeURIComponent(this.cursors[name])}`}`);
      this.cursors[name] = next ?? undefined;
      return runs;
    };
    const [runs, records] = await Promise.all([page('runs'), page('history')]);
    for (const run of runs) if (run.kind !== 'tick') this.found.set(run.runId, run);
    for (const record of records) if (!this.found.has(record.runId) && record.status !== 'running') this.found.set(record.runId, runOf(record));
  }
}
