import { describe, expect, it } from "vitest";
import { z } from "zod";
import { parseSettings, SettingsError, settingsReader } from "./settings.ts";

const file = (text: string) => parseSettings("tapedeck.yaml", text);

describe("settings", () => {
  it("come from the environment before the file before the default", () => {
    const env = { TAPEDECK_GATEWAY_GRPC_PORT: "1" };
    const read = settingsReader({ env, file: file("gateway: {grpc: {port: 2}, http: {port: 3}}") });
    expect([read.port("gateway.grpc.port", 4), read.port("gateway.http.port", 4), read.port("query.port", 4)]).toEqual([
      1, 3, 4,
    ]);
  });

  it("that are lists come from the environment with commas or as JSON", () => {
    const env = {
      TAPEDECK_A: "https://x.example, https://y.example",
      TAPEDECK_B: '["https://x.example"]',
      TAPEDECK_C: "[fd00::1]",
      TAPEDECK_D: "[[1]]",
    };
    const read = settingsReader({ env });
    expect(read.list("a", [])).toEqual(["https://x.example", "https://y.example"]);
    expect(read.list("b", [])).toEqual(["https://x.example"]);
    expect(read.list("c", [])).toEqual(["[fd00::1]"]);
    expect(read.list("d", [])).toEqual([]);
    expect(() => read.assertValid()).toThrow(/TAPEDECK_D: .* is not a list of texts/);
  });

  it("are parsed in their human units", () => {
    const read = settingsReader({ env: {}, file: file("a: 30d\nb: 500ms\nc: [x, y]\nd: 'on'\ne: {n: 1}") });
    expect(read.duration("a", 0)).toBe(30 * 86_400_000);
    expect(read.duration("b", 0)).toBe(500);
    expect(read.list("c", [])).toEqual(["x", "y"]);
    expect(read.boolean("d", false)).toBe(true);
    expect(read.custom("e", z.strictObject({ n: z.number() }), undefined)).toEqual({ n: 1 });
  });

  it("that are wrong are all reported at once, with file, key and the expected form", () => {
    const read = settingsReader({
      env: { TAPEDECK_QUERY_PORT: "99999", TAPEDECK_PATIENCE: "0s" },
      file: file("gateway:\n  port: many\n  colour: red\nredact: maybe\nsources: [{name: 3}]\n"),
    });
    read.port("gateway.port", 1);
    read.port("query.port", 1);
    read.duration("patience", 1_000, { min: 10 });
    read.oneOf("redact", ["on", "off"], "on");
    read.custom("sources", z.array(z.strictObject({ name: z.string() })), []);
    const errors = (() => {
      try {
        read.assertValid({ complete: true });
        return [];
      } catch (error) {
        return error instanceof SettingsError ? error.errors : [];
      }
    })();
    expect(errors).toEqual([
      'tapedeck.yaml: gateway.port: "many" is not a whole number from 0 to 65535',
      'TAPEDECK_QUERY_PORT: "99999" is not a whole number from 0 to 65535',
      'TAPEDECK_PATIENCE: "0s" is not a duration such as "500ms", "30s", "10m", "2h" or "30d", of at least 10ms',
      'tapedeck.yaml: redact: "maybe" is not one of on, off',
      expect.stringMatching(/^tapedeck.yaml: sources\.0\.name: /),
      "tapedeck.yaml: gateway.colour: unknown; gateway has port",
    ]);
  });

  it("in a file that is not YAML are reported with the line", () => {
    expect(() => file("a: [1\nb: 2")).toThrow(/^a setting is wrong:\n {2}tapedeck.yaml:2:/);
  });
});
