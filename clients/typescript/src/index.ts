/** A client of `teamster serve`: starts, follows, answers and stops runs of coding agents. */

export { Teamster, type Options, type StartOptions } from "./client.js";
export type { CallOptions } from "./http.js";
export type { DiffOptions } from "./results.js";
export { Run } from "./run.js";
export { Session, Turn } from "./session.js";
export { ConnectionLost, Problem, TeamsterError, UnexpectedResponse } from "./errors.js";
export type * from "./types.js";
