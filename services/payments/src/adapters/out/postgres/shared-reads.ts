/**
 * Lets calls for the same id share one read, so that a storm of duplicates doesn't queue on the pool and keep others
 * from it. A call never joins a read that has begun already, only the one after it: what it gets was true after it asked.
 */
export const sharedReads = <T>(read: (id: string) => Promise<T>): ((id: string) => Promise<T>) => {
  const running = new Map<string, Promise<unknown>>();
  const waiting = new Map<string, Promise<T>>();

  const begin = async (id: string): Promise<T> => {
    const reading = read(id);
    running.set(id, reading);
    try {
      return await reading;
    } finally {
      if (running.get(id) === reading) {
        running.delete(id);
      }
    }
  };
  const afterThat = async (current: Promise<unknown>, id: string): Promise<T> => {
    await Promise.allSettled([current]);
    waiting.delete(id);
    return begin(id);
  };

  return (id) => {
    const current = running.get(id);
    const shared = waiting.get(id) ?? (current === undefined ? begin(id) : afterThat(current, id));
    if (current !== undefined) {
      waiting.set(id, shared);
    }
    return shared;
  };
};
