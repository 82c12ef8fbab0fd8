import { cpSync, existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";

import { afterEach, beforeEach, expect, test } from "vitest";

import { spawnProcess } from "../../support/index.ts";

const root = fileURLToPath(new URL("../../..", import.meta.url));

let clone = "";

/** A stand-in for the compiler that writes what it built, and that it was called. */
const compiler = `import { appendFileSync, mkdirSync, writeFileSync } from "node:fs";
const project = process.argv.at(-1);
mkdirSync(project + "/dist", { recursive: true });
writeFileSync(project + "/dist/index.js", "");
appendFileSync(new URL("../../compiled.log", import.meta.url), "compiled\\n");
`;

const lockOfClone = {
  name: "clone",
  lockfileVersion: 3,
  packages: {
    "": { name: "clone", devDependencies: { typescript: "file:compiler" } },
    compiler: { name: "typescript", version: "1.0.0", dev: true },
    "node_modules/typescript": { resolved: "compiler", link: true },
  },
};

function write(path: string, content: unknown): void {
  const file = join(clone, path);
  mkdirSync(join(file, ".."), { recursive: true });
  writeFileSync(file, typeof content === "string" ? content : JSON.stringify(content));
}

beforeEach(() => {
  clone = mkdtempSync(join(tmpdir(), "idemkit-clone-"));
  cpSync(join(root, "scripts"), join(clone, "scripts"), { recursive: true });
  write("package.json", { name: "clone", private: true, devDependencies: { typescript: "file:compiler" } });
  write("package-lock.json", lockOfClone);
  write("compiler/package.json", { name: "typescript", version: "1.0.0", type: "module" });
  write("compiler/bin/tsc", compiler);
  write("tsconfig.json", {});
  write("services/payments/tsconfig.json", {});
  write("src/index.ts", "export const one = 1;\n");
  write("services/payments/src/main.ts", "");
});
afterEach(() => rmSync(clone, { recursive: true, force: true }));

async function ensure(): Promise<{ code: number | null; text: string }> {
  const child = spawnProcess(join(clone, "scripts/ensure.mjs"), { cwd: clone });
  const { code } = await child.exited;
  return { code, text: child.lines.join("\n") };
}

function compilations(): number {
  const log = join(clone, "compiled.log");
  return existsSync(log) ? readFileSync(log, "utf8").split("\n").length - 1 : 0;
}

test("a fresh clone is installed and built, and the second time there is nothing to do", async () => {
  const first = await ensure();
  expect(first).toMatchObject({ code: 0, text: expect.stringContaining("Installing") });
  expect(compilations()).toBe(2);
  expect(await ensure()).toEqual({ code: 0, text: "" });
  expect(compilations()).toBe(2);
});

test("two at once install and build once", async () => {
  const both = await Promise.all([ensure(), ensure()]);
  expect(both.map(({ code }) => code)).toEqual([0, 0]);
  expect(both.filter(({ text }) => text.includes("Building"))).toHaveLength(1);
  expect(compilations()).toBe(2);
});

test("a changed source is built again, and what was built from a removed one goes", async () => {
  await ensure();
  write("src/index.ts", "export const two = 2;\n");
  write("dist/gone.js", "");
  write("dist/gone.d.ts.map", "");
  expect(await ensure()).toMatchObject({ code: 0, text: "Building …" });
  expect(["gone.js", "gone.d.ts.map"].filter((file) => existsSync(join(clone, "dist", file)))).toEqual([]);
  expect(existsSync(join(clone, "dist/index.js"))).toBe(true);
});

test("half an installation, left by a killed one whose lock still lies there, is done again", async () => {
  await ensure();
  rmSync(join(clone, "node_modules/.install-stamp"));
  rmSync(join(clone, "node_modules/.package-lock.json"));
  rmSync(join(clone, "node_modules/typescript"));
  write(".cache/ensure.lock", { pid: process.pid, startedAt: "another time" });
  expect(await ensure()).toMatchObject({ code: 0, text: expect.stringContaining("Installing") });
  expect(existsSync(join(clone, "node_modules/typescript"))).toBe(true);
});

test("an installation for another machine is done again", async () => {
  await ensure();
  write("node_modules/.install-stamp", "sunos-sparc-1 0");
  expect(await ensure()).toMatchObject({ code: 0, text: expect.stringContaining("Installing") });
});

test("a failed build fails, and says so", async () => {
  write("compiler/bin/tsc", "process.exit(2);");
  expect(await ensure()).toMatchObject({ code: 1, text: expect.stringContaining("the build failed") });
});
