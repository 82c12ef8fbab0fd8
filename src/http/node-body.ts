import type { IncomingMessage } from "node:http";

import type { Command } from "../core/fingerprint.ts";
import { IdemkitError } from "../errors.ts";
import { bodyHeadersOf, bytesCommand, hasBody, isJson, parsedCommand } from "./command.ts";
import type { BodyHeaders } from "./command.ts";
import { copyOfInput } from "./input.ts";
import { checkAnnouncedLength } from "./web.ts";

/** The body of a request of `node:http`. */
export interface NodeBody {
  /**
   * Reads the body.
   * @param givenElsewhere - whether a `command` option tells what the command is
   * @throws IdemkitError `command_too_large`, `command_not_json`, `command_body_unread`.
   */
  command(givenElsewhere: boolean): Promise<Command>;
  /** The body for the next run, always fresh. */
  next(): unknown;
}

/** The body of a request: what a parser has put into `req.body`, or else its bytes, read here. */
export function nodeBody(req: IncomingMessage, maxBytes: number): NodeBody {
  const headers = bodyHeadersOf(req);
  let next = nothing;
  return {
    command: async (givenElsewhere) => {
      if ("body" in req && req.body !== undefined) {
        const spare = copyOfInput(req.body);
        next = () => copyOfInput(spare);
        return givenElsewhere ? { kind: "none" } : parsedCommand(headers, req.body);
      }
      // With a `command` option the stream may be the handler's to read.
      if (givenElsewhere && !isJson(headers)) return { kind: "none" };
      const bytes = await read(req, headers, maxBytes);
      next = valuesOf(headers, bytes);
      return bytesCommand(headers, bytes);
    },
    next: () => next(),
  };
}

function nothing(): unknown {
  return undefined;
}

/** @throws IdemkitError `command_not_json`. */
function valuesOf(headers: BodyHeaders, bytes: Buffer): () => unknown {
  if (bytes.length === 0) return nothing;
  if (!isJson(headers)) return () => Buffer.from(bytes);
  const text = bytes.toString("utf8");
  try {
    JSON.parse(text);
  } catch (cause) {
    throw new IdemkitError("command_not_json", { cause });
  }
  return () => JSON.parse(text) as unknown;
}

async function read(req: IncomingMessage, headers: BodyHeaders, maxBytes: number): Promise<Buffer> {
  if (!hasBody(headers)) return Buffer.alloc(0);
  if (req.readableDidRead || req.readableEnded) throw new IdemkitError("command_body_unread");
  checkAnnouncedLength(headers.contentLength, maxBytes);
  const chunks: Buffer[] = [];
  let size = 0;
  return new Promise((resolve, reject) => {
    req.on("data", (chunk: Buffer) => {
      size += chunk.length;
      if (size <= maxBytes) chunks.push(chunk);
      else reject(new IdemkitError("command_too_large")); // the rest is read and thrown away, so that the answer arrives
    });
    req.once("end", () => resolve(Buffer.concat(chunks)));
    req.once("error", reject);
    req.once("close", () => reject(new Error("the client left before its request was complete")));
  });
}
