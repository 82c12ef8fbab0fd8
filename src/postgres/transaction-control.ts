/**
 * Finds statements that would end, begin or prepare a transaction. Such a statement of a handler frees the lock and
 * commits effects without their record, so the guarded client refuses it. Savepoints are allowed: the claim's lock is
 * taken outside them.
 */

const control = /^(?:begin|start\s+transaction|commit|end|abort|prepare\s+transaction|rollback(?!\s+(?:(?:work|transaction)\s+)?to\b))\b/i;
/** What cannot hold a statement's start: comments, strings (E'' alone has escapes), quoted names, dollar-quoted bodies. */
const opaque =
  /--[^\n]*|\/\*[\s\S]*?\*\/|\be'(?:[^'\\]|''|\\[\s\S])*'|'(?:[^']|'')*'|"(?:[^"]|"")*"|\$([a-z_]\w*)?\$[\s\S]*?\$\1\$/gi;
/** Bodies of SQL-standard functions hold `begin atomic … end`, which is no transaction control. */
const body = /\bbegin\s+atomic\b[\s\S]*?\bend\b/gi;
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
  const bare = text.replaceAll(opaque, " ").replaceAll(body, " ");
  return bare.split(";").some((statement) => control.test(statement.trimStart()));
}
