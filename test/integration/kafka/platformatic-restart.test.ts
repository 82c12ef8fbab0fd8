import { platformaticBinding } from "./support/clients.ts";
import { describeRestart } from "./support/restart-contract.ts";

describeRestart(platformaticBinding);
