import { IdemkitError } from "../errors.ts";

/** How a value is stored; the first caller also gets `decode(encode(value))`, so that all answers are equal. */
export interface Codec<In, Out> {
  encode(value: In): Uint8Array;
  decode(bytes: Uint8Array): Out;
}

/** Marks a type that JSON cannot hold; it is not `never`, which could be assigned to anything. */
export interface NotStorable<Reason extends string> {
  readonly __notStorable: Reason;
}

/** What comes back of a `T` that was stored as JSON. */
export type Stored<T> = T extends string | number | boolean | null | undefined
  ? T
  : T extends bigint
    ? NotStorable<"bigint: return a string, or give a codec">
    : T extends Uint8Array | ArrayBuffer
      ? NotStorable<"bytes: return a string, or give a codec">
      : T extends { toJSON(...args: never[]): infer J }
        ? Stored<J>
        : T extends (...args: never[]) => unknown
          ? NotStorable<"function">
          : T extends ReadonlyMap<unknown, unknown> | ReadonlySet<unknown>
            ? NotStorable<"Map or Set: return an array, or give a codec">
            : T extends object
              ? { [K in keyof T]: Stored<T[K]> }
              : T;

/** JSON, with `undefined` as a value of its own: no bytes. */
export function jsonCodec<T>(): Codec<T, Stored<T>> {
  return { encode: encodeJson, decode: (bytes) => decodeJson(bytes) as Stored<T> };
}

function encodeJson(value: unknown): Uint8Array {
  if (value === undefined) return new Uint8Array(0);
  try {
    const text: string | undefined = JSON.stringify(value);
    if (text !== undefined) return Buffer.from(text, "utf8");
  } catch (cause) {
    throw new IdemkitError("value_not_json", {
      detail: String(cause instanceof Error ? cause.message : cause),
      cause,
    });
  }
  throw new IdemkitError("value_not_json", { detail: typeof value });
}

function decodeJson(bytes: Uint8Array): unknown {
  return bytes.length === 0 ? undefined : JSON.parse(Buffer.from(bytes).toString("utf8"));
}
