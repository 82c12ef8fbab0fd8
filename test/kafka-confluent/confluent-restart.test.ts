import { describeRestart } from "../integration/kafka/support/restart-contract.ts";
import { confluentBinding } from "./binding.ts";

describeRestart(confluentBinding);
