import { wordsOfStatements } from "./sql-words.ts";

/**
 * Finds statements that would end, begin or prepare a transaction. Such a statement of a handler frees the lock and
 * commits effects without their record, so the guarded client refuses it. Savepoints are allowed: the claim's lock is
 * taken outside them. This catches mistakes; what gets past it is caught by the marker that the finish asserts.
 */

/** Texts repeat, and most are prepared statements: the answers of this many are remembered. */
const rememberedTexts = 1000;
const remembered = new Map<string, boolean>();

/** Whether a text holds transaction control, as its first or any later statement. */
export function controlsTransaction(text: string): boolean {
  const known = remembered.get(text);
  if (known !== undefined) return known;
  const found = search(text);
  if (remembered.size >= rememberedTexts) remembered.clear();
  remembered.set(text, found);
  return found;
}

function search(text: string): boolean {
  let atomic = false;
  for (const words of wordsOfStatements(text)) {
    // The body of an SQL-standard function is `begin atomic …; end`: its `end` is no transaction control.
    const closesBody: boolean = atomic && words[0] === "end";
    if (!closesBody && isControl(words)) return true;
    atomic = (atomic && !closesBody) || opensBody(words);
  }
  return false;
}

function isControl([first, second, third]: readonly string[]): boolean {
  switch (first) {
    case "begin":
    case "commit":
    case "end":
    case "abort":
      return true;
    case "start":
    case "prepare":
      return second === "transaction";
    case "rollback":
      return second !== "to" && !((second === "work" || second === "transaction") && third === "to");
    default:
      return false;
  }
}

function opensBody(words: readonly string[]): boolean {
  if (words[0] !== "create") return false;
  return words.some((each, at) => each === "begin" && words[at + 1] === "atomic");
}
