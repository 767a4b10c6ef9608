import { afterAll, expect, vi } from "vitest";

// A worker runs many test files one after the other. A variable of the environment or a clock that one of them leaves behind
// changes what the next ones do: a client finds no server, a timer never fires. The file that leaves it fails.

const isOurs = (name: string) => /^(TAPEDECK_|XDG_|HOME$|PATH$|TZ$)/.test(name);
const environment = () => Object.fromEntries(Object.entries(process.env).filter(([name]) => isOurs(name)));

const before = environment();

afterAll(() => {
  const left = { environment: environment(), isTimeFake: vi.isFakeTimers() };
  vi.useRealTimers();
  for (const name of Object.keys(left.environment)) if (!(name in before)) delete process.env[name];
  Object.assign(process.env, before);
  expect(left, "what the test file leaves behind").toEqual({ environment: before, isTimeFake: false });
});
