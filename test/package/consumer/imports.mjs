// Imports each entry that is named: none may need a package that the user did not install.
for (const entry of process.argv.slice(2)) {
  const names = Object.keys(await import(entry));
  if (names.length === 0) throw new Error(`${entry} exports nothing`);
  console.log(`${entry}: ${names.join(", ")}`);
}
