import { refuse } from "idemkit";
import { storedRefusalOf } from "../core/refusal.ts";

/** Turns a decision against the command into a stored refusal; anything else is thrown on, and may be tried again. */
export const refusing = async <T>(work: Promise<T>): Promise<T> => {
  try {
    return await work;
  } catch (error) {
    const refusal = storedRefusalOf(error);
    throw refusal === undefined ? error : refuse(refusal);
  }
};
