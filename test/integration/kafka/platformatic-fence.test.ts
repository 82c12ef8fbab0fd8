import { platformaticBinding } from "./support/clients.ts";
import { describeFence } from "./support/fence-contract.ts";

describeFence(platformaticBinding);
