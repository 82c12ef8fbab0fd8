// Imports each entry that is named, and requires it: none may need a package that the user did not install.
import { createRequire } from "node:module";

const require = createRequire(import.meta.url);
for (const entry of process.argv.slice(2)) {
  const module = await import(entry);
  const names = Object.keys(module);
  if (names.length === 0) throw new Error(`${entry} exports nothing`);
  // The same objects: a CommonJS application and a library of ES modules must not have an idemkit each.
  if (names.some((name) => require(entry)[name] !== module[name])) throw new Error(`${entry} is there twice`);
  console.log(`${entry}: ${names.join(", ")}`);
}
