import { platformaticBinding } from "./support/clients.ts";
import { describeConsumer } from "./support/consumer-contract.ts";

describeConsumer(platformaticBinding);
