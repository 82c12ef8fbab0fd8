import { closeSync, existsSync, fdatasync, ftruncateSync, openSync, readFileSync, writeSync } from "node:fs";
import { promisify } from "node:util";

/** Money that moved, as the provider's own books have it. */
export interface LedgerEntry {
  readonly kind: "charge" | "refund";
  readonly id: string;
  /** The key that came with the request. */
  readonly key: string;
  readonly amount: string;
  readonly currency: string;
  /** What the merchant wrote on it; of a refund, the charge it gives back. */
  readonly reference: string;
}

/** The provider's books: append-only, and on disk before anyone is told. */
export interface Ledger {
  readonly entries: readonly LedgerEntry[];
  append(entry: LedgerEntry): Promise<void>;
  close(): void;
}

const sync = promisify(fdatasync);

/** Opens the books of `file`; a last line that a crash cut off was never answered, and is dropped. */
export const openLedger = (file: string): Ledger => {
  const { entries, completeBytes } = read(file);
  const handle = openSync(file, "a");
  ftruncateSync(handle, completeBytes);
  let pending: string[] = [];
  let flushing: Promise<void> | undefined;

  const flush = async (): Promise<void> => {
    // Those that come in the meantime share the next flush.
    await Promise.resolve();
    const lines = pending;
    pending = [];
    flushing = undefined;
    writeSync(handle, lines.join(""));
    await sync(handle);
  };
  const append: Ledger["append"] = async (entry) => {
    pending.push(`${JSON.stringify(entry)}\n`);
    flushing ??= flush();
    await flushing;
    entries.push(entry);
  };
  return { entries, append, close: () => closeSync(handle) };
};

const read = (file: string): { readonly entries: LedgerEntry[]; readonly completeBytes: number } => {
  const bytes = existsSync(file) ? readFileSync(file) : Buffer.alloc(0);
  const completeBytes = bytes.lastIndexOf("\n") + 1;
  const lines = bytes.subarray(0, completeBytes).toString("utf8").split("\n").filter(Boolean);
  return { entries: lines.map((line) => JSON.parse(line) as LedgerEntry), completeBytes };
};
