import { expect, it } from "vitest";
import { differentOptions, isConfiguration, optionsOf } from "./command-options.ts";

it.each([
  ["", {}],
  ["dev", { "": "dev" }],
  ["dev -p local --port-forward --tail=false", { "": "dev", p: "local", "port-forward": "", tail: "false" }],
  ["dev -p local -p gpu", { "": "dev", p: "local gpu" }],
  ["up --provider=libvirt", { "": "up", provider: "libvirt" }],
])("the options of %j", (command, options) => {
  expect(Object.fromEntries(optionsOf(command))).toEqual(options);
});

it.each<[string, string, readonly string[], boolean]>([
  ["dev -p local", "dev -p local", [], false],
  ["dev -p local", "dev -p staging", ["p"], true],
  ["dev --port-forward", "dev -p local --port-forward", ["p"], true],
  ["dev -v debug --tail", "dev --tail", ["v"], false],
  ["dev --set=a=1", "dev", ["set"], true],
  ["run", "dev", [""], false],
])("%j and %j", (left, right, names, chooses) => {
  const different = differentOptions(left, right);
  expect(different).toEqual(names);
  expect(different.some(isConfiguration)).toBe(chooses);
});
