import { describeFence } from "../integration/kafka/support/fence-contract.ts";
import { confluentBinding } from "./binding.ts";

describeFence(confluentBinding);
