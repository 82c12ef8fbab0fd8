// Runs every test, says what was left out, and ends with one plain line of counts.
// Arguments are Vitest's: `npm test -- --project unit`, `npm test -- -t "a name"`.
import { spawn } from "node:child_process";
import { mkdirSync, readFileSync, rmSync } from "node:fs";
import { join, relative } from "node:path";
import { fileURLToPath } from "node:url";
import { stripVTControlCharacters } from "node:util";

import { leftOut } from "./left-out.mjs";
import { guardProcess } from "./process/guard.mjs";

const root = fileURLToPath(new URL("..", import.meta.url));
const results = join(root, `.cache/test-results-${process.pid}.json`);

/**
 * Ctrl-C reaches the whole group: we wait for Vitest to put its servers away.
 * @returns {Promise<boolean>} whether Vitest was content
 */
function runVitest() {
  const vitest = join(root, "node_modules/vitest/vitest.mjs");
  const reporters = ["--reporter=default", "--reporter=json", `--outputFile.json=${results}`];
  const child = spawn(process.execPath, [vitest, "run", ...reporters, ...process.argv.slice(2)], {
    cwd: root,
    stdio: "inherit",
  });
  for (const signal of /** @type {const} */ (["SIGINT", "SIGTERM"])) {
    process.on(signal, () => child.kill(signal));
  }
  const callOff = guardProcess(child.pid ?? 0, { signal: "KILL" });
  return new Promise((resolve) => {
    child.once("exit", (code) => {
      callOff();
      resolve(code === 0);
    });
  });
}

/** @typedef {{ status: string, fullName: string, failureMessages?: string[] }} TestResult */
/** @typedef {{ name: string, status: string, message?: string, assertionResults: TestResult[] }} FileResult */

/** @returns {FileResult[] | undefined} `undefined` where Vitest has left none */
function readResults() {
  try {
    const report = /** @type {{ testResults: FileResult[] }} */ (JSON.parse(readFileSync(results, "utf8")));
    return report.testResults;
  } catch {
    return undefined;
  }
}

/**
 * One line for each failure, to be read at the end of a long log.
 * @param {FileResult[]} files
 */
function failuresOf(files) {
  return files.flatMap(({ name, status, message = "", assertionResults }) => {
    const file = relative(root, name);
    const failed = assertionResults.filter((test) => test.status === "failed");
    // A file that can't be loaded, or whose hooks fail, has no failed test to show for it.
    if (failed.length === 0) return status === "failed" ? [`FAIL ${file}: ${firstLine(message)}`] : [];
    return failed.map(
      ({ fullName, failureMessages = [] }) =>
        `FAIL ${file} > ${fullName}: ${firstLine(failureMessages[0] ?? "")}`,
    );
  });
}

const firstLine = (/** @type {string} */ text) => stripVTControlCharacters(text).trim().split("\n", 1)[0];

mkdirSync(join(root, ".cache"), { recursive: true });
const content = await runVitest();
const found = readResults();
rmSync(results, { force: true });
const files = found ?? [];
const tests = files.flatMap(({ assertionResults }) => assertionResults);
const failures = failuresOf(files);
// An error outside any test belongs to no file.
if (failures.length === 0 && (!content || found === undefined)) {
  failures.push("FAIL vitest: an error outside the tests, see above");
}
const passed = tests.filter(({ status }) => status === "passed").length;
const skipped = tests.filter(({ status }) => status !== "passed" && status !== "failed").length;
for (const line of [...leftOut(), ...failures]) console.log(line);
console.log(`${passed} passed, ${failures.length} failed${skipped > 0 ? `, ${skipped} skipped` : ""}`);
process.exitCode = failures.length > 0 ? 1 : 0;
