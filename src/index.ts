export { runOnce } from "./core/run-once.ts";
export type { CodecOption, Command, Once } from "./core/run-once.ts";
export { isRefusal, refuse, valueOf } from "./core/outcome.ts";
export type { Finished, Outcome, OutcomeName, Refusal } from "./core/outcome.ts";
export type { OperationOptions, WhileRunning } from "./core/operation.ts";
export type { Codec, NotStorable, Stored } from "./core/codec.ts";
export type { Database, Disposition, ErrorClass, Isolation } from "./core/ports.ts";
export { IdemkitError, errorCatalogue, isIdemkitError } from "./errors.ts";
export type { ErrorCode, ErrorDetails } from "./errors.ts";
export { classify } from "./postgres/sqlstate.ts";
export { savepoint } from "./postgres/sessions.ts";
export { migrate, migrationSql } from "./postgres/migrate.ts";
export type { Migrated, MigrateOptions } from "./postgres/migrate.ts";
export type { Call, Connections, PostgresDatabase, Result, Row, Session } from "./postgres/connections.ts";
export { startMaintenance } from "./maintenance/start-maintenance.ts";
export type { MaintenanceLogger, MaintenanceOptions } from "./maintenance/start-maintenance.ts";
export { retainProcessedEvents } from "./maintenance/processed-events.ts";
export type { ProcessedEventOptions, ProcessedEventRound } from "./maintenance/processed-events.ts";
export type { Running } from "./internal/loop.ts";
export { eventHeaders } from "./core/event.ts";
export type { EventMessage, OutgoingEvent, Published, Publisher } from "./core/event.ts";
export type { Json } from "./core/canonical-json.ts";
export { enqueue, enqueueAll } from "./outbox/enqueue.ts";
export type { EnqueueOptions } from "./outbox/enqueue.ts";
export type { PlainClient, PlainClientOptions } from "./outbox/enqueue-with-client.ts";
export type { StandardSchema } from "./outbox/standard-schema.ts";
export { startRelay } from "./outbox/relay/start-relay.ts";
export type { Relay, RelayStats } from "./outbox/relay/start-relay.ts";
export type { RelayLogger, RelayOptions } from "./outbox/relay/options.ts";
export type { ListenClient, ListenOptions } from "./outbox/relay/listener.ts";
export type { ParkedKey } from "./outbox/relay/parked-key.ts";
export { inProcessPublisher } from "./outbox/in-process-publisher.ts";
export type { InProcessOptions, Receiver } from "./outbox/in-process-publisher.ts";
export { outboxStatus } from "./outbox/status.ts";
export type { OutboxStatus } from "./outbox/status.ts";
export { parkedOutboxKeys, releaseOutboxKey } from "./outbox/parked.ts";
export type { OutboxKey, ReleaseOptions } from "./outbox/parked.ts";
export { createInbox } from "./inbox/create-inbox.ts";
export type {
  BatchOptions,
  DeadLetterReason,
  Inbox,
  ParkedKeyName,
  ProcessOptions,
  ReleasedKey,
  ReleaseOptions as InboxReleaseOptions,
} from "./inbox/inbox.ts";
export type { InboxOptions, InboxSettings, RetryOptions } from "./inbox/settings.ts";
export type { EventContext, EventHandler, EventHandlers, ReceivedEvent } from "./inbox/handler.ts";
export type { EventOutcome } from "./inbox/outcome.ts";
export { applyIfNewer } from "./inbox/apply-if-newer.ts";
export type { Newer, NewerOptions } from "./inbox/apply-if-newer.ts";
export { deadLetterHeaders } from "./inbox/dead-letter-calls.ts";
export { derivedEventId } from "./inbox/event-id.ts";
export { deadLetters, discardDeadLetter, parkedInboxKeys } from "./inbox/operate.ts";
export type { DeadLetter, ListOptions, ParkedInboxKey } from "./inbox/operate.ts";
export { absent, done, unknown } from "./effects/effect.ts";
export type { Effect, EffectCall, EffectOptions, Recovered } from "./effects/effect.ts";
export type { Phases } from "./effects/phases.ts";
export { withEffects } from "./effects/with-effects.ts";
export type { EffectsOptions, KeyedCommand, OperationWithEffects } from "./effects/with-effects.ts";
export type { LeaseOptions, OnceWithEffects } from "./effects/execution.ts";
export { startRescuer } from "./effects/rescuer.ts";
export type { RescuerOptions } from "./effects/rescuer.ts";
export { listUnfinished, resolveEffect } from "./effects/unfinished.ts";
export type { Resolution, Unfinished } from "./effects/unfinished.ts";
export { defineSaga, localStep, messageStep, step } from "./saga/definition.ts";
export type {
  EffectStepOptions,
  LocalStepOptions,
  MessageStepOptions,
  RetryPolicy,
  SagaDefinition,
  SagaStep,
  StepContext,
} from "./saga/definition.ts";
export type { Direction, SagaState } from "./saga/plan.ts";
export { startSagas } from "./saga/saga-runner.ts";
export type { SagasOptions } from "./saga/saga-runner.ts";
export { participate, replyToSaga, resolveSagaStep, sagaStatus, startSaga } from "./saga/start-saga.ts";
export type {
  Participated,
  Participation,
  SagaReply,
  SagaStatus,
  StartSagaOptions,
  StepResolution,
} from "./saga/start-saga.ts";
