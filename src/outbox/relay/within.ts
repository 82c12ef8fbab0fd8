/** What {@link within} answers when the time is over. */
export const noAnswer: unique symbol = Symbol("no answer");

/** The work's result, or {@link noAnswer} when it takes too long; it is left alone then. */
export async function within<T>(timeoutMs: number, work: Promise<T>): Promise<T | typeof noAnswer> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<typeof noAnswer>((resolve) => {
    timer = setTimeout(() => resolve(noAnswer), timeoutMs);
  });
  try {
    return await Promise.race([work, late]);
  } finally {
    clearTimeout(timer);
  }
}
