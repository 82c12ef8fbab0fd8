import { it } from "vitest";

import { describePublisher } from "../integration/kafka/support/publisher-contract.ts";
import { confluentBinding } from "./binding.ts";

if (confluentBinding) describePublisher(confluentBinding);
else it.skip("a publisher on @confluentinc/kafka-javascript: not installed in test/kafka-confluent");
