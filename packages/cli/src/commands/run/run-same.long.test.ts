import { type Case, Harnesses, inARow, testSame } from "./testing/same.ts";

const cases: readonly Case[] = [
  { title: "a command that ends by itself", command: ["skaffold", "build", "-p", "staging"], recorded: 1 },
  { title: "a loop that SIGTERM ends", command: ["skaffold", "dev"], signal: "SIGTERM", recorded: 1 },
  ...Array.from({ length: 3 }, (_, index) => ({
    title: `a loop that ends before Ctrl-C comes, ${index + 1}`,
    command: ["skaffold", "dev"],
    signal: "SIGINT" as const,
    isLate: true,
    recorded: 1,
  })),
  {
    title: "an event log file by flag",
    command: ["skaffold", "build", "--event-log-file", "own.log", "--rpc-port", "PORT"],
    recorded: 1,
  },
  {
    title: "an event log file by variable",
    command: ["skaffold", "build", "--rpc-port=PORT"],
    env: { SKAFFOLD_EVENT_LOG_FILE: "own.log" },
    recorded: 1,
  },
  {
    title: "two in a row that are both over at once",
    command: ["bash", "-c", inARow],
    env: { STAND_IN_SHORT: "1" },
    recorded: 2,
  },
  {
    title: "v2 that breaks",
    command: ["skaffold", "dev"],
    env: { STAND_IN_BREAK: "9" },
    signal: "SIGINT",
    recorded: 1,
  },
  { title: "a command without the API", command: ["skaffold", "render", "-o", "out.yaml"], recorded: 0 },
  { title: "one that dies of a signal", command: ["sh", "-c", "skaffold build; kill -KILL $$"], recorded: 1 },
  { title: "arguments behind --", command: ["skaffold", "exec", "task", "--", "--rpc-port=1"], recorded: 1 },
];

testSame(new Harnesses(), cases);
