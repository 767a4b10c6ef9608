import { expect, it } from "vitest";
import { NewestStates } from "./newest-states.ts";

const source = "acme/alice/host/rkt";
const written = (session: string, version: string, length = 10) => ({ session, source, version, state: {}, length });
const versionsOf = (states: NewestStates) => states.of(source).map(({ version }) => version);

it("the last two states of a session are kept, because readers see the one before until the commit", () => {
  const states = new NewestStates();
  for (const version of ["1", "2", "3"]) states.put(written("A", version));
  states.put(written("B", "4"));
  expect(versionsOf(states)).toEqual(["2", "3", "4"]);
  expect(states.of("acme/bob/host/rkt")).toEqual([]);
});

it("all together have a bound, and one above it drives out no other", () => {
  const states = new NewestStates(100);
  states.put(written("A", "1", 60));
  states.put(written("B", "2", 40));
  states.put(written("C", "3", 101));
  expect(versionsOf(states)).toEqual(["1", "2"]);
  states.put(written("D", "4", 1));
  expect(versionsOf(states)).toEqual(["2", "4"]);
});
