// Runs every test, says what was left out, and ends with one plain line of counts.
// Arguments are Vitest's: `npm test -- --project unit`, `npm test -- -t "a name"`.
import { spawn } from "node:child_process";
import { mkdirSync, readFileSync, rmSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";

import { leftOut } from "./left-out.mjs";

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
  for (const signal of /** @type {const} */ (["SIGINT", "SIGTERM"]))
    process.on(signal, () => child.kill(signal));
  return new Promise((resolve) => child.once("exit", (code) => resolve(code === 0)));
}

/** @typedef {{ status: string, assertionResults: { status: string }[] }} FileResult */

/** @param {boolean} content */
function count(content) {
  const report = /** @type {{ testResults: FileResult[] }} */ (JSON.parse(readFileSync(results, "utf8")));
  const { testResults } = report;
  const tests = testResults.flatMap((file) => file.assertionResults.map(({ status }) => status));
  const passed = tests.filter((status) => status === "passed").length;
  const failedTests = tests.filter((status) => status === "failed").length;
  // A file that can't be loaded, or whose hooks fail, has no failed test to show for it.
  const failedFiles = testResults.filter(
    ({ status, assertionResults }) =>
      status === "failed" && !assertionResults.some((test) => test.status === "failed"),
  ).length;
  // And an error outside any test belongs to no file.
  const failed = failedTests + failedFiles || (content ? 0 : 1);
  return { passed, failed, skipped: tests.length - passed - failedTests };
}

function countIfAny(/** @type {boolean} */ content) {
  try {
    return count(content);
  } catch {
    return { passed: 0, failed: 1, skipped: 0 };
  }
}

mkdirSync(join(root, ".cache"), { recursive: true });
const content = await runVitest();
const { passed, failed, skipped } = countIfAny(content);
rmSync(results, { force: true });
for (const line of leftOut()) console.log(line);
console.log(`${passed} passed, ${failed} failed${skipped > 0 ? `, ${skipped} skipped` : ""}`);
process.exitCode = failed > 0 || !content ? 1 : 0;
