import { type FakeVagrant, startFakeVagrant } from "@tapedeck/fakes/vagrant/server";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { serverTests, serverUnderTest } from "./server-tests.ts";
import { startVagrantStack, type VagrantStack } from "./stack.ts";

const tests = Object.entries(serverTests);

it("there are all of them", () => expect(tests).toHaveLength(13));

describe("Vagrant's own tests of its server, at the server itself", () => {
  let fake: FakeVagrant;
  beforeAll(async () => {
    fake = await startFakeVagrant({ expires: true });
  });
  afterAll(() => fake[Symbol.asyncDispose]());

  it.each(tests)("%s", async (_, test) => {
    using server = serverUnderTest(fake.address);
    await test(server);
  });
});

describe("Vagrant's own tests of its server, through Tapedeck, at one address", () => {
  let on: VagrantStack;
  beforeAll(async () => {
    on = await startVagrantStack({ expires: true });
  });
  afterAll(() => on[Symbol.asyncDispose]());

  it.each(tests)("%s", async (_, test) => {
    using server = serverUnderTest(on.stack.grpc);
    await test(server);
  });
});
