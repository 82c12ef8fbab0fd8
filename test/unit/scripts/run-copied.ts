import { spawnSync } from "node:child_process";
import { cpSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";

const root = fileURLToPath(new URL("../../..", import.meta.url));

export interface Copied {
  write(path: string, text: string): void;
  read(path: string): string;
  run(...args: string[]): { code: number | null; complaint: string };
  [Symbol.dispose](): void;
}

/** A script in a checkout of its own, since it works on the one it lies in. */
export function copyScript(name: string): Copied {
  const folder = mkdtempSync(join(tmpdir(), "idemkit-script-"));
  mkdirSync(join(folder, "scripts"));
  cpSync(join(root, "scripts", name), join(folder, "scripts", name));
  return {
    write(path, text) {
      mkdirSync(dirname(join(folder, path)), { recursive: true });
      writeFileSync(join(folder, path), text);
    },
    read: (path) => readFileSync(join(folder, path), "utf8"),
    run(...args) {
      const script = join(folder, "scripts", name);
      const { status, stderr } = spawnSync(process.execPath, [script, ...args], { encoding: "utf8" });
      return { code: status, complaint: stderr };
    },
    [Symbol.dispose]: () => rmSync(folder, { recursive: true, force: true }),
  };
}
