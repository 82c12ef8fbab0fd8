/** A promise and the function that fulfils it; Node.js 20 has no `Promise.withResolvers`. */
export interface Deferred<T> {
  readonly promise: Promise<T>;
  resolve(value: T): void;
}

/** An unfulfilled one. */
export function deferred<T>(): Deferred<T> {
  const resolvers: ((value: T) => void)[] = [];
  const promise = new Promise<T>((resolve) => {
    resolvers.push(resolve);
  });
  return { promise, resolve: (value) => resolvers[0]?.(value) };
}
