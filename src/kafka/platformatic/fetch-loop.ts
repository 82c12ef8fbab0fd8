import { systemRuntime } from "../../internal/runtime.ts";
import type { ConsumedRecord, GroupSettings, TopicPartition } from "../port.ts";
import type {
  PlatformaticBatch,
  PlatformaticConsumer,
  PlatformaticFetch,
  PlatformaticFetched,
  PlatformaticMetadata,
} from "./structure.ts";

/** Reads the partitions of one assignment, each broker at its own pace. */
export interface FetchLoop {
  pause(partitions: readonly TopicPartition[]): void;
  resume(partitions: readonly TopicPartition[]): void;
  /** Nothing that is still on its way will be delivered. */
  stop(): void;
}

/** Settings of {@link fetchLoop}. */
export interface FetchSettings {
  readonly consumer: PlatformaticConsumer;
  readonly settings: GroupSettings;
  readonly partitions: readonly TopicPartition[];
  readonly maxBytesPerPartition: number;
  records(from: TopicPartition, records: readonly ConsumedRecord[]): void;
  failed(error: unknown): void;
  protocolErrorOf(error: unknown): string | undefined;
}

/** Logical times of ListOffsets. */
const earliest = -2n;
const latest = -1n;

/** Pause after a fetch that failed. */
const retryMs = 250;

/** The attribute of transactions' markers, which are not records: bit 5. */
const controlBit = 5;

interface Place extends TopicPartition {
  offset: bigint | undefined;
  paused: boolean;
}

interface State extends FetchSettings {
  readonly places: readonly Place[];
  readonly stopped: AbortController;
  /** Brokers that a fetch is under way from. */
  readonly busy: Set<number>;
  /** Has the loop look again. */
  wake: () => void;
}

/** Begins at once. */
export function fetchLoop(options: FetchSettings): FetchLoop {
  const state: State = {
    ...options,
    places: options.partitions.map((of) => ({ ...of, offset: undefined, paused: false })),
    stopped: new AbortController(),
    busy: new Set(),
    wake: () => {},
  };
  void rounds(state);
  return {
    pause: (partitions) => setPaused(state, partitions, true),
    resume: (partitions) => setPaused(state, partitions, false),
    stop: () => {
      state.stopped.abort();
      state.wake();
    },
  };
}

function setPaused(state: State, partitions: readonly TopicPartition[], paused: boolean): void {
  for (const { topic, partition } of partitions) {
    const place = state.places.find((each) => each.partition === partition && each.topic === topic);
    if (place !== undefined) place.paused = paused;
  }
  state.wake();
}

async function rounds(state: State): Promise<void> {
  const { consumer, settings, places, busy } = state;
  const { signal } = state.stopped;
  const topics = [...new Set(places.map(({ topic }) => topic))];
  while (!signal.aborted) {
    const pause = new AbortController();
    state.wake = () => pause.abort();
    try {
      await findPlaces(consumer, settings, places);
      const metadata = await consumer.metadata({ topics: [...topics] });
      for (const [node, due] of byLeader(places, metadata)) {
        if (!busy.has(node)) void fetchFrom(state, node, due, metadata);
      }
      // Leaders move: without a fetch under way nobody would tell us.
      await systemRuntime.sleep(settings.maxWaitMs, pause.signal);
    } catch (error) {
      if (signal.aborted) return;
      state.failed(error);
      await systemRuntime.sleep(retryMs, signal);
    }
  }
}

async function fetchFrom(
  state: State,
  node: number,
  due: readonly Place[],
  metadata: PlatformaticMetadata,
): Promise<void> {
  const { consumer, settings, places, failed } = state;
  const { signal } = state.stopped;
  state.busy.add(node);
  try {
    const asked = new Map(due.map((place) => [place, place.offset] as const));
    const fetched = await consumer.fetch(requestOf(node, due, metadata, state));
    if (signal.aborted) return;
    for (const [place, offset] of asked) {
      if (!place.paused && place.offset === offset) take(state, place, fetched, metadata);
    }
  } catch (error) {
    if (signal.aborted) return;
    failed(error);
    consumer.clearMetadata();
    const outOfRange = state.protocolErrorOf(error) === "OFFSET_OUT_OF_RANGE";
    if (outOfRange) await backIntoRange(consumer, settings, places).catch(failed);
    await systemRuntime.sleep(retryMs, signal);
  } finally {
    state.busy.delete(node);
    state.wake();
  }
}

function take(
  state: State,
  place: Place,
  fetched: PlatformaticFetched,
  metadata: PlatformaticMetadata,
): void {
  const topicId = metadata.topics.get(place.topic)?.id;
  const response = fetched.responses.find((each) => each.topicId === topicId);
  const batches =
    response?.partitions.find(({ partitionIndex }) => partitionIndex === place.partition)?.records ?? [];
  const records = batches.flatMap((batch) => recordsOf(batch, place.offset ?? 0n));
  const last = batches.at(-1);
  if (last !== undefined) place.offset = last.firstOffset + BigInt(last.lastOffsetDelta) + 1n;
  if (records.length > 0) state.records({ topic: place.topic, partition: place.partition }, records);
}

function byLeader(places: readonly Place[], { topics }: PlatformaticMetadata): Map<number, Place[]> {
  const leaders = new Map<number, Place[]>();
  for (const place of places) {
    const leader = topics.get(place.topic)?.partitions[place.partition]?.leader;
    if (place.paused || place.offset === undefined || leader === undefined) continue;
    leaders.set(leader, [...(leaders.get(leader) ?? []), place]);
  }
  return leaders;
}

function requestOf(
  node: number,
  places: readonly Place[],
  metadata: PlatformaticMetadata,
  { settings, maxBytesPerPartition }: FetchSettings,
): PlatformaticFetch {
  const topics = places.map(({ topic, partition, offset = 0n }) => ({
    topicId: metadata.topics.get(topic)?.id ?? "",
    partitions: [
      {
        partition,
        fetchOffset: offset,
        partitionMaxBytes: maxBytesPerPartition,
        currentLeaderEpoch: -1,
        lastFetchedEpoch: -1,
      },
    ],
  }));
  return { node, maxWaitTime: settings.maxWaitMs, topics };
}

/** A batch may begin before the offset that was asked for. */
function recordsOf(batch: PlatformaticBatch, from: bigint): ConsumedRecord[] {
  if (Math.floor(batch.attributes / 2 ** controlBit) % 2 === 1) return [];
  return batch.records.flatMap(({ offsetDelta, key, value, headers }) => {
    const offset = batch.firstOffset + BigInt(offsetDelta);
    if (offset < from) return [];
    const texts = headers.map(([name, text]) => [name?.toString() ?? "", text?.toString() ?? ""] as const);
    return [{ offset, key, value, headers: Object.fromEntries(texts) }];
  });
}

/** Where each partition is read on: behind what the group has committed, else where the settings say. */
async function findPlaces(
  consumer: PlatformaticConsumer,
  { startAt }: GroupSettings,
  places: readonly Place[],
): Promise<void> {
  const unknown = places.filter(({ offset }) => offset === undefined);
  if (unknown.length === 0) return;
  const committed = await consumer.listCommittedOffsets({ topics: byTopic(unknown) });
  const known = (place: Place): bigint | undefined => committed.get(place.topic)?.[place.partition];
  const fresh = unknown.filter((place) => (known(place) ?? -1n) < 0n);
  const begins = await offsetsAt(consumer, fresh, startAt === "earliest" ? earliest : latest);
  for (const place of unknown) place.offset = begins(place) ?? known(place);
}

/** Retention has removed what was to be read next, or the log was cut short. */
async function backIntoRange(
  consumer: PlatformaticConsumer,
  { startAt }: GroupSettings,
  places: readonly Place[],
): Promise<void> {
  const [first, end] = await Promise.all([
    offsetsAt(consumer, places, earliest),
    offsetsAt(consumer, places, latest),
  ]);
  for (const place of places) {
    const { offset = 0n } = place;
    const [low = 0n, high = 0n] = [first(place), end(place)];
    if (offset < low || offset > high) place.offset = startAt === "earliest" ? low : high;
  }
}

async function offsetsAt(
  consumer: PlatformaticConsumer,
  places: readonly Place[],
  timestamp: bigint,
): Promise<(place: Place) => bigint | undefined> {
  if (places.length === 0) return () => undefined;
  const partitions = Object.fromEntries(byTopic(places).map(({ topic, partitions: list }) => [topic, list]));
  const found = await consumer.listOffsets({ topics: Object.keys(partitions), partitions, timestamp });
  const asked = new Set(places);
  return (place) => (asked.has(place) ? found.get(place.topic)?.[place.partition] : undefined);
}

function byTopic(places: readonly TopicPartition[]): { topic: string; partitions: number[] }[] {
  const topics = new Map<string, number[]>();
  for (const { topic, partition } of places) topics.set(topic, [...(topics.get(topic) ?? []), partition]);
  return [...topics].map(([topic, partitions]) => ({ topic, partitions }));
}
