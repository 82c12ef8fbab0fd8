/** What is remembered of one business operation. */
export interface KeyEntry {
  readonly key: string;
  /** A hash of method, URL and body: an edited retry must not go out under the first one's key. */
  readonly request: string;
  /** `in-doubt` until a final answer has come; the key of such an operation is never replaced. */
  readonly state: "in-doubt" | "done";
  /** When the key was made, in milliseconds since the epoch. */
  readonly createdAtMs: number;
}

/**
 * Where keys outlive a try, and with the right store a reload or a restart (R-DIST-IDEM-X3). Every member resolves once
 * the change is as durable as the store can make it.
 */
export interface KeyStore {
  /** The entry that is there, or `fresh`, stored; two callers at once get the same one. */
  claim(operation: string, fresh: KeyEntry): Promise<KeyEntry>;
  update(operation: string, entry: KeyEntry): Promise<void>;
  forget(operation: string): Promise<void>;
}

/** Keys that live as long as the process or the page. */
export function memoryKeys(): KeyStore {
  const entries = new Map<string, KeyEntry>();
  return {
    claim: (operation, fresh) => {
      const entry = entries.get(operation) ?? fresh;
      entries.set(operation, entry);
      return Promise.resolve(entry);
    },
    update: (operation, entry) => Promise.resolve(void entries.set(operation, entry)),
    forget: (operation) => Promise.resolve(void entries.delete(operation)),
  };
}

/** The part of `localStorage` and `sessionStorage` that is used. */
export interface WebStorage {
  getItem(name: string): string | null;
  setItem(name: string, value: string): void;
  removeItem(name: string): void;
}

/** The part of the Web Locks API that is used; without it two tabs that start one operation in the same instant may differ. */
interface Locks {
  request<T>(name: string, work: () => Promise<T>): Promise<T>;
}

/**
 * Keys in `localStorage` (shared by tabs, outlives a restart) or `sessionStorage` (one tab, outlives a reload).
 * @param prefix in front of every name in the storage
 */
export function webStorageKeys(storage: WebStorage, prefix = "idemkit:"): KeyStore {
  const read = (operation: string): KeyEntry | undefined => entryOf(storage.getItem(prefix + operation));
  const write = (operation: string, entry: KeyEntry): void =>
    storage.setItem(prefix + operation, JSON.stringify(entry));
  return {
    claim: (operation, fresh) =>
      alone(prefix + operation, () => {
        const entry = read(operation) ?? fresh;
        write(operation, entry);
        return entry;
      }),
    update: (operation, entry) => {
      write(operation, entry);
      return Promise.resolve();
    },
    forget: (operation) => {
      storage.removeItem(prefix + operation);
      return Promise.resolve();
    },
  };
}

async function alone<T>(name: string, work: () => T): Promise<T> {
  const { navigator } = globalThis as { readonly navigator?: { readonly locks?: Locks } };
  return navigator?.locks === undefined
    ? work()
    : navigator.locks.request(name, () => Promise.resolve(work()));
}

/** Reads an entry back; one that something else wrote counts as none. */
export function entryOf(text: string | null): KeyEntry | undefined {
  if (text === null) return undefined;
  try {
    const value: unknown = JSON.parse(text);
    return isEntry(value) ? value : undefined;
  } catch {
    return undefined;
  }
}

function isEntry(value: unknown): value is KeyEntry {
  if (typeof value !== "object" || value === null) return false;
  const { key, request, state } = value as Partial<Record<keyof KeyEntry, unknown>>;
  return typeof key === "string" && typeof request === "string" && (state === "in-doubt" || state === "done");
}
