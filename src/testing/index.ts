export { crash, withCrashPoints } from "./crash-points.ts";
export type { CrashPoint } from "./crash-points.ts";
export { checkDelivery } from "./check-delivery.ts";
export type { DeliveryCheck, SeenEvent } from "./check-delivery.ts";
export { withEffectCrashPoints } from "./effect-crash-points.ts";
export type { EffectCrashPoint, EffectStep } from "./effect-crash-points.ts";
