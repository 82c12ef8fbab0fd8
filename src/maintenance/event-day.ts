import { firstEventIdAt } from "../inbox/event-id.ts";

const dayMs = 86_400_000;
const dayName = /^processed_event_(\d{4})(\d{2})(\d{2})$/;

/** A day of `processed_event`, in UTC: the partition of the ids whose time lies in it. */
export interface EventDay {
  readonly name: string;
  readonly firstMs: number;
  /** The first millisecond of the next day. */
  readonly endMs: number;
  /** The bounds of the ids: the lower one is in it, the upper one is not. */
  readonly from: string;
  readonly to: string;
}

/** The day of a time, or one that lies `offset` days later. */
export function eventDayAt(ms: number, offset = 0): EventDay {
  const firstMs = (Math.floor(ms / dayMs) + offset) * dayMs;
  const endMs = firstMs + dayMs;
  const date = new Date(firstMs).toISOString().slice(0, 10).replaceAll("-", "");
  return {
    name: `processed_event_${date}`,
    firstMs,
    endMs,
    from: firstEventIdAt(firstMs),
    to: firstEventIdAt(endMs),
  };
}

/** The day of a partition by its name; `undefined` for those that are no days. */
export function eventDayOf(name: string): EventDay | undefined {
  const [, year, month, day] = dayName.exec(name) ?? [];
  return year === undefined ? undefined : eventDayAt(Date.UTC(Number(year), Number(month) - 1, Number(day)));
}
