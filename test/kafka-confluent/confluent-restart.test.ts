import { it } from "vitest";

import { describeRestart } from "../integration/kafka/support/restart-contract.ts";
import { confluentBinding } from "./binding.ts";

if (confluentBinding) describeRestart(confluentBinding);
else it.skip("@confluentinc/kafka-javascript and a broker that is killed: not installed in test/kafka-confluent");
