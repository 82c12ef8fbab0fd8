export { idempotentFetch } from "./idempotent-fetch.ts";
export type { IdempotentFetch, IdempotentFetchOptions, OperationInit } from "./idempotent-fetch.ts";
export { memoryKeys, webStorageKeys } from "./key-store.ts";
export type { KeyEntry, KeyStore, WebStorage } from "./key-store.ts";
export type { FetchLike, PreparedInit, ResponseLike } from "./prepared-request.ts";
