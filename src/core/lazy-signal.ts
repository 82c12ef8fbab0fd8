/** What a handler may watch to learn that its operation is given up. */
export interface HasSignal {
  /** Made when it is first read: most handlers never do, and making one costs more than the rest of a run. */
  readonly signal: AbortSignal;
}

/** The one who may give the operation up. */
export interface LazySignal {
  /** Aborts the signal, also where it is made only later. */
  abort(reason: unknown): void;
}

interface Source {
  controller?: AbortController;
  aborted?: { readonly reason: unknown };
}

const sourceKey: unique symbol = Symbol("idemkit.signal");

/**
 * One accessor for all objects. One written in the literal of each would give each a hidden class of its own, which V8
 * keeps, with all that the accessor closes over, until the next full collection: a third of the time of a command.
 */
const signal: PropertyDescriptor & ThisType<{ readonly [sourceKey]: Source }> = {
  enumerable: true,
  configurable: true,
  get() {
    return signalOf(this[sourceKey]);
  },
};

function signalOf(source: Source): AbortSignal {
  if (source.controller === undefined) {
    source.controller = new AbortController();
    if (source.aborted !== undefined) source.controller.abort(source.aborted.reason);
  }
  return source.controller.signal;
}

/** Gives an object a signal of its own. */
export function withSignal<T extends object>(target: T): { readonly target: T & HasSignal } & LazySignal {
  const source: Source = {};
  return {
    target: define(target, source),
    abort: (reason) => {
      source.aborted = { reason };
      source.controller?.abort(reason);
    },
  };
}

/** Gives an object the signal of another one, without making it. */
export function sharingSignal<T extends object>(target: T, other: HasSignal): T & HasSignal {
  const source = (other as Partial<Record<typeof sourceKey, Source>>)[sourceKey];
  return source === undefined ? { ...target, signal: other.signal } : define(target, source);
}

function define<T extends object>(target: T, source: Source): T & HasSignal {
  return Object.defineProperty(Object.assign(target, { [sourceKey]: source }), "signal", signal) as T & {
    readonly [sourceKey]: Source;
    readonly signal: AbortSignal;
  };
}
