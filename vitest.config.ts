import { defineConfig } from "vitest/config";

const globalSetup = ["test/support/global-setup.ts"];

/** The groups run one after the other; what measures times of the service runs alone. */
export default defineConfig({
  test: {
    environment: "node",
    pool: "forks",
    passWithNoTests: true,
    restoreMocks: true,
    setupFiles: ["test/support/worker-setup.ts"],
    projects: [
      {
        extends: true,
        test: {
          name: "unit",
          include: [
            "src/**/*.test.ts",
            "services/payments/src/**/*.test.ts",
            "services/payments/test/**/*.test.ts",
            "test/unit/**/*.test.ts",
          ],
          sequence: { groupOrder: 0 },
          maxWorkers: 2,
          testTimeout: 10_000,
        },
      },
      {
        extends: true,
        test: {
          name: "integration",
          include: ["test/integration/**/*.test.ts"],
          exclude: ["test/integration/kafka/**"],
          globalSetup,
          sequence: { groupOrder: 1 },
          maxWorkers: 2,
          testTimeout: 30_000,
          hookTimeout: 60_000,
        },
      },
      {
        extends: true,
        test: {
          name: "crash",
          include: ["test/crash/**/*.test.ts"],
          globalSetup,
          sequence: { groupOrder: 2 },
          maxWorkers: 2,
          testTimeout: 120_000,
          hookTimeout: 60_000,
        },
      },
      {
        extends: true,
        test: {
          name: "kafka",
          include: ["test/integration/kafka/**/*.test.ts", "test/kafka-confluent/*.test.ts"],
          globalSetup: [...globalSetup, "test/support/kafka-global-setup.ts"],
          sequence: { groupOrder: 3 },
          maxWorkers: 2,
          testTimeout: 60_000,
          hookTimeout: 60_000,
        },
      },
      {
        extends: true,
        test: {
          name: "e2e",
          include: ["test/e2e/**/*.test.ts"],
          globalSetup,
          sequence: { groupOrder: 4 },
          maxWorkers: 1,
          testTimeout: 180_000,
          hookTimeout: 60_000,
        },
      },
    ],
  },
});
