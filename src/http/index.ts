export { problemOf } from "./problem.ts";
export type { Problem, ProblemBody, RetryAdvice } from "./problem.ts";
export type { OutcomeEvent } from "./route.ts";
export type { GivenCommand } from "./command.ts";
