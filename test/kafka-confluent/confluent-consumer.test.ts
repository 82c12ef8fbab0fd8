import { describeConsumer } from "../integration/kafka/support/consumer-contract.ts";
import { confluentBinding } from "./binding.ts";

describeConsumer(confluentBinding);
