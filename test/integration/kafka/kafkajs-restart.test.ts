import { kafkaJsBinding } from "./support/clients.ts";
import { describeRestart } from "./support/restart-contract.ts";

describeRestart(kafkaJsBinding);
