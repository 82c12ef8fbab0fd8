import { it } from "vitest";

import { describeConsumer } from "../integration/kafka/support/consumer-contract.ts";
import { confluentBinding } from "./binding.ts";

if (confluentBinding) describeConsumer(confluentBinding);
else it.skip("a consumer on @confluentinc/kafka-javascript: not installed in test/kafka-confluent");
