import { kafkaJsBinding } from "./support/clients.ts";
import { describeConsumer } from "./support/consumer-contract.ts";

describeConsumer(kafkaJsBinding);
