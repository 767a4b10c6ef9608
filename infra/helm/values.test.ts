import { readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, it } from "vitest";
import { parse } from "yaml";
import { root } from "../dist/places.ts";

const read = (name: string) => readFileSync(join(root, "infra", name), "utf8");

it("the chart gives its NATS the users that Tapedeck ships, and their passwords", () => {
  const users = read("nats/tapedeck-users.conf");
  const { nats } = parse(read("helm/tapedeck/values.yaml"));
  expect(nats.configMap.merge.data[nats.config.merge.$include]).toBe(users);
  const passwords = [...users.matchAll(/^ +password: \$(\w+)$/gm)].map(([, variable]) => variable);
  expect(Object.keys(nats.container.env)).toEqual(passwords);
});
