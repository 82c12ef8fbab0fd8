/** Nothing should take as long to stop; what is left then ends with this process. */
const STOP_TIMEOUT_MS = 20_000;
const PARENT_CHECK_MS = 100;

/** Aborts on Ctrl-C and on the other ways of being told to stop, of which the death of the npm that started us is one. */
export const stopSignal = (): AbortSignal => {
  const stopping = new AbortController();
  // Once or twice: from the terminal, and from npm, which passes on what it gets.
  const stop = (): void => {
    if (!stopping.signal.aborted) {
      stopping.abort();
      setTimeout(() => process.exit(1), STOP_TIMEOUT_MS).unref();
    }
  };
  for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"] as const) {
    process.on(signal, stop);
  }
  if (process.env["npm_lifecycle_event"] !== undefined) {
    onParentsDeath(stop);
  }
  return stopping.signal;
};

/** A SIGKILL of npm tells us nothing, but gives us another parent. */
const onParentsDeath = (stop: () => void): void => {
  const parent = process.ppid;
  setInterval(() => process.ppid === parent || stop(), PARENT_CHECK_MS).unref();
};
