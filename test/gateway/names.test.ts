import { startFakeVagrant } from "@tapedeck/fakes/vagrant/server";
import { setUpShop } from "@tapedeck/fakes/vagrant/shop";
import { until } from "@tapedeck/shared/testing/until";
import { afterAll, beforeAll, expect, it } from "vitest";
import { type Stack, startStack } from "../stack/stack.ts";
import { type VagrantClient, vagrantClient } from "../vagrant/client.ts";

const nfc = "jos\u00E9";
const nfd = "jose\u0301";
const developers = ["李", "王", nfd];

const cleanup = new AsyncDisposableStack();
let stack: Stack;
let client: VagrantClient;
beforeAll(async () => {
  const vagrant = [];
  for (const developer of developers) {
    const fake = cleanup.use(await startFakeVagrant());
    setUpShop(fake);
    vagrant.push({ developer, project: "größe", address: fake.address });
  }
  stack = cleanup.use(await startStack({ vagrant }));
  client = cleanup.use(vagrantClient(stack.grpc));
  await until(async () => (await sources()).length === 3, { message: "three sources" });
});
afterAll(() => cleanup.disposeAsync());

type Items = { readonly items: readonly { readonly source: string }[] };

const get = async (path: string) => (await (await fetch(`http://${stack.http}${path}`)).json()) as Items;
const sources = async () => (await get("/api/v1/sources")).items.map(({ source }) => source);

it("people whose names have no ASCII are different sources, shown as they were typed", async () => {
  const expected = ["李", "王", nfc].map((developer) => `default/${developer}/größe/vagrant`);
  expect((await sources()).toSorted()).toEqual(expected.toSorted());
});

it.each([nfc, nfd])("events, states and filters are those of the one source of %j", async (developer) => {
  const source = encodeURIComponent(`${developer}/größe`);
  const described = async () => {
    const { items } = await get(`/api/v1/events?source=${source}&kind=inventory.described&last=1`);
    return items[0]?.source;
  };
  expect(await until(described, { message: "an event" })).toBe(`default/${nfc}/größe/vagrant`);
  const { items } = await get(`/api/v1/events?developer=${encodeURIComponent(developer)}&kind=session.started`);
  expect(items.map((event) => event.source)).toEqual([`default/${nfc}/größe/vagrant`]);
});

it("gRPC metadata name such a source percent-encoded", async () => {
  const named = (developer: string) => ({ "tapedeck-source": encodeURIComponent(`${developer}/größe`) });
  const answered = async () => (await client.ask("ListProjects", new Uint8Array(), named("李"))).bytes.length > 0;
  await until(answered, { message: "the project" });
  expect((await client.ask("ListProjects", new Uint8Array(), named("nobody"))).code).not.toBe(0);
});
