import { createHash, randomUUID } from "node:crypto";
import { link, mkdir, open, readFile, rename, rm } from "node:fs/promises";
import { join } from "node:path";

import { entryOf } from "./key-store.ts";
import type { KeyEntry, KeyStore } from "./key-store.ts";

/**
 * Keys in a folder, one file for each operation: they outlive a restart, and any number of processes may share the folder.
 * For services and command lines; browsers have `webStorageKeys`.
 */
export function fileKeys(folder: string): KeyStore {
  // Names are hashes: an operation may hold any character, and a folder listing tells nothing of customers.
  const pathOf = (operation: string): string =>
    join(folder, `${createHash("sha256").update(operation).digest("hex")}.json`);
  return {
    claim: async (operation, fresh) => {
      await mkdir(folder, { recursive: true });
      const path = pathOf(operation);
      // A link fails where the name is there, so that of two processes one wins, and both read the winner's entry.
      await publish(folder, fresh, (written) => link(written, path)).catch(ignoreExisting);
      return entryOf(await readFile(path, "utf8")) ?? (await replaced(folder, path, fresh));
    },
    update: async (operation, entry) => void (await replaced(folder, pathOf(operation), entry)),
    forget: (operation) => rm(pathOf(operation), { force: true }),
  };
}

async function replaced(folder: string, path: string, entry: KeyEntry): Promise<KeyEntry> {
  await publish(folder, entry, (written) => rename(written, path));
  return entry;
}

/** Written beside, flushed, then given its name: a crash leaves the old entry or the new one, never half of one. */
async function publish(
  folder: string,
  entry: KeyEntry,
  name: (written: string) => Promise<void>,
): Promise<void> {
  const written = join(folder, `.${randomUUID()}.tmp`);
  const file = await open(written, "wx", 0o600);
  try {
    await file.writeFile(JSON.stringify(entry));
    await file.sync();
  } finally {
    await file.close();
  }
  try {
    await name(written);
    await syncFolder(folder);
  } finally {
    await rm(written, { force: true });
  }
}

/** Makes the name itself durable; systems that cannot open a folder keep it by other means. */
async function syncFolder(folder: string): Promise<void> {
  const handle = await open(folder, "r").catch(() => undefined);
  await handle?.sync().catch(() => {});
  await handle?.close();
}

function ignoreExisting(error: unknown): void {
  if (error instanceof Error && "code" in error && error.code === "EEXIST") return;
  throw error;
}
