/**
 * Splits a text into its statements, each as its bare words, as PostgreSQL's scanner does it (`scan.l`): what stands in
 * comments (they nest), strings (E'' alone has escapes), quoted names and dollar-quoted bodies is no word. Backslashes of
 * plain strings are read as `standard_conforming_strings` has them by default.
 */
export function wordsOfStatements(text: string): readonly (readonly string[])[] {
  const statements: string[][] = [[]];
  for (let at = 0; at < text.length;) {
    const token = tokenAt(text, at);
    at = token.end;
    if (token.kind === "semicolon") statements.push([]);
    if (token.kind === "word") statements.at(-1)?.push(token.word);
  }
  return statements;
}

type Token =
  | { readonly kind: "word"; readonly end: number; readonly word: string }
  | { readonly kind: "semicolon" | "blank"; readonly end: number };

const lineComment = /--[^\n\r]*/y;
const blanks = /[ \t\n\r\f\v]+/y;
const escapeString = /e'(?:[^'\\]|''|\\[^])*(?:'|$)/iy;
/**
 * A newline between two strings joins them, and the second goes on as the first began. A comment must be seen to end at
 * its line's end: a pattern that may end it anywhere takes exponential time.
 */
const escapeContinued =
  /(?:[ \t\f\v]|--[^\n\r]*(?=[\n\r]))*[\n\r](?:[ \t\n\r\f\v]|--[^\n\r]*(?=[\n\r]))*'(?:[^'\\]|''|\\[^])*(?:'|$)/y;
const plainString = /'[^']*(?:'|$)/y;
const quotedName = /"[^"]*(?:"|$)/y;
const dollarTag = /\$(?:[a-z_\u0080-\uffff][\w\u0080-\uffff]*)?\$/iy;
const word = /[a-z_\u0080-\uffff][\w$\u0080-\uffff]*/iy;
const number = /\$?\d+/y;

function tokenAt(text: string, at: number): Token {
  if (text[at] === ";") return { kind: "semicolon", end: at + 1 };
  if (text.startsWith("/*", at)) return { kind: "blank", end: commentEnd(text, at) };
  const escaped = endOf(escapeString, text, at);
  if (escaped !== undefined) return { kind: "blank", end: continuedEnd(text, escaped) };
  const tagEnd = endOf(dollarTag, text, at);
  if (tagEnd !== undefined) return { kind: "blank", end: dollarEnd(text, at, tagEnd) };
  const wordEnd = endOf(word, text, at);
  if (wordEnd !== undefined) {
    return { kind: "word", end: wordEnd, word: text.slice(at, wordEnd).toLowerCase() };
  }
  for (const opaque of [blanks, lineComment, plainString, quotedName, number]) {
    const end = endOf(opaque, text, at);
    if (end !== undefined) return { kind: "blank", end };
  }
  // An operator or a bracket: it keeps its place, so that `(commit)` does not begin with a word.
  return { kind: "word", end: at + 1, word: text[at] ?? "" };
}

function endOf(pattern: RegExp, text: string, at: number): number | undefined {
  pattern.lastIndex = at;
  return pattern.test(text) ? pattern.lastIndex : undefined;
}

function commentEnd(text: string, start: number): number {
  let at = start + 2;
  for (let depth = 1; depth > 0 && at < text.length;) {
    if (text.startsWith("/*", at)) depth += 1;
    else if (text.startsWith("*/", at)) depth -= 1;
    else {
      at += 1;
      continue;
    }
    at += 2;
  }
  return at;
}

function continuedEnd(text: string, end: number): number {
  const next = endOf(escapeContinued, text, end);
  return next === undefined ? end : continuedEnd(text, next);
}

function dollarEnd(text: string, start: number, bodyStart: number): number {
  const tag = text.slice(start, bodyStart);
  const close = text.indexOf(tag, bodyStart);
  return close === -1 ? text.length : close + tag.length;
}
