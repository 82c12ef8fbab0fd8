import type { OutgoingHttpHeaders } from "node:http";
import { promisify } from "node:util";
import zlib from "node:zlib";

import { IdemkitError } from "../errors.ts";

type Decoder = (bytes: Uint8Array, options: { maxOutputLength: number }) => Promise<Buffer>;

/** Node has zstd since 22.15. */
const zstd: unknown = Reflect.get(zlib, "zstdDecompress");

const decoders: Readonly<Record<string, Decoder>> = {
  gzip: promisify(zlib.gunzip),
  "x-gzip": promisify(zlib.gunzip),
  deflate: promisify(zlib.inflate),
  br: promisify(zlib.brotliDecompress),
  ...(typeof zstd === "function" ? { zstd: promisify(zstd) as Decoder } : {}),
};

/** The codings of a message, in the order in which they were applied. */
export function codingsOf(headers: OutgoingHttpHeaders): readonly string[] {
  const given = headers["content-encoding"];
  if (given === undefined) return [];
  const codings = given.toLowerCase().split(",");
  return codings.map((each) => each.trim()).filter((each) => each !== "" && each !== "identity");
}

/**
 * The bytes before a compressing layer: a record must serve clients that know other codings.
 * @throws IdemkitError `response_unsupported` for a coding that Node doesn't know or bytes that are not in it;
 * `response_too_large`.
 */
export async function decoded(
  body: Buffer,
  codings: readonly string[],
  maxOutputLength: number,
): Promise<Buffer> {
  let bytes = body;
  for (const coding of codings.toReversed()) {
    const decoder = decoders[coding];
    if (decoder === undefined) throw unsupported(coding);
    try {
      bytes = await decoder(bytes, { maxOutputLength });
    } catch (cause) {
      if (isTooLarge(cause)) throw new IdemkitError("response_too_large", { cause });
      throw unsupported(coding, cause);
    }
  }
  return bytes;
}

function isTooLarge(error: unknown): boolean {
  return error instanceof Error && "code" in error && error.code === "ERR_BUFFER_TOO_LARGE";
}

function unsupported(coding: string, cause?: unknown): IdemkitError {
  return new IdemkitError("response_unsupported", { detail: `content-encoding ${coding}`, cause });
}
