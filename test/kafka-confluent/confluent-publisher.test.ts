import { describePublisher } from "../integration/kafka/support/publisher-contract.ts";
import { confluentBinding } from "./binding.ts";

describePublisher(confluentBinding);
