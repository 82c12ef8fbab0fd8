// Code in the documents is code that runs: `<!-- region FILE NAME -->` before a block says which part of which example it
// shows, where the name `whole` stands for all of it. The examples are run by test/e2e/examples.
import { readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";

/** Documents in which every block of JavaScript must be such a region. */
const strict = new Set(["README.md", "docs/getting-started.md"]);
const block = /(?:<!-- region (\S+) (\S+) -->\n)?```(js|ts)\n([\s\S]*?)```/g;

/** @param {string} text the lines between the marks, moved to the left */
function dedented(text) {
  const lines = text.replace(/\n$/, "").split("\n");
  const indents = lines.filter((line) => line.trim()).map((line) => line.length - line.trimStart().length);
  const indent = Math.min(...indents);
  return lines.map((line) => line.slice(indent)).join("\n");
}

/**
 * @param {string} root
 * @param {string} file
 * @param {string} name
 * @returns {string | undefined}
 */
function regionOf(root, file, name) {
  const text = readFileSync(join(root, file), "utf8");
  if (name === "whole") return text.replaceAll(/^[ \t]*\/\/ #(?:end)?region.*\n/gm, "").trimEnd();
  const found = new RegExp(`// #region ${name}\\n([\\s\\S]*?)[ \\t]*// #endregion`).exec(text);
  return found?.[1] === undefined ? undefined : dedented(found[1]);
}

/**
 * @param {string} root
 * @param {string} file
 * @param {boolean} isCheck
 * @returns {string[]} what is wrong
 */
function syncFile(root, file, isCheck) {
  const text = readFileSync(join(root, file), "utf8");
  /** @type {string[]} */
  const faults = [];
  const synced = text.replaceAll(block, (whole, ...groups) => {
    const [example, name = "", language = "", code = ""] = /** @type {(string | undefined)[]} */ (groups);
    if (example === undefined) {
      const start = code.slice(0, 50);
      if (strict.has(file)) {
        faults.push(`${file}: a block of ${language} shows no region of an example: ${start}`);
      }
      return whole;
    }
    const region = regionOf(root, example, name);
    if (region !== undefined) {
      return `<!-- region ${example} ${name} -->\n\`\`\`${language}\n${region}\n\`\`\``;
    }
    faults.push(`${file}: ${example} has no region ${name}`);
    return whole;
  });
  if (synced === text) return faults;
  if (isCheck) {
    return [...faults, `${file}: an example has changed: run \`node scripts/docs.mjs\` and commit it`];
  }
  writeFileSync(join(root, file), synced);
  return faults;
}

/**
 * @param {string} root
 * @param {boolean} isCheck
 * @returns {string[]} what is wrong
 */
export function syncRegions(root, isCheck) {
  const documents = readdirSync(join(root, "docs")).filter((name) => name.endsWith(".md"));
  return ["README.md", ...documents.map((name) => `docs/${name}`)].flatMap((file) =>
    syncFile(root, file, isCheck),
  );
}
