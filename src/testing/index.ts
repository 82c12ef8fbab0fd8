export { crash, withCrashPoints } from "./crash-points.ts";
export type { CrashPoint } from "./crash-points.ts";
