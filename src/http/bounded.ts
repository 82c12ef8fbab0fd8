import { IdemkitError } from "../errors.ts";

/**
 * Waits for an answer no longer than a handler may take.
 * @throws IdemkitError `handler_timed_out`.
 */
export async function bounded<T>(answer: Promise<T>, ms: number): Promise<T> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<never>((_, reject) => {
    timer = setTimeout(() => reject(new IdemkitError("handler_timed_out")), ms);
  });
  try {
    return await Promise.race([answer, late]);
  } finally {
    clearTimeout(timer);
  }
}
