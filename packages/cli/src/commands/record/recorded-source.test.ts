import { hostname } from "node:os";
import { expect, it } from "vitest";
import { isOfFolder, recordedSource } from "./recorded-source.ts";

const rkt = { upstream: "rkt", address: "127.0.0.1:15441", to: "127.0.0.1:7051", redact: "on" } as const;

it("is what tapedeck.yaml would say", () => {
  expect(recordedSource({ ...rkt, set: { interval: "5s", logs: "on" }, label: { rack: "7" } }, {})).toMatchObject({
    upstream: "rkt",
    developer: hostname(),
    project: "host",
    interval: 5_000,
    logs: "on",
    labels: { rack: "7" },
  });
  expect(recordedSource({ ...rkt, upstream: "vagrant", developer: "dana", project: "" }, {})).toMatchObject({
    upstream: "vagrant",
    developer: "dana",
    timeout: 10_000,
  });
});

it("the folder names and labels a Skaffold and a Vagrant, and no rkt host", () => {
  expect((["skaffold", "vagrant", "rkt"] as const).filter(isOfFolder)).toEqual(["skaffold", "vagrant"]);
});

it.each([
  [{ interval: "1" }, "--set interval: expected a duration"],
  [{ speed: "1" }, "--set unknown: speed"],
])("%j is refused", (set, sentence) => {
  expect(() => recordedSource({ ...rkt, set }, {})).toThrow(sentence);
});
