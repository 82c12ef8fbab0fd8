import { it } from "vitest";

import { describeFence } from "../integration/kafka/support/fence-contract.ts";
import { confluentBinding } from "./binding.ts";

if (confluentBinding) describeFence(confluentBinding);
else it.skip("commits on @confluentinc/kafka-javascript: not installed in test/kafka-confluent");
