export { fromPlatformatic } from "./kafka/platformatic/client.ts";
export type { PlatformaticOptions } from "./kafka/platformatic/client.ts";
export type { PlatformaticModule } from "./kafka/platformatic/structure.ts";
