import { kafkaJsBinding } from "./support/clients.ts";
import { describePublisher } from "./support/publisher-contract.ts";

describePublisher(kafkaJsBinding);
