import process from "node:process";

const endWithTheRun = (): never => process.exit(1);

// A worker whose test hangs would outlive a killed run, and with it all that the test started.
process.once("disconnect", endWithTheRun);
