import { fileURLToPath } from "node:url";

const root = new URL("../../../../", import.meta.url);

/** Everything that `npm start` keeps, one folder for each port so that several can run side by side. */
export const dataFolder = (port: number): string => fileURLToPath(new URL(`.data/port-${port}`, root));

export const serviceMain: string = fileURLToPath(new URL("../main.js", import.meta.url));
export const providerMain: string = fileURLToPath(new URL("../provider/main.js", import.meta.url));
