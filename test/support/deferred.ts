/** A promise and the function that fulfils it: a signal between a test and what it tests. */
export function deferred(): { readonly promise: Promise<void>; resolve(): void } {
  let resolve: () => void = () => {};
  const promise = new Promise<void>((fulfil) => (resolve = fulfil));
  return { promise, resolve: () => resolve() };
}
