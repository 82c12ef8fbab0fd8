// Bundles `idemkit/client` as a browser application would, and checks what it must keep: no module of Node, and few bytes.
import { gzipSync } from "node:zlib";
import { fileURLToPath } from "node:url";

import { build } from "vite";

/** Beside `fetch` itself it should not be noticed in a page; the catalogue of errors is most of it. */
const maxGzipBytes = 6144;

/** @returns {Promise<string>} one ES module */
export async function bundleClient() {
  const entry = fileURLToPath(new URL("../dist/client/index.js", import.meta.url));
  const built = await build({
    configFile: false,
    logLevel: "silent",
    build: {
      write: false,
      minify: true,
      target: "es2022",
      lib: { entry, formats: ["es"], fileName: "client" },
    },
  });
  const [output] = Array.isArray(built) ? built : [built];
  if (output === undefined || !("output" in output)) throw new Error("vite gave no bundle");
  return output.output[0].code;
}

if (process.argv[1] === import.meta.filename) {
  const code = await bundleClient();
  const bytes = gzipSync(code).length;
  console.log(`idemkit/client: ${code.length} bytes, ${bytes} compressed`);
  if (/["']node:|\brequire\(/.test(code)) throw new Error("idemkit/client imports a module of Node");
  if (bytes > maxGzipBytes) {
    throw new Error(`idemkit/client has ${bytes} compressed bytes, more than ${maxGzipBytes}`);
  }
}
