import { fileURLToPath } from "node:url";

const root = new URL("../../../../", import.meta.url);

/** Everything that `npm start` keeps, one folder for each port so that several can run side by side. */
export const dataFolder = (port: number): string => fileURLToPath(new URL(`.data/port-${port}`, root));

const main = (name: string): string => fileURLToPath(new URL(`../${name}.js`, import.meta.url));

export const serviceMain: string = main("main");
export const relayMain: string = main("relay-main");
export const consumerMain: string = main("consumer-main");
export const providerMain: string = main("provider/main");
