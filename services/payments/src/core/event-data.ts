import { invalid } from "./errors.ts";
import { formatMoney, parsePositiveMoney } from "./money.ts";

/** The payload of an event that came from elsewhere: nothing of it is believed before it was looked at. */
export interface EventData {
  /** @throws ServiceError `validation_failed` naming the member */
  text(name: string): string;
  /** Four places. @throws ServiceError `validation_failed` naming the member */
  money(name: string): string;
}

export const eventData = (data: unknown): EventData => {
  const members = (typeof data === "object" && data !== null ? data : {}) as Record<string, unknown>;
  const text = (name: string): string => {
    const value = members[name];
    if (typeof value !== "string" || value === "") {
      throw invalid(name, "must be a text");
    }
    return value;
  };
  return { text, money: (name) => formatMoney(parsePositiveMoney(name, text(name))) };
};
