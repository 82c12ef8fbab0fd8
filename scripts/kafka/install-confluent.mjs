// Builds Confluent's client for its contract tests, in a folder of its own: it takes one to three minutes and a C++
// compiler, and its plain install would download a binary. Without it those tests are left out.
import { spawnSync } from "node:child_process";
import { fileURLToPath } from "node:url";

const folder = fileURLToPath(new URL("../../test/kafka-confluent/", import.meta.url));

const { status } = spawnSync("npm", ["ci"], {
  cwd: folder,
  env: { ...process.env, CKJS_LINKING: "dynamic" },
  stdio: "inherit",
});
process.exitCode = status ?? 1;
