// A lock file that names its owner, and is taken over when that very process is dead.
import { randomUUID } from "node:crypto";
import { linkSync, mkdirSync, readFileSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { dirname } from "node:path";
import { setTimeout as delay } from "node:timers/promises";

import { identityOf, isAlive } from "./identity.mjs";

/** @typedef {import("./identity.mjs").ProcessIdentity} ProcessIdentity */
/** @typedef {{ release: () => void }} OwnerLock */

/** @param {string} path */
function readOwner(path) {
  const text = readIfAny(path);
  if (text === undefined) return undefined;
  try {
    return { text, owner: /** @type {ProcessIdentity} */ (JSON.parse(text)) };
  } catch (cause) {
    throw new Error(`${path} is not a lock file: remove it`, { cause });
  }
}

/** @param {string} path */
function readIfAny(path) {
  try {
    return readFileSync(path, "utf8");
  } catch {
    return undefined;
  }
}

/**
 * Puts the file there whole or not at all: a link fails where the name is taken.
 * @param {string} path
 * @param {string} text
 */
function create(path, text) {
  const draft = `${path}.${randomUUID()}`;
  writeFileSync(draft, text, { mode: 0o644 });
  try {
    linkSync(draft, path);
    return true;
  } catch (error) {
    if (/** @type {NodeJS.ErrnoException} */ (error).code === "EEXIST") return false;
    throw error;
  } finally {
    rmSync(draft, { force: true });
  }
}

/**
 * Moves a dead owner's file away; where someone else was quicker, what was moved is theirs and goes back.
 * @param {string} path
 * @param {string} stale
 */
function removeStale(path, stale) {
  const aside = `${path}.${randomUUID()}`;
  try {
    renameSync(path, aside);
  } catch {
    return;
  }
  const moved = readIfAny(aside);
  if (moved !== undefined && moved !== stale) create(path, moved);
  rmSync(aside, { force: true });
}

/**
 * @param {string} path
 * @returns {OwnerLock | ProcessIdentity} the lock, or the live process that holds it
 */
export function tryLock(path) {
  mkdirSync(dirname(path), { recursive: true });
  const self = identityOf(process.pid);
  const text = JSON.stringify({ ...self, token: randomUUID() });
  for (;;) {
    if (create(path, text)) return { release: () => release(path, text) };
    const held = readOwner(path);
    if (held === undefined) continue;
    if (isAlive(held.owner)) return { pid: held.owner.pid, startedAt: held.owner.startedAt };
    removeStale(path, held.text);
  }
}

/**
 * @param {string} path
 * @param {string} text
 */
function release(path, text) {
  if (readOwner(path)?.text === text) rmSync(path, { force: true });
}

/**
 * Waits for as long as a live process holds the lock.
 * @param {string} path
 * @param {{ pollMs?: number, onWait?: (owner: ProcessIdentity) => void }} [options]
 * @returns {Promise<OwnerLock>}
 */
export async function lock(path, { pollMs = 200, onWait } = {}) {
  for (let waited = false; ; waited = true) {
    const result = tryLock(path);
    if ("release" in result) return result;
    if (!waited) onWait?.(result);
    await delay(pollMs);
  }
}
