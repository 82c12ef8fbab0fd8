/** A promise and the function that fulfils it: a signal between a test and what it tests. */
export function deferred(): { readonly promise: Promise<void>; resolve(): void } {
  const resolvers: (() => void)[] = [];
  const promise = new Promise<void>((resolve) => {
    resolvers.push(resolve);
  });
  return { promise, resolve: () => resolvers[0]?.() };
}
