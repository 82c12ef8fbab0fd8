export { fileKeys } from "./file-keys.ts";
