import { endWithParent } from "../../scripts/process/guard.mjs";

// A worker whose test hangs would outlive a killed run, and with it all that the test started.
endWithParent();
