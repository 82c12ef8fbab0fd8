import { kafkaJsBinding } from "./support/clients.ts";
import { describeFence } from "./support/fence-contract.ts";

describeFence(kafkaJsBinding);
