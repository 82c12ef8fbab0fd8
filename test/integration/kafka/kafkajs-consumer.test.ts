import { bindings } from "./support/clients.ts";
import { describeConsumer } from "./support/consumer-contract.ts";

const [kafkajs] = bindings;
if (kafkajs !== undefined) describeConsumer(kafkajs);
