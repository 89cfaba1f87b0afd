// Prints the results of `compare.mjs`: a row for each habit, a column for each server.
import { readFileSync } from "node:fs";
import { join } from "node:path";

const [folder, ...servers] = process.argv.slice(2);
const results = servers.map((server) => JSON.parse(readFileSync(join(folder, `${server}.json`), "utf8")));
const rows = [];
for (const result of results) for (const row of Object.keys(result)) if (!rows.includes(row)) rows.push(row);
const line = (cells) => console.log(`| ${cells.join(" | ")} |`);
line(["", ...servers.map((server) => server.replace(/^teamster-/, "teamster acp "))]);
line(["---", ...servers.map(() => "---")]);
for (const row of rows) line([row, ...results.map((result) => String(result[row] ?? "–").replaceAll("|", "\\|"))]);
