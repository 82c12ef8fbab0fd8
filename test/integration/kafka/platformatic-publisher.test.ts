import { platformaticBinding } from "./support/clients.ts";
import { describePublisher } from "./support/publisher-contract.ts";

describePublisher(platformaticBinding);
